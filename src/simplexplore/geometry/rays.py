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

# Rays of one vertex: every edge of a policy is looked at again and again while it is explored.
# More steps (pairs of rays, and rays looked at for a pair) would take longer than some seconds.
MAX_RAYS = 20_000
MAX_STEPS = 20_000_000

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
    steps = 0
    effort = effort or Effort()
    for number, row in enumerate(rows):
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


def rays_of_row(row: Sequence[int]) -> tuple[Indices, Whole]:
    """`extreme_rays` of one row, in their order: columns (N, 2) and weights (N, 2).

    A ray of one column has it twice, the second time with weight 0.

    Examples
    --------
    >>> [x.tolist() for x in rays_of_row([1, -1])]
    [[[0, 0], [0, 1]], [[1, 0], [1, 1]]]
    """
    heights = np.array(row, dtype=np.int64 if max(map(abs, row)) < 2**62 else object)
    above, flat, below = (np.flatnonzero(x) for x in (heights > 0, heights == 0, heights < 0))
    if len(above) + len(flat) + len(above) * len(below) > MAX_RAYS:  # before memory is asked for
        raise _too_large(len(row), 1)
    alone = np.append(above, flat)
    high, low = np.repeat(above, len(below)), np.tile(below, len(above))
    place = np.column_stack([np.append(alone, high), np.append(alone, low)])
    divisor = np.gcd(heights[high], heights[low])
    ones = np.ones_like(alone)
    pairs = -heights[low] // divisor, heights[high] // divisor
    weight = np.column_stack([np.append(ones, pairs[0]), np.append(0 * ones, pairs[1])])
    return place, weight


def _too_large(size: int, rows: int) -> TooLargeError:
    return TooLargeError(
        f"a vertex is degenerate: {size + rows} constraints bind there, where {size} would do, and "
        f"it has more than {MAX_RAYS:,} edges or they take more than {MAX_STEPS:,} steps to find. "
        "Drop constraints that repeat each other, or move some bounds slightly, so that fewer meet "
        "in one point: caps of 0.0051 on 400 arms, say, where caps of 0.005 fill up exactly."
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
