"""Random instances, and comparisons of samplers on many of them."""

import csv
import io
import math

import numpy as np
import pytest

import simplexplore as sx
from pictures import assert_texts_apart, texts
from simplexplore.bound import random_instances as drawing
from simplexplore.report.comparison_plot import comparison_figure
from simplexplore.report.results_plot import results_figure
from simplexplore.simulation import compare as comparing
from simulated import made_up

KINDS = ("caps", "groups", "budgets", "ratios", "equalities", "dense")


@pytest.mark.parametrize("kind", KINDS)
def test_instances_are_as_asked_for(kind):
    found = sx.random_instances(2, arms=(3, 6), constraints=2, kinds=[kind], seed=5)
    assert [one.name for one in found] == [f"random-5-{k}" for k in range(2)]
    for one in found:
        bound = sx.lower_bound(one.problem)
        assert 3 <= one.problem.size <= 6
        assert not bound.ties
        assert 0 < bound.characteristic_time < math.inf
        assert sx.Problem.from_text(one.problem.to_text()) == one.problem
    rows = [row for one in found for row in one.problem.constraints]
    if kind == "equalities":
        assert all(row.lower == row.upper for row in rows)
    if kind == "caps":
        assert all((row.coefficients != 0).sum() == 1 for row in rows)


@pytest.mark.parametrize(
    ("rewards", "scenario"),
    [
        (sx.Gaussian(2.0), "anytime"),
        (sx.Bernoulli(), "end-of-time"),
        (sx.Poisson(), "anytime"),
        (sx.Bounded(-1, 3), "end-of-time"),
    ],
)
def test_hardness_is_met(rewards, scenario):
    found = sx.random_instances(
        1, arms=4, hardness=(300, 400), rewards=rewards, scenario=scenario, seed=1
    )
    for one in found:
        assert one.problem.rewards == rewards
        assert 299 < sx.lower_bound(one.problem).characteristic_time < 401


def test_a_seed_gives_the_same_instances_however_many():
    many, few = sx.random_instances(5, seed=9), sx.random_instances(2, seed=9)
    assert [one.problem for one in many[:2]] == [one.problem for one in few]
    assert len({one.problem for one in many}) == 5
    assert sx.random_instances(1, seed=10)[0].problem != few[0].problem


def test_what_cannot_be_drawn_is_said(monkeypatch):
    with pytest.raises(
        sx.SettingError, match=r"no kind of constraints 'cap'\. Did you mean 'caps'"
    ):
        sx.random_instances(1, kinds=["cap"])
    with pytest.raises(sx.SettingError, match="hardness is a characteristic time"):
        sx.random_instances(1, hardness=0)
    with pytest.raises(sx.SettingError, match="kinds is empty"):
        sx.random_instances(1, kinds=[])
    monkeypatch.setattr(drawing, "TRIES", 3)
    with pytest.raises(sx.SettingError, match="none of 3 drawn instances"):
        sx.random_instances(1, hardness=1e-3, rewards=sx.Bernoulli())


SETTINGS = {"runs": 4, "threshold": "gk16", "seed": 3}


@pytest.fixture(scope="module")
def instances():
    return sx.random_instances(3, arms=3, constraints=1, hardness=(5, 20), seed=2)


@pytest.fixture(scope="module")
def compared(instances):
    return sx.compare(instances, ["uniform"], **SETTINGS)


def test_a_comparison_is_its_simulations(instances, compared):
    rows = list(csv.DictReader(io.StringIO(compared.to_csv())))
    assert len(rows) == 3 * 4
    for i, one in enumerate(instances):
        alone = sx.simulate(one.problem, sampler="uniform", **SETTINGS)
        own = [row for row in rows if row["instance"] == one.name]
        assert [int(row["stopping_time"]) for row in own] == alone.stopping_times.tolist()
        ratio = np.mean([int(row["stopping_time"]) / float(row["lower_bound"]) for row in own])
        assert compared.ratios()[i, 0] == pytest.approx(ratio)
    (row,) = compared.summary()
    assert row["x bound: median"] == pytest.approx(np.median(compared.ratios()))
    assert row["best on"] == 3
    assert compared.to_text().splitlines()[1].startswith("uniform")
    assert len(compared.by_instance()) == 3


def test_an_interrupted_comparison_goes_on(instances, compared, tmp_path, monkeypatch):
    calls, run = [], comparing.run_plan

    def counted(plan, **options):
        calls.append(plan)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(plan, **options)

    monkeypatch.setattr(comparing, "run_plan", counted)
    with pytest.raises(KeyboardInterrupt):
        sx.compare(instances, ["uniform"], folder=tmp_path, **SETTINGS)
    steps = []
    again = sx.compare(
        instances, ["uniform"], folder=tmp_path, progress=lambda *x: steps.append(x), **SETTINGS
    )
    assert len(calls) == 4  # two before, one interrupted, one that was missing
    assert steps[-1] == ("random-2-2, uniform", 2, 3)
    assert again.to_csv() == compared.to_csv()
    sx.compare(instances, ["uniform"], folder=tmp_path, **{**SETTINGS, "seed": 4})
    assert len(calls) == 7  # other settings are other runs


def test_instances_that_cannot_be_compared():
    free = sx.Problem(2, means=[1.0, 0.0])
    with pytest.raises(sx.SettingError, match="at least one instance and one sampler"):
        sx.compare([], ["uniform"])
    with pytest.raises(sx.SettingError, match="two instances are called 'star'"):
        sx.compare([sx.catalog.instance("star")] * 2, ["uniform"])
    with pytest.raises(sx.SettingError, match="a Problem with means, or the path"):
        sx.compare({"x": 3}, ["uniform"])
    with pytest.raises(sx.SettingError, match="nothing to compare on 'instance 1'"):
        sx.compare([free.replace(delta=0.5)], ["uniform"])
    with pytest.raises(sx.MeansError, match="no means given"):
        sx.compare([free.replace(means=None)], ["uniform"])


def made_up_comparison(instances=8, cap=10_000_000):
    problems = [sx.Problem(3, means=[1.0, 0.5 + i / 100, 0.2]) for i in range(instances)]
    names = ("uniform", "a_sampler_of_my_own_with_a_rather_long_name")
    return comparing.Comparison(
        tuple(f"i{i}" for i in range(instances)),
        names,
        tuple(
            tuple(
                made_up(p, scale=2.0 + 3 * s, runs=9, seed=i, cap=cap, name=name)
                for s, name in enumerate(names)
            )
            for i, p in enumerate(problems)
        ),
    )


@pytest.mark.parametrize("cap", [10_000_000, 400, 4])
def test_a_picture_of_many_instances(cap):
    comparison = made_up_comparison(cap=cap)
    figure = comparison_figure(comparison)
    assert_texts_apart(figure)
    width, height = figure.get_size_inches()
    assert width < 14
    assert height < 7
    profile = next(axes for axes in figure.axes if axes.get_label() == "profile")
    ratios = comparison.ratios()
    curves = [line for line in profile.lines if line.get_drawstyle() == "steps-post"]
    for s, line in enumerate(curves):
        x, y = line.get_xdata(), line.get_ydata()
        for level in (1.5, 2.5, 4.0):  # the curve at a level is a share of instances
            reached = y[np.searchsorted(x, level, side="right") - 1] if level >= x[0] else 0.0
            if level <= x[-1]:
                assert reached == pytest.approx((ratios[:, s] <= level).mean())
    said = " ".join(text.get_text() for text in texts(figure))
    capped = int(np.isinf(ratios[:, 0]).sum())
    assert (f"{capped} capped" in said) == (capped > 0)
    assert "a_sampler_of_my_own_with_a_rather_long_name" in said  # in the legend, whole


def test_results_of_many_instances_make_one_picture_of_sane_size():
    comparison = made_up_comparison()
    every = [result for group in comparison.results for result in group]
    height = results_figure(every).get_size_inches()[1]
    assert height == comparison_figure(comparison).get_size_inches()[1]
    ragged = results_figure(every[:-1])  # one sampler misses an instance
    assert "Not shown: 2 more settings." in {text.get_text() for text in texts(ragged)}


def test_pictures_for_latex(tmp_path):
    comparison = made_up_comparison(3)
    sx.plot_comparison(comparison, tmp_path / "x.pdf")
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
    sx.plot_comparison(comparison, tmp_path / "x.pgf")
    text = (tmp_path / "x.pgf").read_text()
    assert text.count("\\begin{pgfscope}") == text.count("\\end{pgfscope}") > 10
    assert r"a\_sampler" in text
    assert r"100\%" in text
    # By itself: no raster file beside it, and nothing of this machine.
    assert "pgfimage" not in text
    assert "includegraphics" not in text
    assert str(tmp_path.parent) not in text
    assert {file.name for file in tmp_path.iterdir()} == {"x.pdf", "x.pgf"}
    depth = 0
    for sign in text.replace("\\{", "").replace("\\}", "").replace("\\\\", ""):
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0
