"""Loss accepted against samples: every cell beside `simulate`, ways out, what is printed."""

import json
import math
import re

import pytest

import simplexplore as sx
from commands import run

MIX = sx.Problem(
    ["a", "b", "c"], {"little": "c <= 0.4"}, means=[1.0, 0.6, 1.5], rewards=sx.Gaussian(1.0)
)
# Nobody can tell a from b with a thousand samples.
NEAR_TIE = sx.Problem(["a", "b", "c"], means=[0.5, 0.499, 0.2], rewards=sx.Gaussian(0.5))


@pytest.mark.parametrize(
    "problem", [MIX, MIX.replace(costs=[1, 2, 5], scenario="anytime")], ids=["plain", "costs"]
)
def test_every_cell_is_what_simulate_finds(problem):
    found = sx.trade_off(problem, epsilons=[0.0, 0.3], deltas=[0.2, 0.02], seconds=60.0)
    assert [(x.epsilon, x.delta) for x in found.cells] == [
        (0.0, 0.2),
        (0.0, 0.02),
        (0.3, 0.2),
        (0.3, 0.02),
    ]
    for i, cell in enumerate(found.cells):
        asked = problem.replace(epsilon=cell.epsilon, delta=cell.delta)
        runs = sx.simulate(asked, sampler="top-two", threshold="tilt", runs=200, seed=i, workers=1)
        summary = runs.summary()
        # Five standard errors of both: by chance below 1e-6 a cell, and seeds are fixed.
        for mean, name in ((cell.forecast.samples, "stopping_time"), (cell.forecast.cost, "cost")):
            if name in summary:
                expected = summary[name]
                error = math.hypot(cell.forecast.error * mean, expected["stderr"])
                assert abs(mean - expected["mean"]) < 5 * error, (cell, name)


def test_losses_are_those_of_the_best_mixes():
    # Best: 0.6 a, 0.4 c. Its neighbours: a alone loses 0.2; 0.6 b, 0.4 c loses 0.24.
    found = sx.trade_off(MIX, deltas=[0.1], seconds=0.0)
    assert [x.epsilon for x in found.cells] == [0.0, 0.1, 0.2, 0.4, 0.8]
    own = sx.trade_off(MIX.replace(epsilon=0.15, delta=0.03), seconds=0.0)
    assert sorted({x.epsilon for x in own.cells}) == [0.0, 0.1, 0.15, 0.2, 0.4, 0.8]
    assert list(dict.fromkeys(x.delta for x in own.cells)) == [0.1, 0.05, 0.03, 0.01]


def test_what_is_not_reached_says_so():
    found = sx.trade_off(MIX, epsilons=[0.0, 0.2], seconds=0.0)
    assert {x.note for x in found.cells} == {"not reached in time"}
    assert all(x.forecast is None for x in found.cells)
    assert found.need == pytest.approx(sx.lower_bound(MIX).samples)


def test_a_tie_is_never_settled_but_for_a_loss():
    tied = sx.Problem(["a", "b"], means=[1.0, 1.0])
    found = sx.trade_off(tied, epsilons=[0.0, 0.8], deltas=[0.1])
    never, relaxed = found.cells
    assert (never.forecast, never.note[:5]) == (None, "never")
    assert (found.need, found.is_absurd) == (math.inf, True)
    assert [(x.kind, x.value, x.forecast) for x in found.ways_out] == [
        ("epsilon", 0.8, relaxed.forecast),
        ("arm", None, found.ways_out[1].forecast),
    ]


def test_ways_out_of_a_near_tie():
    found = sx.trade_off(NEAR_TIE, epsilons=[0.0, 0.05], deltas=[0.2, 0.1], per_week=100)
    assert found.is_absurd
    assert found.need > 100_000
    ways = {x.kind: x for x in found.ways_out}
    assert set(ways) <= {"epsilon", "delta", "arm"}
    assert (ways["epsilon"].value, ways["epsilon"].loss) == (0.05, 0.05)
    assert (ways["arm"].what, ways["arm"].loss) == ("b", 0.0)
    # Without b it is a question of two arms.
    two = sx.forecast(
        sx.lower_bound(sx.Problem(["a", "c"], means=[0.5, 0.2], rewards=sx.Gaussian(0.5)))
    )
    without = ways["arm"].forecast
    error = math.hypot(two.error * two.samples, without.error * without.samples)
    assert abs(without.samples - two.samples) < 5 * error + 1  # b may be tried once
    assert found.rows()[1]["weeks"] == pytest.approx(found.need / 100)


def test_limits_on_samples_that_make_it_long():
    problem = sx.Problem(
        ["a", "b", "c"], exploration=["b <= 0.0002"], means=[1, 0.9, 0], scenario="exploration"
    )
    found = sx.trade_off(problem, epsilons=[0.0], deltas=[0.1])
    (way,) = (x for x in found.ways_out if x.kind == "scenario")
    free = sx.forecast(sx.lower_bound(problem.replace(scenario="end-of-time")))
    assert (way.what, way.forecast.samples) == ("end-of-time", free.samples)


def test_a_pace_makes_a_need_absurd():
    found = sx.trade_off(MIX, epsilons=[0.0], deltas=[0.1], per_week=1)
    assert found.need > 52
    assert found.is_absurd
    assert not sx.trade_off(MIX, epsilons=[0.0], deltas=[0.1], seconds=0).is_absurd


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"per_week": 0}, "samples per week must be a positive number; got 0"),
        ({"per_week": math.nan}, "samples per week must be a positive number"),
        ({"epsilons": [-1]}, "epsilon"),
        ({"deltas": [0.0]}, "delta"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(sx.SimplexploreError, match=words):
        sx.trade_off(MIX, **options)


@pytest.fixture
def mix(tmp_path):
    MIX.to_file(tmp_path / "mix.toml")
    return tmp_path / "mix.toml"


def test_the_command_line(mix):
    text = " ".join(run("bound", mix, "--trade-off", "--per-week", "0.1").stdout.split())
    assert "Samples to expect, by the loss to accept (epsilon) and the risk of error" in text
    assert "epsilon delta 0.1 delta 0.05 delta 0.01" in text
    assert "Weeks at 0.1 samples a week" in text
    assert "As asked it takes about" in text
    assert re.search(
        r"- accept a mix within 0\.\d of the best \(epsilon\): about \d+ samples, \d+ weeks\.", text
    )
    found = json.loads(run("bound", mix, "--trade-off", "--json").stdout)["trade_off"]
    assert found["per_week"] is None
    assert {"epsilon", "delta", "samples", "low", "high", "note"} == set(found["cells"][0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--per-week", "10"], "--per-week is the pace of --trade-off; add that, or leave it out."),
        (["--trade-off", "--no-forecast"], "leave out --no-forecast"),
        (["--trade-off", "--per-week", "-3"], "must be a positive number; got -3"),
    ],
)
def test_options_that_do_not_go_together(mix, options, words):
    assert words in " ".join(run("bound", mix, *options, code=2).stderr.split())
