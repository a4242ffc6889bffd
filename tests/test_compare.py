"""Random instances, and comparisons of samplers on many of them."""

import csv
import io
import math

import numpy as np
import pytest

import simplexplore as sx
from pictures import assert_texts_apart, comparison_figure, results_figure, texts
from simulated import made_up

KINDS = ("caps", "groups", "budgets", "ratios", "equalities", "dense")


@pytest.mark.parametrize("kind", KINDS)
def test_instances_are_as_asked_for(kind):
    found = sx.random_instances(2, arms=(3, 6), constraints=2, kinds=[kind], hardness=None, seed=5)
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


def test_instances_are_neither_easy_nor_endless_unless_asked_for():
    def times(**given):
        found = sx.random_instances(12, seed=0, **given)
        return [sx.lower_bound(one.problem).characteristic_time for one in found]

    narrow, wide = times(), times(hardness=None)
    assert 99 < min(narrow) < 300 < max(narrow) < 1001
    assert max(wide) > 10 * min(wide)


def test_a_seed_gives_the_same_instances_however_many():
    many, few = sx.random_instances(5, seed=9), sx.random_instances(2, seed=9)
    assert [one.problem for one in many[:2]] == [one.problem for one in few]
    assert len({one.problem for one in many}) == 5
    assert sx.random_instances(1, seed=10)[0].problem != few[0].problem


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(
        sx.SettingError, match=r"no kind of constraints 'cap'\. Did you mean 'caps'"
    ):
        sx.random_instances(1, kinds=["cap"])
    with pytest.raises(sx.SettingError, match="hardness is a characteristic time"):
        sx.random_instances(1, hardness=0)
    with pytest.raises(sx.SettingError, match="kinds is empty"):
        sx.random_instances(1, kinds=[])
    with pytest.raises(sx.SettingError, match=r"none of \d+ drawn instances"):
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
    assert str(compared) == compared.to_text()
    assert repr(compared) == "<Comparison: 3 instances, uniform, 4 runs each>"


def test_an_interrupted_comparison_goes_on(instances, compared, tmp_path):
    def interrupt(_, done, __):
        if done == 2:
            raise KeyboardInterrupt

    given = {"folder": tmp_path, **SETTINGS}
    with pytest.raises(KeyboardInterrupt):
        sx.compare(instances, ["uniform"], progress=interrupt, **given)
    before = kept(tmp_path)
    assert len(before) == 2
    steps = []
    again = sx.compare(instances, ["uniform"], progress=lambda *x: steps.append(x), **given)
    assert steps[-1] == ("random-2-2, uniform", 2, 3)
    assert again.to_csv() == compared.to_csv()
    after = kept(tmp_path)
    assert len(after) == 3
    assert before.items() <= after.items()  # made once
    other = sx.compare(instances, ["uniform"], **{**given, "seed": 4})
    assert other.to_csv() != compared.to_csv()
    assert len(kept(tmp_path)) == 6  # other settings are other runs


def kept(folder):
    """Results in a folder, and when each was written."""
    return {file.parent: file.stat().st_mtime_ns for file in folder.rglob("results.json")}


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
    return sx.Comparison(
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
    every = [result for group in made_up_comparison().results for result in group]
    assert "Not shown: 2 more settings." in {
        text.get_text() for text in texts(results_figure(every))
    }


def test_a_picture_for_a_paper(tmp_path):
    comparison = made_up_comparison(3)
    sx.plot_comparison(comparison, tmp_path / "x.pdf")
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
