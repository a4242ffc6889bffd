"""The edges that leave a vertex of the feasible set.

Only edge directions matter to how hard a problem is. They come from the simplex tableau
at the vertex: one per nonbasic variable, or at a degenerate vertex the extreme rays of a
small cone. No combination of constraints is ever enumerated. All is computed in whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.problem.families import Family
from simplexplore.problem.rational import rational

from .rays import Effort, extreme_rays, rays_of_row
from .standard_form import StandardForm, in_order
from .vertex import Vertex

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Whole = npt.NDArray[Any]  # of 64 bits, or Python's own

# Gaps that are a smaller share of their terms are summed exactly.
EXACT_BELOW = 1e-4

# Means that agree in some thirteen digits tie. A gap that is larger can be told from its own
# rounding, so that its characteristic time can be certified.
TIE_ULPS = 256

# Floats hold whole numbers below this.
MAX_FLOAT_INTEGER = 2**53


@dataclass(frozen=True)
class Edges:
    """Directions of the edges at one vertex, sparse.

    Attributes
    ----------
    index, value : (E, L) arrays
        Edge e changes arm ``index[e, l]`` at rate ``value[e, l]``, the float nearest to the exact
        one. Rows are padded with value 0 and a repeated index. Directions point away from the
        vertex and their positive parts sum to 1.
    exact : function from e to a dict from arm to Fraction
        The direction in exact numbers.
    offset : (E,) array, or 0
        Added to the loss along each edge: see question_polytope.py.
    """

    index: Indices
    value: Array
    exact: Callable[[int], dict[int, Fraction]] = field(compare=False, repr=False)
    offset: Array | float = 0.0

    def __len__(self) -> int:
        return len(self.index)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Edges:
        """Some of the edges; `exact` still counts all."""
        offset = np.broadcast_to(self.offset, len(self))[chosen]
        return replace(self, index=self.index[chosen], value=self.value[chosen], offset=offset)

    def dense(self, size: int) -> Array:
        """(E, size) array of directions."""
        directions = np.zeros((len(self), size))
        np.add.at(directions, (np.arange(len(self))[:, None], self.index), self.value)
        return directions

    def unit_offset(self, rewards: Family) -> Array:
        """The offset beside means in unit coordinates, whose origin is another one."""
        if not np.ndim(self.offset):
            return np.zeros(len(self))
        moved = self.value.sum(axis=1) * rewards.to_unit(0.0)
        return np.asarray(self.offset / rewards.width + moved)

    def gaps(self, means: Array) -> Array:
        """Loss per unit along each edge, offset - means @ direction; exactly 0.0 for a tie.

        What is lost is a tie if it is no more than what rounding may leave of means that came out
        of a calculation: 0.3 and 0.1 + 0.2 tie, and so do 0.3 and 100.3 - 100.
        """
        terms = self.value * means[self.index]
        gaps, offset = self.offset - terms.sum(axis=1), np.broadcast_to(self.offset, len(terms))
        size = np.abs(terms).sum(axis=1) + np.abs(offset)
        for e in np.flatnonzero(np.abs(gaps) < EXACT_BELOW * size):
            direction, added = self.exact(int(e)), float(offset[e])
            loss = rational(added) - sum(
                rational(float(means[a])) * x for a, x in direction.items()
            )
            ulps = sum(math.ulp(means[a]) * abs(float(x)) for a, x in direction.items())
            ulps += math.ulp(added) if added else 0.0
            gaps[e] = float(loss) if abs(float(loss)) > TIE_ULPS * ulps else 0.0
        return np.asarray(gaps)


def edges_at(form: StandardForm, vertex: Vertex, effort: Effort) -> Edges:
    """All edge directions at a vertex.

    Nondegenerate: one per nonbasic variable. Degenerate: the extreme rays of the cone that
    the basic variables at an end leave.
    """
    local = _LocalTableau(form, vertex)
    rows = local.rows_at_end()
    count = len(local.nonbasic)
    if not rows:
        return _edges_along(local, np.arange(count)[:, None], np.ones((count, 1), dtype=np.int64))
    if len(rows) == 1:
        return _edges_along(local, *rays_of_row(rows[0]))
    rays = [ray.entries for ray in extreme_rays(count, rows, effort)]
    width = max((len(ray) for ray in rays), default=0)
    # Repeated columns of weight 0 fill the rows.
    place = [[*ray, *([next(iter(ray))] * (width - len(ray)))] for ray in rays]
    weight = [[*ray.values(), *([0] * (width - len(ray)))] for ray in rays]
    largest = max((x for ray in rays for x in ray.values()), default=0)
    kind = np.int64 if largest < MAX_FLOAT_INTEGER else object
    shape = len(rays), width
    return _edges_along(
        local,
        np.array(place, dtype=np.int64).reshape(shape),
        np.array(weight, dtype=kind).reshape(shape),
    )


class _LocalTableau:
    """The simplex tableau at a vertex, in whole numbers.

    Attributes
    ----------
    nonbasic : array of int
        Columns outside the basis, in the order of what is active there.
    away : array of int
        Whether each can only grow (1) or only fall (-1) from where it is.
    body, scale : lists of ints by basic arm, and an int
        Tableau entries of the basic arms times `scale`.
    """

    def __init__(self, form: StandardForm, vertex: Vertex) -> None:
        self.form, self.vertex = form, vertex
        self.arms, active, _ = form.split(vertex.basis)
        outside = np.setdiff1d(form.columns, vertex.basis).tolist()
        nonbasic = in_order(form, outside, vertex.at_upper)
        self.nonbasic = np.array(nonbasic, dtype=np.int64)
        self.away = np.array([-1 if c in vertex.at_upper else 1 for c in nonbasic], dtype=np.int64)
        block = form.block(active, nonbasic)
        self.body, self.scale = form.inverse(vertex.basis).times_matrix(block)

    def rows_at_end(self) -> list[list[int]]:
        """How fast each basic variable that is at an end leaves it, by nonbasic variable."""
        form, vertex = self.form, self.vertex
        place = {a: n for n, a in enumerate(self.arms)}
        rows = []
        for c in vertex.basis:
            share = vertex.shares.get(c, Fraction(0))
            if c >= form.size and c in vertex.zero:
                rows.append([-x for x in self._slack_row(c - form.size)])
            elif c < form.size and share == form.lower[c]:
                rows.append([-x for x in self.body[place[c]]])
            elif c < form.size and share == form.upper[c]:
                rows.append(self.body[place[c]])
        away = self.away.tolist()
        return [
            [x * way // (math.gcd(*row) or 1) for x, way in zip(row, away, strict=True)]
            for row in rows
        ]

    def _slack_row(self, i: int) -> list[int]:
        """Tableau entries of the basic slack of a row, times a positive number."""
        entries, used = self.form.block([i], [*self.nonbasic.tolist(), *self.arms])[0], []
        below = math.lcm(*(x.denominator for x in entries))
        whole = [x.numerator * (below // x.denominator) for x in entries]
        count = len(self.nonbasic)
        used = [0] * count
        for factor, row in zip(whole[count:], self.body, strict=True):
            if factor:
                used = [x + factor * y for x, y in zip(used, row, strict=True)]
        return [self.scale * x - y for x, y in zip(whole[:count], used, strict=True)]


def _edges_along(local: _LocalTableau, place: Indices, weight: Whole) -> Edges:
    """One edge per ray, by the nonbasic variables that change and how fast.

    In whole numbers; only where these are large as Python's own.
    """
    arms, count = local.arms, place.shape[1]
    entry = max((abs(x) for row in local.body for x in row), default=0)
    largest = count * int(weight.max(initial=0)) * max(entry, local.scale)
    kind: type = np.int64 if largest * (len(arms) + count) < MAX_FLOAT_INTEGER else object
    body: Whole = np.array(local.body, dtype=kind).reshape(len(arms), len(local.nonbasic))
    # By entry, then by ray: each step is one of long arrays.
    rate: Whole = weight.T.astype(kind) * local.away.astype(kind)[place.T]
    change: Whole = np.zeros((len(arms), len(place)), dtype=kind)
    for n in range(count):
        change -= rate[n] * body.take(place[:, n], axis=1)
    column = local.nonbasic[place.T]
    is_arm = column < local.form.size
    own = np.where(is_arm, rate * local.scale, 0)
    first = np.where(is_arm, column, 0)
    basic = np.broadcast_to(np.array(arms, dtype=np.int64)[:, None], change.shape)
    index = np.concatenate([first[:1], basic, first[1:]]).T
    whole = np.concatenate([own[:1], change, own[1:]]).T
    if not (whole != 0).all():
        index, whole = _without_zeros(index, whole)
    index = np.ascontiguousarray(index)
    length = np.where(whole > 0, whole, 0).sum(axis=1)
    value = whole / length[:, None]  # a quotient of whole numbers is rounded once

    def exact(e: int) -> dict[int, Fraction]:
        pairs = zip(index[e].tolist(), whole[e].tolist(), strict=True)
        return {a: Fraction(x, int(length[e])) for a, x in pairs if x}

    return Edges(index, np.ascontiguousarray(value, dtype=float), exact)


def _without_zeros(index: Indices, whole: Whole) -> tuple[Indices, Whole]:
    """Rows with their zeros left out; shorter ones end in zeros at their first index."""
    used = np.asarray(whole != 0)
    order = np.argsort(~used, axis=1, kind="stable")[:, : int(used.sum(axis=1).max(initial=0))]
    whole = np.take_along_axis(whole, order, axis=1)
    index = np.take_along_axis(index, order, axis=1)
    return np.where(whole != 0, index, index[:, :1]), whole
