"""Linear programs over the feasible policies: floats find the answer, fractions confirm it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError
from simplexplore.problem.rational import rational

from .local_tableau import LocalTableau
from .standard_form import DOUBT, FloatsMisledError, StandardForm
from .vertex import Vertex

Array = npt.NDArray[np.float64]

# A limit is needed beyond doubt if an arm could go so far beyond it.
BEYOND = 1e-5


def best_vertex(
    form: StandardForm, cost: Array, start: Vertex | None = None, *, proven: bool = True
) -> Vertex:
    """A vertex that maximises a cost over all arms and slacks of rows.

    The walk begins at `start`, which saves most of it when the cost has moved little.
    The vertex is exact in any case; `proven` adds that no other is better, exactly.
    """
    vertex = start or form.start
    assert vertex is not None
    columns = form.columns
    everything = np.ones(len(columns), dtype=bool)
    try:
        tableau = form.tableau(vertex)
        tableau.maximise(cost[columns] / (np.abs(cost).max() or 1.0), everything)
        vertex = form.vertex_of(tableau, columns)
        if not proven or _is_optimal(form, vertex, cost):
            return vertex
    except (FloatsMisledError, NotConvergedError):
        pass  # fractions decide
    exact = form.exact_tableau(vertex)
    exact.maximise(np.array([rational(float(x)) for x in cost[columns]]), everything)
    return form.vertex_of(exact, columns)


def needs_limit(form: StandardForm, constraint: int) -> bool:
    """Whether F is larger without a limit on a single arm; False where floats leave doubt.

    The arm is moved up to the limit and `BEYOND` farther, if the others let it.
    """
    sides = [i for i, owner in enumerate(form.owner) if owner == constraint]
    i, a = sides[0], int(form.arm[sides[0]])
    if len(sides) > 1 or a < 0 or form.fixed[a] or not form.has_slack[i]:
        return False
    up, low, high = bool(form.is_cap[i]), float(form.low[a]), float(form.high[a])
    rivals = [j for tight in form.tight_at[a].values() for j in tight if form.is_cap[j] == up]
    if len(rivals) > 1 or form.start is None or not (high < 1 if up else low > BEYOND):
        return False
    tableau = form.tableau(form.start)
    tableau.turned[:] = False  # each column is looked at from where it rests
    n = int(np.searchsorted(form.columns, a))
    cost = np.zeros(len(form.columns))
    cost[n] = 1.0
    ahead = 0.0  # where it rests, the limit is so far
    if n in tableau.basis:
        ahead = min(high, 1.0) - low
        if not up:
            tableau.width[n] = ahead
            tableau.turn(n)
            tableau.turned[n] = False
    elif (a in form.start.capped) == up:
        tableau.body[:, n] = -tableau.body[:, n]
    else:
        ahead = high - low
    tableau.width[n] = ahead + BEYOND
    try:
        tableau.maximise(cost, np.ones(len(cost), dtype=bool))
    except NotConvergedError:
        return False
    moved = tableau.values[tableau.basis.index(n)] if n in tableau.basis else 0.0
    if tableau.turned[n]:
        moved = tableau.width[n] - moved
    return bool(moved > ahead + BEYOND / 2)


def _is_optimal(form: StandardForm, vertex: Vertex, cost: Array) -> bool:
    """Whether no nonbasic variable improves the cost, exactly."""
    local = LocalTableau(form, vertex)
    reduced = cost[local.nonbasic] - cost[local.arms] @ local.body_arms
    reduced -= cost[[form.size + i for i in local.loose]] @ local.body_loose
    reduced *= local.away
    size = np.abs(cost).max() or 1.0
    doubtful = np.flatnonzero(reduced > -DOUBT * size * local.magnitude)
    if not doubtful.size:
        return True
    rows, prices = local.exact_prices(cost)
    for n in doubtful:
        column = int(local.nonbasic[n])
        exact = rational(float(cost[column])) if cost[column] else Fraction(0)
        for i, price in zip(rows, prices, strict=True):
            if entry := form.entry(i, column):
                exact -= price * entry
        if exact * int(local.away[n]) > 0:
            return False
    return True
