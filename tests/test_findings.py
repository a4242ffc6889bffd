"""How the reproduction judges: from numbers to verdicts."""

import numpy as np
import pytest

import simplexplore as sx
from paper.algorithms import Algorithms
from paper.allocations import projected
from paper.asymptotics import Asymptotics
from paper.lower_bounds import LowerBounds
from paper.simulations import (
    as_good_as_oracle,
    better,
    close_to_bound,
    differs_more_at_the_end,
    optimum,
    ptns_is_worst,
    ptns_like_uniform,
    rarely_wrong,
    uniform_varies,
)
from paper.statements import Statements
from paper.theorems import Theorems
from paper.verdicts import CORRECTED, NOT_REPRODUCED, OPEN, REPRODUCED
from simulated import group, made_up


def verdicts(judge, *groups):
    by_scenario = {
        group[0].plan.scenario: {result.plan.sampler.name: result for result in group}
        for group in groups
    }
    return [finding.verdict for finding in judge(by_scenario)]


def test_better_needs_three_standard_errors_everywhere():
    judge = better(("ctns", "cge"), "uniform")
    assert verdicts(judge, group(ctns=2, cge=4.05, uniform=4)) == [REPRODUCED, OPEN]
    assert verdicts(judge, group(ctns=2, cge=8, uniform=4)) == [REPRODUCED, NOT_REPRODUCED]
    fine, bad = group(ctns=2, cge=2, uniform=4), group("anytime", ctns=8, cge=2, uniform=4)
    assert verdicts(judge, fine, bad) == [NOT_REPRODUCED, REPRODUCED]


def test_as_good_as_the_oracle():
    assert verdicts(as_good_as_oracle, group(ctns=2, cge=3, oracle=3)) == [REPRODUCED]
    assert verdicts(as_good_as_oracle, group(ctns=2, cge=5, oracle=3)) == [NOT_REPRODUCED]


def test_what_straddles_a_criterion_is_not_decided():
    """Each number within three standard errors of what it is judged by."""
    assert verdicts(as_good_as_oracle, group(ctns=2, cge=3.75, oracle=3)) == [OPEN]
    assert verdicts(close_to_bound, group(ctns=3.85, cge=3)) == [OPEN, REPRODUCED]
    assert verdicts(ptns_like_uniform, group(ctns=2, ptns=5, uniform=4)) == [OPEN]
    end, anytime = group(ctns=2, cge=3.2, uniform=8), group("anytime", ctns=2, cge=3, uniform=7)
    assert verdicts(differs_more_at_the_end, end, anytime) == [OPEN]
    assert verdicts(uniform_varies, group(ctns=2, cge=3.9, uniform=4)) == [OPEN]
    few = ["star", "ctns", "tilt", 0.1, 10, 700.0, 710.0, 20.0, 1.01, 0]
    assert {f.verdict for f in LowerBounds().judge({"rows": [few]})} == {OPEN}
    assert curves([2.0, 1.2, 1.05, 1.03], error=0.05)[:3] == [OPEN] * 3


def test_one_run_decides_nothing():
    one = {name: [made_up(sx.catalog.instance("eight-arms").problem, name, runs=1)]
           for name in ("ctns", "cge", "oracle", "uniform")}  # fmt: skip
    groups = {"end-of-time": {name: found[0] for name, found in one.items()}}
    for judge in (better(["ctns"], "uniform"), as_good_as_oracle, uniform_varies):
        assert [finding.verdict for finding in judge(groups)] == [OPEN]


def test_close_to_the_bound_counts_the_threshold():
    # At delta = 0.1 and about 1500 samples the threshold alone is about 2.5 times kl.
    assert verdicts(close_to_bound, group(ctns=3, cge=6)) == [REPRODUCED, NOT_REPRODUCED]


def test_ptns_is_worst():
    end = group(ctns=2, ptns=9, uniform=5)
    for anytime, verdict in (
        (group("anytime", ctns=2, ptns=9, uniform=5), REPRODUCED),
        (group("anytime", ctns=2, ptns=5, uniform=9), NOT_REPRODUCED),
    ):
        assert verdicts(ptns_is_worst, end, anytime) == [REPRODUCED, REPRODUCED, verdict]


def test_samplers_differ_more_in_one_scenario():
    wide, narrow = {"ctns": 2, "cge": 4, "uniform": 9}, {"ctns": 2, "cge": 2.2, "uniform": 3}
    judge = differs_more_at_the_end
    assert verdicts(judge, group(**wide), group("anytime", **narrow)) == [REPRODUCED]
    assert verdicts(judge, group(**narrow), group("anytime", **wide)) == [NOT_REPRODUCED]


def test_error_rates_need_enough_runs():
    problem = sx.catalog.instance("star").problem
    assert verdicts(rarely_wrong, [made_up(problem, runs=400, wrong=3)]) == [REPRODUCED]
    assert verdicts(rarely_wrong, [made_up(problem, runs=20, wrong=1)]) == [OPEN]
    assert verdicts(rarely_wrong, [made_up(problem, runs=400, wrong=99)]) == [NOT_REPRODUCED]


def test_a_wrong_optimum_is_seen():
    results = group(ctns=2)
    assert verdicts(optimum("eight-arms"), results) == [REPRODUCED]
    assert verdicts(optimum("gaussian-2"), results) == [NOT_REPRODUCED]


def test_projection_is_the_nearest_point():
    problem = sx.catalog.instance("eight-arms").problem
    eye = np.eye(8)
    vertices = [*eye[3:], *((eye[2] + e) / 2 for e in eye[3:])]
    vertices += [(eye[a] + 13 * e) / 14 for a in (0, 1) for e in eye[3:]]
    rng = np.random.default_rng(0)
    for _ in range(50):
        target = rng.dirichlet(np.full(8, 0.7))
        point = projected(problem, target)
        assert point.sum() == pytest.approx(1, abs=1e-12)
        assert point.min() >= -1e-12
        assert (problem.matrix @ point)[0] <= 0.5 + 1e-12
        # No vertex lies on the target's side of the point.
        assert max((target - point) @ (vertex - point) for vertex in vertices) <= 1e-12


# ---------------------------------------------------------------------- statements


def theorems(**changes):
    """Numbers as they are where everything holds, and what is changed."""
    found = {
        "problems": 8,
        **dict.fromkeys(("lemma", "bernoulli", "form", "T", "angle", "best arm"), 1e-8),
        "time": 0.9, "allocation": 0.7, "concave": 0.0, "convex": 0.0,
        "printed": 7, "corrected": 0, "H": 0, "inverses": 8, "outside": 1, "flat": 1,
        "segments": 3,
        "near a tie": {
            "sides": [
                {"T h^2": [11.7, 11.7, 11.7], "allocation": [0.4, 0.3, 0.3]},
                {"T h^2": [8.1, 8.0, 8.0], "allocation": [0.5, 0.5, 0.0]},
            ],
            "infinite": True,
        },
    }  # fmt: skip
    return [finding.verdict for finding in Theorems().judge(found | changes)]


@pytest.mark.parametrize(
    ("row", "changes", "verdict"),
    [
        (0, {"lemma": 1e-3}, NOT_REPRODUCED),
        (0, {"bernoulli": 1e-3}, NOT_REPRODUCED),
        (1, {"form": 1e-3}, NOT_REPRODUCED),
        (1, {"T": 1e-3}, NOT_REPRODUCED),
        (2, {"outside": 0}, REPRODUCED),
        (3, {"time": 1.2}, NOT_REPRODUCED),
        (4, {"allocation": 1.2}, NOT_REPRODUCED),
        (5, {"concave": 1e-3}, NOT_REPRODUCED),
        (5, {"convex": 1e-3}, NOT_REPRODUCED),
        (5, {"segments": 0}, OPEN),
        (6, {"near a tie": {"infinite": False, "sides": [
            {"T h^2": [8.0, 8.0, 8.0], "allocation": [0.5, 0.5, 0.0]}] * 2}}, NOT_REPRODUCED),
        (7, {"corrected": 1}, NOT_REPRODUCED),
        (8, {"angle": 1e-3}, NOT_REPRODUCED),
        (9, {"H": 1}, NOT_REPRODUCED),
        (10, {"best arm": 1e-3}, NOT_REPRODUCED),
    ],
)  # fmt: skip
def test_each_theorem_can_fail(row, changes, verdict):
    fine = theorems()
    assert fine[row] == (CORRECTED if row in (2, 7) else REPRODUCED)
    assert NOT_REPRODUCED not in fine
    assert theorems(**changes)[row] == verdict


def test_a_mean_below_the_bound_is_seen():
    row = ["star", "ctns", "tilt", 0.1, 1000, 700.0, 1400.0, 20.0, 2.0, 3]
    judge = LowerBounds().judge
    assert {f.verdict for f in judge({"rows": [row]})} == {REPRODUCED}
    less = [*row[:6], 500.0, 20.0, 0.7, 300]
    assert {f.verdict for f in judge({"rows": [row, less]})} == {NOT_REPRODUCED}


def curves(ratios, excess=1.0, error=0.01):
    deltas = (1e-1, 1e-20, 1e-100, 1e-300)
    rows = [
        ["star", "gk16", sampler, delta, 100, ratio, error, 1.01, excess, 0, 0.01]
        for sampler in ("ctns", "cge", "top-two")
        for delta, ratio in zip(deltas, ratios, strict=True)
    ]
    return [finding.verdict for finding in Asymptotics().judge({"rows": rows})]


def test_limits_other_than_the_characteristic_time_are_seen():
    assert curves([2.0, 1.2, 1.05, 1.03]) == [REPRODUCED] * 4
    assert curves([2.0, 1.6, 1.5, 1.5])[:3] == [NOT_REPRODUCED] * 3
    assert curves([1.0, 1.2, 1.05, 1.03])[:3] == [NOT_REPRODUCED] * 3  # it must fall


def test_an_excess_that_grows_is_seen_and_what_is_not_clear_is_open():
    def verdict(power, error):
        rows = [
            ["star", "gk16", name, 10.0**-k, 100, 1.0 + 1 / k, 0.01, 1.0, float(k**power), 0, error]
            for name in ("ctns", "cge", "top-two")
            for k in range(1, 9)
        ]
        return Asymptotics().judge({"rows": rows})[3].verdict

    assert verdict(3, 0.1) == NOT_REPRODUCED
    assert verdict(1, 0.1) == OPEN  # it doubles
    assert verdict(0.5, 0.01) == REPRODUCED  # by 1.41
    assert verdict(0.5, 0.1) == OPEN


def test_variants_of_algorithms_are_told_apart():
    def verdicts(**means):
        names = ("cge", "cge, 3 log t + log log t", "cge, sign as printed", "uniform", "ctns",
                 "ctns, D known")  # fmt: skip
        values = (means.get(key, 100.0) for key in ("cge", "f", "sign", "even", "ctns", "domain"))
        group = {
            name: {"mean": mean, "stderr": 1.0, "runs": 200, "capped": 0, "wrong": 0, "T": 10.0}
            for name, mean in zip(names, values, strict=True)
        }
        return [f.verdict for f in Algorithms().judge({"star": group})]

    assert verdicts(even=150.0, sign=900.0) == [REPRODUCED, CORRECTED, REPRODUCED, REPRODUCED]
    assert verdicts(even=50.0, sign=50.0, f=200.0, domain=200.0) == [NOT_REPRODUCED] * 4


def test_each_printed_statement_could_have_been_right():
    twins = {"wrong": 0, "interval": [0.0, 0.1]}
    corollary = {"time": 50.0, "printed lower": 1.0, "printed upper": 80.0, "lower": 1.0,
                 "upper": 80.0, "H": 1.0}  # fmt: skip
    names = ("triangle", "star", "eight-arms", "gaussian-1", "gaussian-2", "movies")
    found = {
        "corollary 1": dict.fromkeys(names, corollary),
        "condition": [2.0, 2.0, 2.0],
        "twins": dict.fromkeys(("paper", "gk16", "mixture"), twins),
        "lemma": [1.0, 1.0, 1.0],
        "lemma times": [3.0, 2.5, 2.0],
        "most information": {"information": 5.0, "level": 3.0},
        "first feasible": 1,
        "unique": True,
        "constant": 20.0,
    }
    verdicts = [finding.verdict for finding in Statements().judge(found)]
    assert CORRECTED not in verdicts
    assert verdicts.count(NOT_REPRODUCED) == 1  # the limit
