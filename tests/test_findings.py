"""How the reproduction judges: from numbers to verdicts."""

from dataclasses import replace

import numpy as np
import pytest

import simplexplore as sx
from simplexplore.reproduction import PARTS, promises
from simplexplore.reproduction.allocations import projected
from simplexplore.reproduction.part import NOT_REPRODUCED, OPEN, OURS, REPRODUCED, Evidence
from simplexplore.reproduction.simulations import (
    as_good_as_oracle,
    better,
    by_scenario,
    close_to_bound,
    differs_more_at_the_end,
    optimum,
    ptns_is_worst,
    rarely_wrong,
)
from simplexplore.simulation.results import clopper_pearson
from simulated import group, made_up

# ---------------------------------------------------------------------- what a promise costs


def promised(gk16=(100, 200), tilt=(150, 260), mixture=(300, 400), wrong=0):
    """Made-up numbers of one instance with two deltas, and of ties in 1000 runs."""
    means = {"gk16": gk16, "kk21": (900, 950), "mixture": mixture, "tilt": tilt}
    curves = {
        rule: [
            {"delta": delta, "mean": mean, "stderr": 5.0, "wrong": 0, "bound": 50.0}
            for delta, mean in zip((0.1, 0.01), both, strict=True)
        ]
        for rule, both in means.items()
    }
    row = {"delta": 0.1, "runs": 1000, "wrong": wrong}
    tie = [{**row, "interval": clopper_pearson(wrong, 1000)}]
    ties = dict.fromkeys(means, tie)
    return Evidence((), {"runs": 9, "curves": {"star": curves}, "ties": ties})


@pytest.mark.parametrize(
    ("changes", "verdicts"),
    [
        ({}, [REPRODUCED] * 4),
        ({"wrong": 150}, [NOT_REPRODUCED, REPRODUCED, REPRODUCED, REPRODUCED]),
        ({"wrong": 100}, [OPEN, REPRODUCED, REPRODUCED, REPRODUCED]),
        ({"mixture": (110, 400)}, [REPRODUCED, NOT_REPRODUCED, REPRODUCED, REPRODUCED]),
        ({"mixture": (130, 400)}, [REPRODUCED] * 4),  # by chance
        ({"tilt": (195, 260)}, [REPRODUCED, REPRODUCED, NOT_REPRODUCED, REPRODUCED]),
        ({"tilt": (150, 301)}, [REPRODUCED, REPRODUCED, REPRODUCED, NOT_REPRODUCED]),
    ],
)
def test_verdicts_on_promises(monkeypatch, changes, verdicts):
    monkeypatch.setattr(promises, "DELTAS", (0.1, 0.01))
    found = PARTS["promises"].findings(promised(**changes))
    assert [finding.verdict for finding in found] == verdicts
    assert {finding.where for finding in found} == {OURS}


# ---------------------------------------------------------------------- judgement


def verdicts(judge, *groups):
    results = [result for group in groups for result in group]
    return [finding.verdict for finding in judge(by_scenario(results))]


def test_better_needs_three_standard_errors_everywhere():
    judge = better(("ctns", "cge"), "uniform")
    assert verdicts(judge, group(ctns=2, cge=4.05, uniform=4)) == [REPRODUCED, OPEN]
    assert verdicts(judge, group(ctns=2, cge=8, uniform=4)) == [REPRODUCED, NOT_REPRODUCED]
    fine, bad = group(ctns=2, cge=2, uniform=4), group("anytime", ctns=8, cge=2, uniform=4)
    assert verdicts(judge, fine, bad) == [NOT_REPRODUCED, REPRODUCED]


def test_as_good_as_the_oracle():
    assert verdicts(as_good_as_oracle, group(ctns=2, cge=3, oracle=3)) == [REPRODUCED]
    assert verdicts(as_good_as_oracle, group(ctns=2, cge=5, oracle=3)) == [NOT_REPRODUCED]


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


def test_a_wrong_optimum_is_seen(monkeypatch):
    results = group(ctns=2)
    assert verdicts(optimum("eight-arms"), results) == [REPRODUCED]
    wrong = replace(sx.catalog.instance("eight-arms"), optimum={"a3": 0.4, "a4": 0.6})
    monkeypatch.setattr("simplexplore.reproduction.simulations.instance", lambda _: wrong)
    assert verdicts(optimum("eight-arms"), results) == [NOT_REPRODUCED]


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
