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

from simplexplore.errors import TooLargeError

# More rays than this at one vertex would fill memory before it helped anybody.
MAX_RAYS = 1_000_000


@dataclass(frozen=True)
class Ray:
    """A direction in whole numbers.

    Attributes
    ----------
    entries : dict from column to positive int
    signature : int
        Bit mask of what is strictly positive on the ray: columns, then rows seen.
    """

    entries: dict[int, int]
    signature: int


def extreme_rays(size: int, rows: Sequence[Sequence[int]]) -> list[Ray]:
    """Extreme rays of {y in R^size : y >= 0, row . y >= 0 for each row}.

    Examples
    --------
    >>> [ray.entries for ray in extreme_rays(2, [[1, -1]])]
    [{0: 1}, {0: 1, 1: 1}]
    """
    rays = [Ray({column: 1}, 1 << column) for column in range(size)]
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
        if below:
            # In a simplicial cone every pair of rays spans a face: no test is needed.
            face = None if number == 0 else _FaceTest(rays)
            for high, h_high in above:
                for low, h_low in below:
                    if face is not None and not face.spanned_by(high.signature & ~bit, low):
                        continue
                    kept.append(_combine(high, h_low, low, h_high, bit))
                    if len(kept) > MAX_RAYS:
                        raise TooLargeError(
                            f"a degenerate vertex has more than {MAX_RAYS:,} edges; "
                            "drop constraints that repeat each other, or move one bound slightly."
                        )
        rays = kept
    return rays


class _FaceTest:
    """Whether two rays span a two-dimensional face: no third ray lies in it."""

    def __init__(self, rays: list[Ray]) -> None:
        # A ray inside the face has all its columns among theirs, its first one too.
        self.by_first_column: dict[int, list[int]] = defaultdict(list)
        for ray in rays:
            self.by_first_column[min(ray.entries)].append(ray.signature)

    def spanned_by(self, one: int, other: Ray) -> bool:
        union = one | other.signature
        columns = union
        while columns:
            lowest = columns & -columns
            columns ^= lowest
            for signature in self.by_first_column.get(lowest.bit_length() - 1, ()):
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
