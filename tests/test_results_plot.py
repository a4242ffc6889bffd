"""Pictures of simulations: panels show the numbers, texts stay apart, colours stay the same."""

import functools
import math
import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

import simplexplore as sx
from instances import EXAMPLES
from nightly import crossed
from pictures import assert_texts_apart, results_figure, texts
from simplexplore import plot_results
from simulated import made_up

SAMPLERS = ["ctns", "cge", "ptns", "uniform", "oracle", "top-two"]
SCENARIOS = ["end-of-time", "anytime"]


def example(name, **changes):
    return sx.Problem.from_file(EXAMPLES / f"{name}.toml").replace(**changes)


def six(problem, **options):
    return [made_up(problem, s, scale=1 + i, **options) for i, s in enumerate(SAMPLERS)]


def long_names():
    problem = sx.Problem(
        [
            "A very long name of an arm that nobody would ever read to its end, would they?",
            "$5 off when you buy two or more things for $10",
            "<b>Third [bold] option</b> with brackets & _underscores_",
        ],
        means=[0.3, 0.6, 0.4],
        rewards=sx.Bernoulli(),
    )
    name = "my_sampler_with_a_name_that_is_longer_than_any_column_could_ever_be"
    return [made_up(problem, name=name), made_up(problem, name="$x$_{y}"), made_up(problem)]


def many_arms():
    means = np.linspace(0, 1, 40)
    return [made_up(sx.Problem(40, means=means, scenario="anytime"), runs=10)]


def capped():
    capped_runs = made_up(example("star"), scale=30.0, cap=9000, wrong=20)
    return [
        capped_runs,
        made_up(example("star"), "ctns", runs=7, asked=1000),
        *six(example("star")),
    ]


def tied():
    problem = sx.Problem(["a", "b", "c"], means=[1, 1, 0.3])
    return [made_up(problem, runs=1), made_up(problem, "ctns", runs=2)]


CASES = {
    "one": lambda: [made_up(example("star"))],
    "six": lambda: six(example("movies")),
    "both": lambda: [r for s in SCENARIOS for r in six(example("star", scenario=s))],
    "twelve": lambda: [*six(example("star")), *six(example("star"), seed=1)],
    "far apart": lambda: [made_up(example("star"), scale=s, seed=int(s)) for s in (1.0, 300.0)],
    "very far apart": lambda: [made_up(example("star"), scale=s, seed=int(s)) for s in (1, 9e3)],
    "long names": long_names,
    "many arms": many_arms,
    "capped": capped,
    "tied": tied,
    "certain": lambda: [made_up(example("star", delta=1e-6), threshold="mixture")],
    "careless": lambda: [made_up(example("star", delta=0.5), wrong=50)],
    "settings": lambda: [
        made_up(example("star")),
        made_up(example("star", delta=0.001), threshold="mixture"),
        made_up(example("meal"), "ctns", tracking="direct"),
    ],
}


def panels(figure):
    return {axes.get_label(): axes for axes in figure.axes}


def words(figure):
    return [text.get_text() for text in texts(figure)]


def bars(axes):
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


@functools.cache
def drawn(case):
    return results_figure(CASES[case]())


@pytest.mark.parametrize("case", crossed(CASES))
def test_texts_stay_apart_and_on_the_page(case):
    figure = drawn(case)
    assert_texts_apart(figure)
    renderer = figure.canvas.get_renderer()
    # What is written on the page itself stays off what is drawn.
    for text in figure.texts:
        box = text.get_window_extent(renderer)
        assert not any(box.overlaps(axes.bbox) for axes in figure.axes), text.get_text()


def test_panels_per_group_and_result():
    labels = set(panels(drawn("settings")))
    assert labels == {f"times {g}" for g in range(3)} | {f"allocation {g} 0" for g in range(3)}
    assert len(drawn("both").axes) == 2 * (1 + 6)


def test_times_are_the_numbers():
    result = made_up(example("star"))
    axes = panels(results_figure([result]))["times 0"]
    lines = {tuple(np.round(line.get_xdata(), 6)) for line in axes.lines}
    q05, q25, q75, q95 = np.quantile(result.stopping_times, [0.05, 0.25, 0.75, 0.95])
    for points in [
        (q05, q95),
        (q25, q75),
        (result.stopping_times.mean(),),
        (result.stopping_times.max(),),
        (result.lower_bound,) * 2,
    ]:
        assert tuple(np.round(points, 6)) in lines
    shape = max(axes.lines, key=lambda line: len(line.get_xdata()))
    assert shape.get_xdata()[0] == result.stopping_times.min()
    assert shape.get_xdata()[-1] == result.stopping_times.max()


def test_density_peaks_where_the_runs_are():
    result = made_up(example("star"), runs=4000)
    shape = max(
        panels(results_figure([result]))["times 0"].lines, key=lambda line: len(line.get_xdata())
    )
    peak = shape.get_xdata()[np.argmin(shape.get_ydata())]  # the vertical axis points down
    counts, edges = np.histogram(result.stopping_times, bins=12)
    fullest = edges[np.argmax(counts)]
    width = edges[1] - edges[0]
    assert fullest - width < peak < fullest + 2 * width


def test_words_of_the_picture():
    result = made_up(example("star"), "ctns", runs=40, wrong=4)
    said = words(results_figure([result]))
    summary = result.summary()["stopping_time"]
    assert "Samples until the best mix is known: 0.5 a, 0.5 d" in said
    assert f"{summary['mean']:,.0f} ± {summary['stderr']:,.0f}" in said
    assert f"{summary['mean'] / result.lower_bound:.3g}" in said
    assert "lower bound 774.4" in said
    assert any(text.startswith("90% (") for text in said)
    assert any(text.startswith("gk16 is not proven for gaussian rewards") for text in said)
    proven = words(results_figure([made_up(example("star"), threshold="mixture")]))
    assert any(text.startswith("mixture is proven for gaussian rewards") for text in proven)


def test_correctness_with_its_interval():
    results = [made_up(example("star"), runs=40, wrong=wrong, seed=wrong) for wrong in (0, 10)]
    said = words(results_figure(results))
    assert {"100% (91.1-100)", "75% (58.8-87.4)"} <= set(said)


def test_allocations_against_the_optimal_one():
    result = made_up(example("movies"))
    axes = panels(results_figure([result]))["allocation 0 0"]
    assert [bar.get_width() for bar in bars(axes)] == pytest.approx(
        result.summary()["mean_allocation"]
    )
    best = result.bound.scenarios["anytime"].allocation
    marks = [line.get_xdata() for line in axes.lines if to_hex(line.get_color()) == "#222222"]
    assert [mark[0] for mark in marks] == pytest.approx(best.tolist())
    ends = axes.get_xlim()[1]
    assert all(mark[0] < ends for mark in marks)


def test_no_marks_where_nothing_is_optimal():
    figure = results_figure(tied())
    said = words(figure)
    assert not any("optimal allocation" in text for text in said)
    assert not any("lower bound" in text for text in said)
    assert "As good as the policy shown: b alone." in said
    axes = panels(figure)["allocation 0 0"]
    assert len(bars(axes)) == 3
    assert len(axes.lines) == 1  # the base line


def test_scale_is_logarithmic_when_needed():
    figures = {case: drawn(case) for case in CASES}
    times = {case: panels(figure)["times 0"] for case, figure in figures.items()}
    assert times["one"].get_xscale() == "linear"
    assert times["far apart"].get_xscale() == "log"
    for case, figure in figures.items():
        noted = any("logarithmic" in text for text in words(figure))
        assert noted == (times[case].get_xscale() == "log")
    assert times["one"].get_xlim()[0] == 0


def colours(results):
    """The colours of the allocations of each result, by its sampler's name, in order."""
    found = []
    for label, axes in panels(results_figure(results)).items():
        if label.startswith("allocation"):
            group, index = map(int, label.split()[1:])
            sampler = results[6 * group + index].plan.sampler.name
            found += [(sampler, to_hex(bar.get_facecolor())) for bar in bars(axes)]
    return found


def test_a_sampler_has_one_colour_everywhere():
    every = {}
    for sampler in SAMPLERS:
        every.update(colours([made_up(example("star"), sampler)]))
    assert len(set(every.values())) == len(SAMPLERS) == len(every)
    both = CASES["both"]()
    for results in (both, both[::-1]):
        assert set(colours(results)) <= every.items()
    own = dict(colours([made_up(example("star"), name=name) for name in ("mine", "yours", "mine")]))
    assert len(set(own.values())) == len(own) == 2  # the same again for the third
    assert not set(own.values()) & set(every.values())


def test_capped_and_missing_runs_are_said():
    results = capped()
    said = words(results_figure(results))
    assert {"capped", str(int(results[0].capped.sum()))} <= set(said)
    assert {"runs", "7 of 1,000", "50 of 50"} <= set(said)


def test_arms_that_are_left_out_are_counted():
    figure = results_figure(many_arms())
    assert len(bars(panels(figure)["allocation 0 0"])) == 16
    assert "Not shown: 24 arms." in words(figure)


def test_results_that_differ_in_settings_stand_apart():
    said = words(drawn("settings"))
    assert "Samples until the best mix is known" in said
    assert any("delta 0.001, threshold mixture" in text for text in said)
    assert "ctns, direct" in said


def test_samplers_that_share_a_name_are_told_apart():
    results = [made_up(example("star"), seed=seed) for seed in (4, 5, 5)]
    said = words(results_figure(results))
    assert {"uniform, seed 4", "uniform, seed 5 (1)", "uniform, seed 5 (2)"} <= set(said)


def test_results_without_runs_are_left_out():
    empty = made_up(example("star"), "ctns", runs=0, asked=5)
    assert "ctns" not in words(results_figure([empty, made_up(example("star"))]))
    for nothing in ([], [empty]):
        with pytest.raises(sx.SettingError, match="nothing to draw: no run has finished"):
            results_figure(nothing)


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".SVG", b"<?xml")],
)
def test_files(tmp_path, suffix, start):
    first, second = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
    plot_results(long_names(), first)
    plot_results(long_names(), second)
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()


def test_bad_paths(tmp_path):
    with pytest.raises(sx.SettingError, match=r"must end in one of \.pdf, \.png, \.svg"):
        plot_results([made_up(example("star"))], tmp_path / "x.jpeg")
    with pytest.raises(sx.SettingError, match="there is no folder"):
        plot_results([made_up(example("star"))], tmp_path / "no" / "x.png")


def test_infinite_and_zero_bounds_have_no_line():
    careless = made_up(example("star", delta=0.5))
    assert careless.lower_bound == 0
    assert not any("lower bound" in text for text in words(results_figure([careless])))
    assert math.isinf(tied()[0].lower_bound)


def test_capped_runs_are_no_multiple_of_the_bound():
    problem = example("star")
    bound = sx.lower_bound(problem).samples
    some = made_up(problem, scale=3.0, cap=int(4 * bound), seed=3)
    assert some.capped.any()
    assert not some.capped.all()
    every = made_up(problem, scale=9.0, cap=int(bound / 7))
    said = words(results_figure([every, some]))
    ratio = f"{some.stopping_times.mean() / bound:.3g}"
    assert f"> {ratio}" in said
    assert ratio not in said
    assert "-" in said  # of the other, nothing is known
    assert not any(f"{every.stopping_times.mean() / bound:.3g}" in text for text in said)


def test_a_long_title_takes_several_lines_and_loses_no_share():
    names = [f"{place} arm, whose name fills its column" for place in ("first", "second", "third")]
    caps = [sx.Constraint(f"cap {a}", np.eye(3)[a], -math.inf, 0.4) for a in range(3)]
    problem = sx.Problem(names, caps, means=[1.0, 0.5, 0.2])
    lines = [text for text in results_figure([made_up(problem)]).texts if text.get_size() == 14]
    assert len(lines) > 1
    title = " ".join(line.get_text() for line in lines)
    assert title.startswith("Samples until the best mix is known: 0.4 first")
    assert re.findall(r"(0\.\d+) (first|second|third)", title) == [
        ("0.4", "first"),
        ("0.4", "second"),
        ("0.2", "third"),
    ]


def test_numbers_of_seven_digits_are_whole_and_names_have_one_short_form():
    results = [
        made_up(long_names()[0].plan.problem, name=name, scale=3e5, seed=1, cap=10**9)
        for name in ("a_sampler_with_a_name_that_goes_on_and_on_and_on", "b")
    ]
    figure = results_figure(results)
    # Arms stand beside the first column of bars.
    arms = [text.get_text() for axes in figure.axes for text in axes.get_yticklabels()]
    said = words(figure) + arms
    for result in results:
        times = result.stopping_times
        error = times.std(ddof=1) / np.sqrt(len(times))
        assert f"{times.mean():,.0f} ± {error:,.0f}" in said
    short = {text for text in said if "…" in text and ": " not in text}
    full = dict(text.split(": ", 1) for text in said if "…" in text.split(": ")[0] and ": " in text)
    assert short == set(full)
    assert "a_sampler_with_a_name_that_goes_on_and_on_and_on" in full.values()
