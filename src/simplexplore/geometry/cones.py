"""Extreme rays of a cone that is almost an orthant.

At a degenerate vertex the feasible directions are {y >= 0 : rows y >= 0} with one row
per basic variable at zero. Starting from the unit rays of the orthant and adding the
few rows one by one (double description) touches only what those rows cut, and never
enumerates combinations of constraints.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError

Whole = npt.NDArray[Any]  # of 64 bits, or Python's own
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# More rays than this at one vertex would fill memory before it helped anybody, and more steps
# (pairs of rays, and rays looked at for a pair) would take longer than some seconds.
MAX_RAYS = 1_000_000
MAX_STEPS = 20_000_000

# With more columns two rows are taken together, as arrays.
FEW_COLUMNS = 50

# All vertices of a polytope together may take this many; pairs that the first row of a vertex
# combines do not count, as each of them is an edge.
MAX_STEPS_TOGETHER = 40_000_000


@dataclass
class Effort:
    """Steps that the vertices of one polytope have taken so far."""

    steps: int = 0


class Ray(NamedTuple):
    """A direction in whole numbers.

    Attributes
    ----------
    entries : dict from column to positive int
    signature : int
        Bit mask of what is strictly positive on the ray: columns, then rows seen.
    """

    entries: dict[int, int]
    signature: int


def extreme_rays(
    size: int, rows: Sequence[Sequence[int]], effort: Effort | None = None
) -> list[Ray]:
    """Extreme rays of {y in R^size : y >= 0, row . y >= 0 for each row}.

    What it takes is added to `effort`, and limited by what is left of it.

    Examples
    --------
    >>> [ray.entries for ray in extreme_rays(2, [[1, -1]])]
    [{0: 1}, {0: 1, 1: 1}]
    """
    rays = [Ray({column: 1}, 1 << column) for column in range(size)]
    begun = 2 if len(rows) > 2 and size > FEW_COLUMNS else 0
    if begun:
        rays = _rays(size, rows[:begun])
    steps = 0
    effort = effort or Effort()
    for number, row in enumerate(rows[begun:], begun):
        heights = [sum(row[c] * x for c, x in ray.entries.items()) for ray in rays]
        bit = 1 << (size + number)
        above = [
            (Ray(ray.entries, ray.signature | bit), h)
            for ray, h in zip(rays, heights, strict=True)
            if h > 0
        ]
        below = [(ray, -h) for ray, h in zip(rays, heights, strict=True) if h < 0]
        kept = [ray for ray, _ in above]
        kept += [ray for ray, h in zip(rays, heights, strict=True) if h == 0]
        # In a simplicial cone every pair of rays spans a face: no test is needed.
        face, before = _FaceTest(rays) if below and number else None, steps
        for high, h_high in above:
            steps += len(below)
            for low, h_low in below:
                if face is not None:
                    union = (high.signature & ~bit) | low.signature
                    # All but two dimensions are held by what is zero on both.
                    if union.bit_count() > number + 2:
                        continue
                    if not face.spanned_by(high.signature & ~bit, low):
                        continue
                kept.append(_combine(high, h_low, low, h_high, bit))
            if len(kept) > MAX_RAYS or steps + (face.steps if face else 0) > MAX_STEPS:
                raise _too_large(size, len(rows))
        steps += face.steps if face else 0
        if number:
            effort.steps += steps - before
        if effort.steps > MAX_STEPS_TOGETHER:
            raise _too_large_together()
        rays = kept
    return rays


def _rays(size: int, rows: Sequence[Sequence[int]]) -> list[Ray]:
    """Rays of two rows with what is positive on them."""
    place, weight = rays_of_two_rows(rows)
    values = [(weight * np.array(row, dtype=object)[place]).sum(axis=1) > 0 for row in rows]
    found = []
    for columns, entries, *heights in zip(place.tolist(), weight.tolist(), *values, strict=True):
        ray = {c: x for c, x in zip(columns, entries, strict=True) if x}
        signature = sum(1 << c for c in ray)
        for number, height in enumerate(heights):
            signature |= int(height) << (size + number)
        found.append(Ray(ray, signature))
    return found


def rays_of_row(row: Sequence[int] | Whole) -> tuple[Whole, Whole]:
    """`extreme_rays` of one row, in their order: columns (N, 2) and weights (N, 2).

    A ray of one column has it twice, the second time with weight 0. With caps on every arm there
    may be a quarter of a million.

    Examples
    --------
    >>> [x.tolist() for x in rays_of_row([1, -1])]
    [[[0, 0], [0, 1]], [[1, 0], [1, 1]]]
    """
    (heights,) = _whole([row])
    above, flat, below = (np.flatnonzero(x) for x in (heights > 0, heights == 0, heights < 0))
    check_rays(len(above) + len(flat) + len(above) * len(below), len(row), 1)
    alone = np.append(above, flat)
    high, low = _pairs(above, below)
    place = np.column_stack([np.append(alone, high), np.append(alone, low)])
    divisor = np.gcd(heights[high], heights[low])
    ones = np.ones_like(alone)
    pairs = -heights[low] // divisor, heights[high] // divisor
    weight = np.column_stack([np.append(ones, pairs[0]), np.append(0 * ones, pairs[1])])
    return place, weight


def rays_of_two_rows(rows: Sequence[Sequence[int]]) -> tuple[Whole, Whole]:
    """`extreme_rays` of two rows, in order: columns (N, 4) and weights (N, 4), some of them 0.

    After the first row rays are single columns, and pairs (p, q) of one above it and one below.
    Two rays span a face if both are single, if one is a column that lies in the row, if they are
    pairs that share a column, or if one is a pair (p, q) and the other is p. They are counted
    before memory is asked for.

    Examples
    --------
    >>> [x.tolist() for x in rays_of_two_rows([[1, -1], [-1, 2]])]
    [[[0, 1, 0, 1], [0, 1, 0, 0]], [[1, 1, 0, 0], [2, 1, 0, 0]]]
    """
    first, second = _whole(rows)
    place, weight = (np.ascontiguousarray(x.T) for x in rays_of_row(first))
    weight = weight.astype(first.dtype)
    height = (weight * second[place]).sum(axis=0)
    up, down = np.asarray(height > 0), np.asarray(height < 0)
    p, q = place
    pair = np.asarray(weight[1] > 0)
    flat = ~pair & np.asarray(first[p] == 0)
    # Any two of the first and the second that have the same number are combined, if one is above
    # and one below. Singles that lie in the row are in no pair, so that they share no p.
    all_same = np.zeros_like(p)
    groups = [(~pair, ~pair, all_same), (flat, pair, all_same), (pair, flat, all_same)]
    groups += [(~flat, ~flat, p), (pair, pair, q)]
    ends = [(up & one, down & other, number) for one, other, number in groups]
    kept = np.append(np.flatnonzero(up), np.flatnonzero(~up & ~down))
    check_rays(len(kept) + sum(_count_alike(*end) for end in ends), len(first), 2)
    high, low = (np.concatenate(side) for side in zip(*(_alike(*end) for end in ends), strict=True))
    order = np.lexsort((low, high))
    high, low = high[order], low[order]
    # By entry, then by ray: each step is one of long arrays.
    new_place = np.concatenate([place.take(high, axis=1), place.take(low, axis=1)])
    new_weight = np.concatenate(
        [weight.take(high, axis=1) * -height[low], weight.take(low, axis=1) * height[high]]
    )
    for n, m in ((0, 2), (0, 3), (1, 2), (1, 3)):
        same = (new_place[n] == new_place[m]) & (new_weight[n] > 0)
        new_weight[n, same] += new_weight[m, same]
        new_weight[m, same] = 0
    new_weight //= np.gcd.reduce(new_weight, axis=0)
    place, weight = place.take(kept, axis=1), weight.take(kept, axis=1)
    place = np.concatenate([np.concatenate([place, place]), new_place], axis=1)
    weight = np.concatenate([np.concatenate([weight, 0 * weight]), new_weight], axis=1)
    return place.T, weight.T


def _count_alike(one: Mask, other: Mask, number: Indices) -> int:
    """How many pairs `_alike` finds."""
    most = int(number.max(initial=0)) + 1
    ones, others = (np.bincount(number[x], minlength=most) for x in (one, other))
    return int(ones @ others)


def _alike(one: Mask, other: Mask, number: Indices) -> tuple[Indices, Indices]:
    """Places in the first mask with each place in the second that has the same number."""
    ones, others = np.flatnonzero(one), np.flatnonzero(other)
    others = others[np.argsort(number[others], kind="stable")]
    begin, end = (np.searchsorted(number[others], number[ones], side) for side in ("left", "right"))
    count = end - begin
    last = np.cumsum(count)
    within = np.arange(count.sum()) + np.repeat(begin - (last - count), count)
    return np.repeat(ones, count), others[within]


def _whole(rows: Sequence[Sequence[int] | Whole]) -> list[Whole]:
    """Rows as arrays: of 64 bits, where these hold all that combining them leads to."""
    largest = max((abs(int(x)) for row in rows for x in row), default=0)
    kind = np.int64 if 8 * largest ** (2 * len(rows) - 1) < 2**62 else object
    return [np.array(row, dtype=kind) for row in rows]


def _pairs(one: Whole, other: Whole) -> tuple[Whole, Whole]:
    """Each of the first with each of the second."""
    return np.repeat(one, len(other)), np.tile(other, len(one))


def check_rays(count: int, size: int, rows: int) -> None:
    """Refuse more rays than fit, before memory is asked for."""
    if count > MAX_RAYS:
        raise _too_large(size, rows)


def _too_large(size: int, rows: int) -> TooLargeError:
    return TooLargeError(
        f"a vertex is degenerate: {size + rows} constraints bind there, where {size} would do, and "
        f"it has more than {MAX_RAYS:,} edges or they take more than {MAX_STEPS:,} steps to find. "
        "Drop constraints that repeat each other, or move some bounds slightly, so that fewer meet "
        "in one point."
    )


def _too_large_together() -> TooLargeError:
    return TooLargeError(
        "many vertices are degenerate: more constraints bind there than would do, and their edges "
        f"take more than {MAX_STEPS_TOGETHER:,} steps to find. Drop constraints that repeat each "
        "other, or move some bounds slightly, so that fewer meet in one point."
    )


class _FaceTest:
    """Whether two rays span a two-dimensional face: no third ray lies in it."""

    def __init__(self, rays: list[Ray]) -> None:
        # A ray inside the face has all its columns among theirs, its first one too.
        self.by_first_column: dict[int, list[int]] = defaultdict(list)
        self.steps = 0
        for ray in rays:
            self.by_first_column[min(ray.entries)].append(ray.signature)

    def spanned_by(self, one: int, other: Ray) -> bool:
        union = one | other.signature
        columns = union
        while columns:
            lowest = columns & -columns
            columns ^= lowest
            signatures = self.by_first_column.get(lowest.bit_length() - 1, ())
            self.steps += len(signatures)
            for signature in signatures:
                if signature not in (one, other.signature) and signature & ~union == 0:
                    return False
        return True


def _combine(high: Ray, weight_high: int, low: Ray, weight_low: int, bit: int) -> Ray:
    if len(high.entries) == len(low.entries) == 1:  # of the orthant: with caps there are many
        ((first, x),), ((second, y),) = high.entries.items(), low.entries.items()
        divisor = math.gcd(weight_high * x, weight_low * y)
        pair = {first: weight_high * x // divisor, second: weight_low * y // divisor}
        return Ray(pair, (high.signature & ~bit) | low.signature)
    entries: dict[int, int] = defaultdict(int)
    for column, x in high.entries.items():
        entries[column] += weight_high * x
    for column, x in low.entries.items():
        entries[column] += weight_low * x
    divisor = math.gcd(*entries.values())
    return Ray(
        {column: x // divisor for column, x in entries.items()},
        (high.signature & ~bit) | low.signature,
    )
