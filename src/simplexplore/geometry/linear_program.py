"""Linear programs over the feasible policies: floats find the answer, fractions confirm it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError
from simplexplore.problem.rational import rational

from .standard_form import ZERO_TOLERANCE, InexactBasisError, StandardForm
from .vertex import Vertex

Array = npt.NDArray[np.float64]


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
        vertex = form.vertex_of(tableau)
        if not proven or _is_optimal(form, vertex, cost):
            return vertex
    except (InexactBasisError, NotConvergedError):
        pass  # fractions decide
    exact = form.exact_tableau(vertex)
    exact.maximise(np.array([rational(float(x)) for x in cost[columns]]), everything)
    return form.vertex_of(exact)


def _is_optimal(form: StandardForm, vertex: Vertex, cost: Array) -> bool:
    """Whether no nonbasic variable improves the cost, exactly."""
    prices = _prices(form, vertex, cost)
    rows = list(prices)
    nonbasic = np.setdiff1d(form.columns, vertex.basis)
    away = np.where(np.isin(nonbasic, list(vertex.at_upper)), -1, 1)
    block = form.matrix(rows, nonbasic)
    price = np.array([float(x) for x in prices.values()])
    gain = (cost[nonbasic] - price @ block) * away
    size = np.abs(cost[nonbasic]) + np.abs(price) @ np.abs(block)
    for n in np.flatnonzero(gain > -ZERO_TOLERANCE * size).tolist():
        column = int(nonbasic[n])
        exact = rational(float(cost[column]))
        exact -= sum((x * form.entry(i, column) for i, x in prices.items()), Fraction(0))
        if exact * int(away[n]) > 0:
            return False
    return True


def _prices(form: StandardForm, vertex: Vertex, cost: Array) -> dict[int, Fraction]:
    """Of each row; a cost less its priced entries is what a nonbasic variable adds."""
    arms, active, slack_rows = form.split(vertex.basis)
    slack_cost = cost[form.size :]
    prices = {i: rational(float(slack_cost[i])) for i in slack_rows if slack_cost[i]}
    own = []
    for a in arms:
        spent = sum((price * form.entry(i, a) for i, price in prices.items()), Fraction(0))
        own.append(rational(float(cost[a])) - spent)
    prices.update(zip(active, form.inverse(vertex.basis).transposed_times(own), strict=True))
    return {i: price for i, price in prices.items() if price}
