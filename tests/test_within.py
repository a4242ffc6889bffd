"""Exploration within limits: the pulls themselves keep them, from the first one on."""

import numpy as np
import pytest

import simplexplore as sx
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.problem import Problem

TIGHT = Problem(4, {"c": "40*a1 + 40*a2 + a3 <= 0.5"}, scenario="anytime")


def test_fair_policy_gives_each_arm_a_part_of_what_it_could_get():
    assert Polytope(TIGHT).fair_policy() == pytest.approx([0.005, 0.005, 0.1, 0.89])
    assert Polytope(Problem(5)).fair_policy() == pytest.approx([0.2] * 5)
    capped = Problem(12, [f"a{i} <= 0.21" for i in range(1, 13)])
    assert Polytope(capped).fair_policy() == pytest.approx([1 / 12] * 12)
    # a2 may have 0.1 at most and a1 at least 0.7: claims of 1/3, 0.1 and 0.3.
    limited = Problem(3, ["a1 >= 0.7", "a2 <= 0.1"])
    assert Polytope(limited).fair_policy() == pytest.approx([0.7, 0.075, 0.225])


@pytest.mark.parametrize("seed", range(20))
def test_fair_policies_of_random_problems(seed):
    rng = np.random.default_rng([seed, 3])
    size = int(rng.integers(3, 8))
    centre = rng.dirichlet(np.full(size, 0.5))
    rows = rng.random((2, size)) * rng.choice([1.0, 20.0], (2, size))
    limits = rows @ centre + 0.01
    texts = [
        " + ".join(f"{x}*a{a}" for a, x in enumerate(row.tolist(), 1)) + f" <= {limit}"
        for row, limit in zip(rows, limits.tolist(), strict=True)
    ]
    if seed % 2:
        texts.append(f"a1 <= {min(1.0, centre[0] + 0.1)}")
        texts.append(f"a2 >= {centre[1] / 2}")
    polytope = Polytope(Problem(size, texts))
    policy = polytope.fair_policy()
    most = np.array([polytope.optimal_vertex(np.eye(size)[a]).policy[a] for a in range(size)])
    assert (rows @ policy <= limits + 1e-9).all()
    assert policy.sum() == pytest.approx(1)
    claims = np.minimum(most, 1 / size)
    assert (policy >= claims / size - 1e-9).all()
    from scipy.optimize import linprog

    matrix = polytope.problem.matrix
    given = np.vstack([matrix, -matrix])
    ends = np.concatenate([polytope.problem.upper, -polytope.problem.lower])
    finite = np.isfinite(ends)
    found = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.vstack(
            [
                np.column_stack([given[finite], np.zeros(finite.sum())]),
                np.column_stack([-np.eye(size), claims]),
            ]
        ),
        b_ub=np.concatenate([ends[finite], np.zeros(size)]),
        A_eq=np.append(np.ones(size), 0.0)[None],
        b_eq=[1.0],
    )
    assert (policy / claims)[claims > 1e-12].min() == pytest.approx(-found.fun, rel=1e-6)
