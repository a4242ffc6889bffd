"""Polytopes by trying all subsets of constraints, in fractions: vertices, edges, conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

Row = tuple[Fraction, ...]


@dataclass(frozen=True)
class Side:
    """coefficients . x <= bound, or == bound."""

    coefficients: Row
    bound: Fraction
    equality: bool = False


def sides(size: int, rows: Sequence[tuple[Row, Fraction | None, Fraction | None]]) -> list[Side]:
    """All sides of {x >= 0 : sum x = 1, lower <= row . x <= upper for each row}."""
    found = [Side((Fraction(1),) * size, Fraction(1), equality=True)]
    for a in range(size):
        found.append(Side(tuple(Fraction(-(a == b)) for b in range(size)), Fraction(0)))
    for row, lower, upper in rows:
        if lower is not None and lower == upper:
            found.append(Side(row, upper, equality=True))
            continue
        if upper is not None:
            found.append(Side(row, upper))
        if lower is not None:
            found.append(Side(tuple(-x for x in row), -lower))
    return found


def dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(left, right, strict=True)), Fraction(0))


Echelon = tuple[tuple[int, tuple[Fraction, ...]], ...]


def add_row(echelon: Echelon, row: Sequence[Fraction], size: int) -> Echelon | None:
    """Gauss-Jordan elimination of one more row; None if its first `size` entries depend."""
    reduced = list(row)
    for column, other in echelon:
        factor = reduced[column]
        if factor:
            reduced = [x - factor * y for x, y in zip(reduced, other, strict=True)]
    pivot = next((a for a in range(size) if reduced[a]), None)
    if pivot is None:
        return None
    head = tuple(x / reduced[pivot] for x in reduced)
    cleared = tuple(
        (column, tuple(x - other[pivot] * y for x, y in zip(other, head, strict=True)))
        for column, other in echelon
    )
    return (*cleared, (pivot, head))


def independent_choices(
    base: Echelon, rows: Sequence[Sequence[Fraction]], count: int, size: int
) -> Iterator[Echelon]:
    """Eliminated forms of every choice of `count` rows independent of each other and `base`."""
    if count <= 0:
        if count == 0:
            yield base
        return
    for i in range(len(rows) - count + 1):
        grown = add_row(base, rows[i], size)
        if grown is not None:
            yield from independent_choices(grown, rows[i + 1 :], count - 1, size)


def equalities(all_sides: Sequence[Side], size: int) -> Echelon | None:
    """Eliminated equalities, bounds in the last column; None if they contradict."""
    echelon: Echelon = ()
    for side in all_sides:
        if side.equality:
            row = (*side.coefficients, side.bound)
            grown = add_row(echelon, row, size)
            if grown is not None:
                echelon = grown
            elif add_row(echelon, row, size + 1) is not None:
                return None
    return echelon


def vertices(all_sides: Sequence[Side], size: int) -> list[Row]:
    """Every vertex: all feasible solutions of `size` independent active sides."""
    base = equalities(all_sides, size)
    if base is None:
        return []
    inequalities = [side for side in all_sides if not side.equality]
    rows = [(*side.coefficients, side.bound) for side in inequalities]
    found: dict[Row, None] = {}
    for echelon in independent_choices(base, rows, size - len(base), size):
        values = {column: row[size] for column, row in echelon}
        point = tuple(values[a] for a in range(size))
        if point not in found and all(
            dot(side.coefficients, point) <= side.bound for side in inequalities
        ):
            found[point] = None
    return list(found)


def active_sides(all_sides: Sequence[Side], point: Row) -> list[Side]:
    """Inequalities that hold with equality at a point."""
    return [
        side
        for side in all_sides
        if not side.equality and dot(side.coefficients, point) == side.bound
    ]


def edge_directions(all_sides: Sequence[Side], point: Row) -> set[Row]:
    """Extreme rays of the cone of feasible directions at a vertex; positive parts sum to 1.

    A ray is what all but one dimension's worth of independent active rows leave.
    """
    size = len(point)
    base: Echelon = ()
    for side in all_sides:
        if side.equality:
            base = add_row(base, side.coefficients, size) or base
    rows = [side.coefficients for side in active_sides(all_sides, point)]
    found = set()
    for echelon in independent_choices(base, rows, size - 1 - len(base), size):
        pivots = dict(echelon)
        free = next(a for a in range(size) if a not in pivots)
        ray = tuple(-pivots[a][free] if a in pivots else Fraction(1) for a in range(size))
        for direction in (ray, tuple(-x for x in ray)):
            if all(dot(row, direction) <= 0 for row in rows):
                length = sum(x for x in direction if x > 0)
                found.add(tuple(x / length for x in direction))
    return found


def cone_rays(size: int, rows: Sequence[Sequence[int]]) -> set[Row]:
    """Extreme rays of {y >= 0 : row . y >= 0}, first positive entry scaled to 1."""
    normals = [tuple(Fraction(a == b) for b in range(size)) for a in range(size)]
    normals += [tuple(Fraction(x) for x in row) for row in rows]
    found = set()
    for echelon in independent_choices((), normals, size - 1, size):
        pivots = dict(echelon)
        free = next(a for a in range(size) if a not in pivots)
        ray = tuple(-pivots[a][free] if a in pivots else Fraction(1) for a in range(size))
        for direction in (ray, tuple(-x for x in ray)):
            if all(dot(normal, direction) >= 0 for normal in normals):
                first = next(x for x in direction if x)
                found.add(tuple(x / first for x in direction))
    return found


def step_length(all_sides: Sequence[Side], point: Row, direction: Row) -> Fraction:
    """How far a direction can be followed."""
    return min(
        (side.bound - dot(side.coefficients, point)) / rate
        for side in all_sides
        if not side.equality and (rate := dot(side.coefficients, direction)) > 0
    )


def smallest_conflict(
    size: int, rows: Sequence[tuple[Row, Fraction | None, Fraction | None]]
) -> int:
    """Least number of rows that cannot hold together on the simplex; 0 if all can."""
    if vertices(sides(size, rows), size):
        return 0
    return next(
        count
        for count in range(1, len(rows) + 1)
        if any(
            not vertices(sides(size, list(chosen)), size) for chosen in combinations(rows, count)
        )
    )


def exact_policy(vertex, size):
    return tuple(vertex.shares.get(a, Fraction(0)) for a in range(size))


def exact_edges(edges, size):
    """Directions in fractions, positive parts scaled to sum 1."""
    found = []
    for e in range(len(edges)):
        direction = edges.exact(e)
        length = sum(x for x in direction.values() if x > 0)
        found.append(tuple(direction.get(a, Fraction(0)) / length for a in range(size)))
    return found


def floats(row):
    return np.array([float(x) for x in row])
