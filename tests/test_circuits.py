"""Directions of edges, counted without vertices, against ground truth and against all vertices."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from optimum import Polytope
from simplexplore import InfeasibleError, Problem
from simplexplore.geometry.edge_directions import count_directions, directions, general_rows

TRUTH = json.loads((Path(__file__).parent / "data" / "tilt.json").read_text())["unions"]


def lines(form):
    """All directions, as a set of arms and whole numbers."""
    rows, equal = general_rows(form)
    arms = [int(a) for a in form.columns if a < form.size]
    found = set()
    for j in range(2, min(len(arms), len(rows) + 2) + 1):
        for chosen, v in directions(rows, equal, j):
            found.add((tuple(arms[a] for a in chosen), tuple(int(x) for x in v)))
    return found


@pytest.mark.parametrize("row", TRUTH, ids=lambda row: row["name"])
def test_ground_truth(row):
    bound = 0.9 if "floor" in row["name"] else 0.37
    matrix = np.array(row["rows"], dtype=float)
    form = Polytope(Problem(row["K"], (matrix, np.full(len(matrix), bound)))).form
    rows, equal = general_rows(form)
    assert len(rows) == row["general"]
    assert not equal.any()
    sizes = {str(j): len(directions(rows, equal, j)) for j in range(2, len(rows) + 3)}
    assert {j: count for j, count in sizes.items() if count} == row["sizes"]
    assert len(lines(form)) == row["circuits"] >= count_directions(form)


def random_polytope(rng):
    """Rows with small whole numbers, an equality or caps now and then; None if nothing is left."""
    size = int(rng.integers(3, 7))
    count = int(rng.integers(1, 4))
    matrix = rng.integers(-2, 4, (count, size)).astype(float)
    inside = rng.dirichlet(np.ones(size))
    room = rng.choice([0.0, 0.1, 0.3], count)
    rows = {}
    for i in range(count):
        terms = " + ".join(f"{x:g}*a{a + 1}" for a, x in enumerate(matrix[i]) if x)
        if not terms:
            continue
        bound = round(float(matrix[i] @ inside), 3)
        sign = "==" if room[i] == 0 and rng.random() < 0.4 else "<="
        rows[f"r{i}"] = f"{terms} {sign} {bound + room[i]:.3f}".replace("+ -", "- ")
    if rng.random() < 0.5:
        rows |= {f"cap{a}": f"a{a + 1} <= {rng.choice([0.4, 0.5, 0.7])}" for a in range(size)}
    return Problem(size, rows)


def test_every_edge_is_among_them():
    rng = np.random.default_rng(30)
    edges = 0
    for _ in range(40):
        try:
            polytope = Polytope(random_polytope(rng))
        except InfeasibleError:
            continue
        if polytope.dimension == 0:
            continue
        known = lines(polytope.form)
        seen = set()
        for vertex, _ in polytope.ranked_vertices(np.zeros(polytope.size)):
            found = polytope.edges(vertex)
            for e in range(len(found)):
                exact = found.exact(e)
                arms = tuple(sorted(exact))
                first = exact[arms[0]]
                scaled = [exact[a] / first for a in arms]
                whole = np.lcm.reduce([x.denominator for x in scaled])
                v = [int(x * int(whole)) for x in scaled]
                line = (arms, tuple(x // int(np.gcd.reduce(v)) for x in v))
                assert line in known
                seen.add(line)
        edges += len(seen)
        assert len(known) >= len(seen)
        # Distinct events of a union: signed supports, both orientations of the same one.
        assert count_directions(polytope.form) <= len(known)
    assert edges > 200


def test_many_arms_are_counted_by_a_formula():
    caps = {f"cap{a}": f"a{a} <= 0.4" for a in range(1, 201)}
    form = Polytope(Problem(200, caps | {"budget": "3*a1 + 2*a2 + a3 <= 1"})).form
    assert count_directions(form) == math.comb(200, 2) + math.comb(200, 3)


def test_large_numbers_are_exact():
    huge = "1000000007*a1 + 998244353*a2 + 123456789*a3 - 987654321*a4"
    form = Polytope(Problem(5, {"a": f"{huge} <= 3e8", "b": "a1 + 3*a5 - 2*a4 <= 0.5"})).form
    rows, equal = general_rows(form)
    for j in (2, 3, 4):
        for arms, v in directions(rows, equal, j):
            chosen = [tuple(rows[i][list(arms)]) for i in range(len(rows))]
            tight = [r for r in chosen if sum(x * y for x, y in zip(r, v, strict=True)) == 0]
            assert sum(v) == 0
            assert len(tight) >= j - 2


def test_directions_of_thirty_rows_lie_in_them():
    rng = np.random.default_rng(5)
    rows = np.array(rng.integers(-9, 10, (30, 5)).tolist(), dtype=object)
    found = directions(rows, np.zeros(30, dtype=bool), 5)
    assert len(found) > 3_000
    v, arms = found[:, 1].astype(np.int64), found[:, 0].astype(np.int64)
    tight = (rows.astype(np.int64)[:, arms[0]] @ v.T == 0).sum(axis=0)
    assert (tight >= 3).all()
    assert (v.sum(axis=1) == 0).all()
