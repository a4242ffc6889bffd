"""The edges that leave a vertex of the feasible set.

Only edge directions matter to how hard a problem is. They come from the simplex tableau
at the vertex: one per nonbasic variable, or at a degenerate vertex the extreme rays of a
small cone. No combination of constraints is ever enumerated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from simplexplore.problem.rational import rational

from .cones import Effort, check_rays, extreme_rays, rays_of_row, rays_of_two_rows
from .local_tableau import LocalTableau
from .standard_form import DOUBT, StandardForm
from .vertex import Vertex

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Whole = npt.NDArray[Any]  # of 64 bits, or Python's own

# Gaps that are a smaller share of their terms are summed exactly.
EXACT_BELOW = 1e-4

# Relative error of values that were computed exactly and scaled, or from one term.
SLIP = 8 * float(np.finfo(float).eps)


class Pairs(NamedTuple):
    """Edges that are all pairs of one of the first arms and one of the second."""

    first: Indices
    second: Indices
    number: Indices  # (first, second): which edge a pair is; it grows along rows and columns


@dataclass(frozen=True)
class Edges:
    """Directions of the edges at one vertex, sparse.

    Attributes
    ----------
    index, value : (E, L) arrays
        Edge e changes arm ``index[e, l]`` at rate ``value[e, l]``. Rows are padded with
        value 0 and a repeated index. Directions point away from the vertex and their
        positive parts sum to 1.
    exact : function from e to a dict from arm to Fraction
        The direction in exact numbers, up to its length.
    slip : (E,) array or float
        Relative error that rounding may have left in a value of an edge.
    pairs : Pairs or None
        Where edges are all pairs of two kinds of arms, which have `index` in this order and all
        the same `value`.
    """

    index: Indices
    value: Array
    exact: Callable[[int], dict[int, Fraction]] = field(compare=False, repr=False)
    slip: Array | float = SLIP
    pairs: Pairs | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.index)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Edges:
        """Some of the edges; `exact` still counts all."""
        slip = np.broadcast_to(self.slip, len(self))[chosen]
        return replace(
            self, index=self.index[chosen], value=self.value[chosen], slip=slip, pairs=None
        )

    def dense(self, size: int) -> Array:
        """(E, size) array of directions."""
        directions = np.zeros((len(self), size))
        np.add.at(directions, (np.arange(len(self))[:, None], self.index), self.value)
        return directions

    def gaps(self, means: Array) -> Array:
        """Loss per unit along each edge, -means @ direction; exactly 0.0 for a tie."""
        terms = self.value * means[self.index]
        gaps = -terms.sum(axis=1)
        for e in np.flatnonzero(np.abs(gaps) < EXACT_BELOW * np.abs(terms).sum(axis=1)):
            direction = self.exact(int(e))
            length = sum((x for x in direction.values() if x > 0), Fraction(0))
            loss = -sum(rational(float(means[a])) * x for a, x in direction.items())
            gaps[e] = float(loss / length)
        return np.asarray(gaps)


def edges_at(form: StandardForm, vertex: Vertex, effort: Effort) -> Edges:
    """All edge directions at a vertex.

    Nondegenerate: one per nonbasic variable. Degenerate: the extreme rays of the cone that
    the basic variables at an end leave.
    """
    local = LocalTableau(form, vertex)
    if not local.at_end:
        return _unit_edges(local)
    if len(local.tight) == len(local.at_end) == 1 and local.at_end[0][0] < form.size:
        return _exchanges(local)
    rows = local.exact_rows_at_end()
    if len(rows) <= 2:
        return _ray_edges(local, *(rays_of_two_rows(rows) if rows[1:] else rays_of_row(rows[0])))
    rays = [ray.entries for ray in extreme_rays(len(local.nonbasic), rows, effort)]
    width = max((len(ray) for ray in rays), default=0)
    # Repeated columns of weight 0 fill the rows.
    place = [[*ray, *([next(iter(ray))] * (width - len(ray)))] for ray in rays]
    weight = [[*ray.values(), *([0] * (width - len(ray)))] for ray in rays]
    largest = max((x for ray in rays for x in ray.values()), default=0)
    kind = np.int64 if largest < 2**53 else object
    shape = len(rays), width
    return _ray_edges(
        local,
        np.array(place, dtype=np.int64).reshape(shape),
        np.array(weight, dtype=kind).reshape(shape),
    )


def _unit_edges(local: LocalTableau) -> Edges:
    """One edge per nonbasic variable."""
    size = local.form.size
    change = -local.body_arms * local.away
    doubtful = np.abs(change) < DOUBT * local.magnitude
    terms = np.where(doubtful | (change == 0), 0.0, local.magnitude)
    cancelled = np.divide(terms, np.abs(change), out=np.zeros_like(change), where=terms > 0)
    unclear = np.flatnonzero(doubtful.any(axis=0))
    kinds, first, kind = np.unique(
        local.form.alike[local.nonbasic[unclear]], return_index=True, return_inverse=True
    )
    exact = np.zeros((len(local.arms), len(kinds)))
    for k, n in enumerate(unclear[first]):
        exact[:, k] = list(local.exact_arms(int(local.nonbasic[n])).values())
    exact = -exact[:, kind] * local.away[unclear]
    change[:, unclear] = np.where(doubtful[:, unclear], exact, change[:, unclear])
    own = local.nonbasic < size
    arms = np.broadcast_to(np.array(local.arms, dtype=np.int64), (len(own), len(local.arms)))
    index = np.column_stack([np.where(own, local.nonbasic, 0), arms])
    value = np.column_stack([own * local.away.astype(float), change.T])
    slip = SLIP * np.maximum(cancelled.max(axis=0, initial=1.0), 1.0)
    return _pack(index, value, lambda e: _direction(local, {e: 1}), slip)


def _exchanges(local: LocalTableau) -> Edges:
    """Pairs of arms, where the total is the only tight row and leaves no arm between its ends.

    The same as `_ray_edges`: one arm takes from another, or gives to it, at the same rate.
    """
    ((basic, away),) = local.at_end
    first, others = (local.nonbasic[x] for x in (local.away != away, local.away == away))
    alone, pairs = len(first), len(first) * len(others)
    check_rays(alone + pairs, len(local.nonbasic), 1)
    number = np.empty((alone, 1 + len(others)), dtype=np.int64)
    number[:, 0] = np.arange(alone)
    number[:, 1:] = alone + np.arange(pairs).reshape(alone, len(others))
    second = np.append(basic, others)
    arm = np.empty((alone + pairs, 2), dtype=np.int64)
    arm[:alone, 0], arm[:alone, 1] = first, basic
    both = arm[alone:].reshape(alone, len(others), 2)
    both[:, :, 0], both[:, :, 1] = first[:, None], others
    rates = -away, away

    def exact(e: int) -> dict[int, Fraction]:
        return {int(a): Fraction(x) for a, x in zip(arm[e], rates, strict=True)}

    value = np.broadcast_to(np.array(rates, dtype=float), arm.shape)
    return Edges(arm, value, exact, pairs=Pairs(first, second, number))


def _ray_edges(local: LocalTableau, place: Indices, weight: Whole) -> Edges:
    """One edge per ray, by the nonbasic variables that change and how fast.

    In whole numbers over one denominator; only where these are large as Python's own.
    """
    size, width = local.form.size, place.shape[1]
    _, one_of, kind_of = np.unique(
        local.form.alike[local.nonbasic], return_index=True, return_inverse=True
    )
    columns = [local.exact_arms(c) for c in local.nonbasic[one_of].tolist()]
    scale = math.lcm(*(x.denominator for column in columns for x in column.values()))
    table = [[-int(column[a] * scale) for a in local.arms] for column in columns]
    largest = int(weight.max(initial=0))
    entry = max((abs(x) for row in table for x in row), default=0)
    kind: type = np.int64 if width * largest * max(entry, scale) < 2**53 else object
    # By entry, then by ray: each step is one of long arrays.
    rate: Whole = weight.T.astype(kind) * local.away.astype(kind)[place.T]
    body: Whole = np.array(table, dtype=kind).reshape(len(columns), len(local.arms))[kind_of].T
    change: Whole = np.zeros((len(local.arms), len(place)), dtype=kind)
    for n in range(width):
        change += rate[n] * body.take(place[:, n], axis=1)
    column = local.nonbasic[place.T]
    own = np.where(column < size, rate * scale, 0)
    arms = np.broadcast_to(np.array(local.arms, dtype=np.int64)[:, None], change.shape)
    first = np.where(column < size, column, 0)
    index = np.concatenate([first[:1], arms, first[1:]]).T
    value = (np.concatenate([own[:1], change, own[1:]]) / scale).astype(float).T
    # Kept as long as the edges are: in as few bytes as they need.
    places = place.astype(np.min_scalar_type(len(local.nonbasic)))
    weights = weight.astype(np.min_scalar_type(largest))

    def exact(e: int) -> dict[int, Fraction]:
        ray = zip(places[e].tolist(), weights[e].tolist(), strict=True)
        return _direction(local, {n: x for n, x in ray if x})

    return _pack(index, value, exact, SLIP)


def _direction(local: LocalTableau, ray: dict[int, int]) -> dict[int, Fraction]:
    """Change of every arm when nonbasic variables leave their ends as the ray says."""
    direction: dict[int, Fraction] = {}
    for n, size in ray.items():
        column, rate = int(local.nonbasic[n]), size * int(local.away[n])
        if column < local.form.size:
            direction[column] = direction.get(column, Fraction(0)) + rate
        for arm, entry in local.exact_arms(column).items():
            direction[arm] = direction.get(arm, Fraction(0)) - rate * entry
    return {arm: rate for arm, rate in direction.items() if rate}


def _pack(
    index: Indices,
    value: Array,
    exact: Callable[[int], dict[int, Fraction]],
    slip: Array | float,
) -> Edges:
    """Move zeros to the end, cut the padding, scale positive parts to sum 1."""
    if not (value != 0).all():
        index, value = _without_zeros(index, value)
    value = value / np.where(value > 0, value, 0.0).sum(axis=1, keepdims=True)
    return Edges(np.ascontiguousarray(index), np.ascontiguousarray(value), exact, slip)


def _without_zeros(index: Indices, value: Array) -> tuple[Indices, Array]:
    """Rows with their zeros left out; shorter ones end in zeros at their first index."""
    used = value != 0
    count = np.zeros(len(value), dtype=np.int64)
    arms, rates = np.zeros_like(index.T), np.zeros_like(value.T)
    for n in range(value.shape[1]):
        rows = np.flatnonzero(used[:, n])
        place = count[rows]
        arms[place, rows], rates[place, rows] = index[rows, n], value[rows, n]
        count[rows] += 1
    width = int(count.max(initial=0))
    return np.where(np.arange(width)[:, None] < count, arms[:width], arms[:1]).T, rates[:width].T
