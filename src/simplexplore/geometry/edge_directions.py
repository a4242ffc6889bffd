"""Directions that edges can have, counted without looking at a vertex.

Along an edge the shares of some arms T change. The rows that are active there, restricted to T,
determine the direction up to its length: |T| - 2 of them do, with the total
(docs/theory/stopping.md). So directions are found by subsets of arms and rows, and floors and
caps of single arms, however many, add none.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from .exact import integer_row
from .standard_form import StandardForm

Whole = npt.NDArray[Any]  # whole numbers: floats while those are exact, else Python's own

# More subsets than this are counted by a formula, and so are directions of more arms than this:
# determinants take too long.
MAX_SUBSETS = 300_000
MAX_ARMS = 6

# Systems that are solved together.
CHUNK_SIZE = 20_000


def count_directions(form: StandardForm) -> int:
    """No less than the number of events in a union over edges.

    A direction and its reverse count once: only one of them can mislead. Evidence sees no more
    of a direction than the signs of its arms, so of directions with the same signs two count.

    Examples
    --------
    >>> from simplexplore.problem.problem import Problem
    >>> count_directions(StandardForm(Problem(4, {"caps": "a1 <= 0.5"})))  # pairs of arms
    6
    """
    rows, is_equality = general_rows(form)
    arms = int((form.columns < form.size).sum())
    sizes = range(2, min(arms, len(rows) + 2) + 1)
    subsets = {j: math.comb(arms, j) * math.comb(len(rows), j - 2) for j in sizes}
    if sum(subsets.values()) <= MAX_SUBSETS and max(sizes, default=0) <= MAX_ARMS:
        count = sum(_count(directions(rows, is_equality, j)) for j in sizes)
    else:
        count = sum(min(subsets[j], math.comb(arms, j) * (2**j - 2)) for j in sizes)
    return max(count, 1)


def general_rows(form: StandardForm) -> tuple[Whole, npt.NDArray[np.bool_]]:
    """Rows that limit no single arm, as whole numbers over the arms that vary; and which hold.

    With the total given, a row may be shifted: "all but a <= 0.8" is a floor. Rows that say the
    same count once, as an equality if one of them is.
    """
    arms = form.columns[form.columns < form.size].tolist()
    found: dict[tuple[int, ...], bool] = {}
    for i in form.rows.tolist()[1:]:
        entries = [form.entry(i, a) for a in arms]
        usual = Counter(entries).most_common(1)[0][0]
        if sum(x != usual for x in entries) <= 1:
            continue
        shifted = [x - entries[0] for x in entries]
        scale = next(x for x in shifted if x)
        row = tuple(integer_row([x / scale for x in shifted]))
        found[row] = found.get(row, False) or not form.live[form.size + i]
    rows = np.array(list(found), dtype=object).reshape(-1, len(arms))
    return rows, np.array(list(found.values()), dtype=bool)


def directions(rows: Whole, is_equality: npt.NDArray[np.bool_], size: int) -> Whole:
    """Directions in which `size` arms change, (N, 2, size): the arms, and by how much.

    All that edges can have are among them, each once and without its reverse.
    """
    arms = np.array(list(itertools.combinations(range(rows.shape[1]), size)), dtype=int)
    largest = math.factorial(size) * math.prod([int(np.abs(rows).max(initial=1))] * (size - 1))
    kind: type = float if largest < 2**53 else object
    found = []
    subsets = itertools.combinations(range(len(rows)), size - 2)
    while chosen := list(itertools.islice(subsets, max(1, CHUNK_SIZE // max(1, len(arms))))):
        active: Whole = rows.astype(kind)[np.array(chosen, dtype=int)][:, :, arms]
        t = np.tile(arms, (len(chosen), 1))
        active = active.transpose(0, 2, 1, 3).reshape(len(t), size - 2, size)
        v = _minors(np.concatenate([np.ones((len(t), 1, size), dtype=kind), active], axis=1))
        whole = (v != 0).all(axis=1)
        for row in rows[is_equality].astype(kind):
            whole &= (row[t] * v).sum(axis=1) == 0
        v, t = v[whole], t[whole]
        if len(v):
            v = v.astype(object) if kind is object else v.astype(np.int64)
            v //= np.gcd.reduce(v, axis=1)[:, None]
            v *= np.where(v[:, :1] < 0, -1, 1)
            found.append(np.stack([t.astype(v.dtype), v], axis=1))
    if not found:
        return np.zeros((0, 2, size), dtype=int)
    together = np.concatenate(found).reshape(-1, 2 * size)
    if kind is float:
        return np.unique(together, axis=0).reshape(-1, 2, size)
    different = {tuple(line): None for line in together}
    return np.array(list(different), dtype=object).reshape(-1, 2, size)


def _minors(matrix: Whole) -> Whole:
    """What (N, k, k + 1) whole numbers are orthogonal to, by minors: no division is needed."""
    count, k, columns = matrix.shape
    # Minors of the last rows by their columns, from those of one row fewer.
    minors: dict[tuple[int, ...], Whole] = {(): np.ones_like(matrix, shape=count)}
    for r in range(1, k + 1):
        row = matrix[:, k - r]
        minors = {
            chosen: sum(
                (-1) ** n * row[:, c] * minors[chosen[:n] + chosen[n + 1 :]]
                for n, c in enumerate(chosen)
            )
            for chosen in itertools.combinations(range(columns), r)
        }
    every = tuple(range(columns))
    return np.stack([(-1) ** c * minors[every[:c] + every[c + 1 :]] for c in every], axis=1)


def _count(lines: Whole) -> int:
    """Directions, of those with the same signs two."""
    signed = np.concatenate([lines[:, 0].astype(int), lines[:, 1] > 0], axis=1)
    _, several = np.unique(signed, axis=0, return_counts=True)
    return int(np.minimum(several, 2).sum())
