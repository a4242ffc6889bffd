"""Pictures: files are written, panels show the numbers, texts stay apart."""

import functools
import re

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from matplotlib.patches import Polygon, Rectangle, Wedge

import simplexplore as sx
from instances import EXAMPLES
from nightly import crossed
from pictures import assert_texts_apart, bound_figure, texts
from simplexplore import plot_bound
from simplexplore.report.canvas import FALLBACK_FONTS

PANELS = ["policy", "end-of-time", "anytime", "constraints", "edges"]
MEASURED_PANELS = ["policy", "answer", "samples", "limits"]


def example(name):
    return sx.Problem.from_file(EXAMPLES / f"{name}.toml")


def many_arms():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 9, size=(10, 40))
    return sx.Problem(
        [f"arm number {a}" for a in range(40)],
        (rows, np.full(10, 4.5)),
        means=rng.normal(size=40),
        scenario="anytime",
    )


def long_names():
    return sx.Problem(
        [
            "A very long name of an arm that nobody would ever read to its end, would they?",
            "$5 off when you buy two or more things for $10",
            "<b>Third [bold] option</b> with brackets & _underscores_",
            "short",
            "ünïcödé ñandú and \\alpha ^ {braces}",
        ],
        {
            "the constraint with the longest name that anybody has seen so far in any project of "
            "this kind": "2*short + `$5 off when you buy two or more things for $10` <= 0.4",
        },
        means=[0.3, 0.5, 0.45, 0.6, 0.4],
        rewards=sx.Bernoulli(),
    )


PROBLEMS = {
    **{
        path.stem: (lambda path=path: sx.Problem.from_file(path))
        for path in EXAMPLES.glob("*.toml")
    },
    "many arms": many_arms,
    "long names": long_names,
    "three long names": lambda: sx.Problem(
        [
            f"The Hundred-Foot Journey of a Very Long Title, {x} Edition"
            for x in ("2nd", "3rd", "4th")
        ],
        [sx.Constraint("a limit whose name is rather long and does not fit", [0, 0, 4], upper=1.5)],
        means=[1.0, 0.99951, 0.9],
    ),
    "measured": lambda: sx.Problem(
        ["a treatment whose name is rather long and explains itself", "short"],
        means=[0.6, 0.2],
        rewards=sx.Bounded(0, 1),
        epsilon=0.1,
        measured=[
            sx.Measured(
                "side effects of all kinds as reported by those who were asked about them",
                0.5,
                low=0,
                high=1,
                means=[1, 0],
                tolerance=0.2,
            )
        ],
    ),
    "tied": lambda: sx.Problem(["a", "b", "c"], {"cap": "a + b <= 0.5"}, means=[1, 1, 0.2]),
    "all tied": lambda: sx.Problem(3, means=[1, 1, 1]),
    "corner": lambda: sx.Problem(["the first", "b", "c"], {"x": "b <= 0.5"}, means=[2, 1, 0]),
    "top": lambda: sx.Problem(3, {"low": "0.1 <= a1 <= 0.6", "r": "a2 <= 1"}, means=[1, 1.2, 2]),
    "segment": lambda: sx.Problem(3, {"x": "a1 == 1/3"}, means=[1, 2, 3]),
    "point": lambda: sx.Problem(3, {"x": "a1 == 1/3", "y": "a2 == 1/3"}, means=[1, 2, 3]),
    "one arm": lambda: sx.Problem(["only"], means=[1]),
    "two arms": lambda: sx.Problem(2, means=[1, 0]),
    "half": lambda: sx.Problem(3, means=[1, 0.5, 0], delta=0.5),
    "constant row": lambda: sx.Problem(4, {"x": "a1 + a2 + a3 + a4 <= 2"}, means=[1, 0.5, 0, 0]),
}


@functools.cache
def picture(name):
    return bound_figure(sx.lower_bound(PROBLEMS[name]()))


def panels(figure):
    return {axes.get_label(): axes for axes in figure.axes}


@pytest.mark.parametrize("name", crossed(PROBLEMS))
def test_texts_stay_apart_and_on_the_page(name):
    assert_texts_apart(picture(name))


@pytest.mark.parametrize("name", PROBLEMS)
def test_panels(name):
    problem = PROBLEMS[name]()
    labels = [axes.get_label() for axes in picture(name).axes]
    extra = ["simplex"] if problem.size == 3 else []
    extra += ["exploration", "limits"] if problem.exploration else []
    expected = MEASURED_PANELS if problem.measured else PANELS + extra
    assert sorted(labels) == sorted(expected)


@pytest.mark.parametrize("size", [3, 4])
def test_a_question_shows_samples_and_comparisons(size):
    question = sx.Question("top", m=2)
    problem = sx.Problem(size, question=question, means=[1.0, 0.7, 0.3, 0.1][:size])
    figure = bound_figure(sx.lower_bound(problem))
    assert_texts_apart(figure)
    assert set(panels(figure)) == {"end-of-time", "edges"}
    assert "Answer: top 2: a1, a2" in [text.get_text() for text in texts(figure)]


def test_bars_are_the_numbers():
    bound = sx.lower_bound(example("movies"))
    figure = bound_figure(bound)
    shown = {
        "policy": bound.policy,
        "end-of-time": bound.scenarios["end-of-time"].allocation,
        "anytime": bound.scenarios["anytime"].allocation,
    }
    for label, values in shown.items():
        bars = [p for p in panels(figure)[label].patches if isinstance(p, Rectangle)]
        assert [bar.get_width() for bar in bars] == pytest.approx(values.tolist())
        assert [bar.get_y() for bar in bars] == sorted(bar.get_y() for bar in bars)


def test_words_of_the_picture():
    figure = bound_figure(sx.lower_bound(example("star")))
    words = [text.get_text() for text in texts(figure)]
    assert "Best mix: 0.5 a, 0.5 d" in words
    assert "first: 0.5, at most 0.5" in words
    hardness = [w for w in words if "→" in w]
    assert hardness == ["d → e", "a → e", "a → b", "d → c"]
    assert words.count("binding") == 2
    assert "≥ 774.4 samples" in words


@pytest.mark.parametrize("gap", [1e-2, 1e-3, 1e-4, 3e-5, 1e-6])
def test_long_numbers_keep_their_digits(gap):
    figure = bound_figure(sx.lower_bound(sx.Problem(2), [1.0, 1.0 - gap]))
    words = [text.get_text() for text in texts(figure)]
    needed = [w for w in words if w.startswith("≥")]
    assert len(needed) == 2
    assert not any("…" in w for w in needed)


def test_edges_that_decide_are_dark():
    bound = sx.lower_bound(example("meal"))
    lines = panels(bound_figure(bound))["edges"].lines
    lengths = [line.get_xdata()[1] for line in lines]
    colours = [line.get_color() for line in lines]
    assert len(lines) == 2
    assert lengths[0] > lengths[1] > 0
    assert colours[0] != colours[1]
    assert len(bound.scenarios["end-of-time"].binding_edges) == 1


def test_gauges_show_use_and_limits():
    # Energy runs from 450 to 900 over all mixes and may reach 650.
    axes = panels(bound_figure(sx.lower_bound(example("meal"))))["constraints"]
    _, allowed, dot = axes.lines[:3]
    assert allowed.get_xdata() == pytest.approx([0, (650 - 450) / (900 - 450)])
    assert dot.get_xdata() == pytest.approx([(650 - 450) / (900 - 450)])


def test_rows_that_are_left_out_are_counted():
    bound = sx.lower_bound(many_arms())
    figure = picture("many arms")
    bars = [p for p in panels(figure)["policy"].patches if isinstance(p, Rectangle)]
    assert len(bars) == 16
    (remark,) = [t.get_text() for t in texts(figure) if t.get_text().startswith("Not shown")]
    left = len(bound.edges) - 12
    assert remark == f"Not shown: 24 arms, {left} easier comparisons, 2 constraints."


def test_no_samples_where_none_help():
    figure = picture("tied")
    assert len(panels(figure)["policy"].patches) == 3
    assert len(panels(figure)["anytime"].patches) == 0
    assert [t.get_text() for t in texts(figure)].count("a tie: never enough") == 2


def test_simplex_shows_polygon_optimum_and_cone():
    bound = sx.lower_bound(example("meal"))
    axes = panels(bound_figure(bound))["simplex"]
    whole, feasible = [p for p in axes.patches if isinstance(p, Polygon)]
    corners = whole.get_xy()[:-1]
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1)
    assert sides == pytest.approx(np.ones(3))
    best = bound.policy @ corners
    assert np.abs(feasible.get_xy() - best).max(axis=1).min() < 1e-7
    (cone,) = [p for p in axes.patches if isinstance(p, Wedge)]
    assert cone.center == pytest.approx(tuple(best))
    names = {text.get_text() for text in [*axes.texts, *axes.get_legend().get_texts()]}
    assert names >= {"pizza", "salmon", "lentils", "energy", "price"}


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".PDF", b"%PDF"), (".svg", b"<?xml")]
)
def test_suffix_chooses_the_format_and_same_bound_same_bytes(tmp_path, suffix, start):
    bound = sx.lower_bound(example("meal"))
    first, second = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
    plot_bound(bound, first)
    plot_bound(bound, second)
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()


def test_dollar_signs_are_no_formula(tmp_path):
    path = tmp_path / "x.svg"
    plot_bound(sx.lower_bound(long_names()), path)
    assert "$10" in path.read_text(encoding="utf-8")


def drawn(path, *names):
    plot_bound(sx.lower_bound(sx.Problem(names, means=[0.5, 0.3])), path)
    return path.read_bytes()


def test_letters_come_from_a_usual_font_or_are_boxes(tmp_path, caplog):
    glyphs = {".notdef": TTGlyphPen(None).glyph(), "sushi": TTGlyphPen(None).glyph()}
    font = FontBuilder(1000)
    font.setupGlyphOrder(list(glyphs))
    font.setupCharacterMap({ord("寿"): "sushi"})
    font.setupGlyf(glyphs)
    font.setupHorizontalMetrics(dict.fromkeys(glyphs, (1000, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": FALLBACK_FONTS[0], "psName": "Fallback"})
    font.setupOS2()
    font.setupPost()
    font.save(tmp_path / "font.ttf")
    installed = font_manager.fontManager.ttflist.copy()
    font_manager.fontManager.addfont(tmp_path / "font.ttf")
    try:
        assert b"Fallback" in drawn(tmp_path / "1.pdf", "寿", "b")
        assert b"Fallback" not in drawn(tmp_path / "2.pdf", "a", "b")
    finally:
        font_manager.fontManager.ttflist[:] = installed
    # No font has it: neither a warning, which would fail this test, nor a word in the log.
    assert drawn(tmp_path / "3.png", "\U0001309e", "b")
    assert not caplog.records


def test_bad_paths(tmp_path):
    bound = sx.lower_bound(example("star"))
    with pytest.raises(sx.SettingError, match=r"must end in one of \.pdf, \.png, \.svg"):
        plot_bound(bound, tmp_path / "x.jpeg")
    with pytest.raises(sx.SettingError, match="there is no folder"):
        plot_bound(bound, tmp_path / "no" / "x.png")


def test_pyplot_is_left_alone(tmp_path):
    import sys

    plot_bound(sx.lower_bound(example("star")), tmp_path / "x.png")
    assert "matplotlib.pyplot" not in sys.modules


def test_long_names_have_one_short_form_and_numbers_are_whole():
    name = "The Hundred-Foot Journey of a Very Long Title, {} Edition"
    problem = sx.Problem(
        [name.format("Second"), "b", name.format("Third"), "d"],
        {
            "a limit whose name is so long that it cannot fit into any line at all": "4*b <= 1.5",
        },
        means=[1.0, 0.5, 0.9995, 0.95],
    )
    bound = sx.lower_bound(problem)
    said = [text.get_text() for text in texts(bound_figure(bound))]
    assert bound.samples > 1e7
    assert f"≥ {bound.samples:,.0f} samples" in said
    assert "into any line at all: 0, at most 1.5" in " ".join(said)
    legend = dict(text.split(": ", 1) for text in said if re.match("The [^:]*…[^:]*: ", text))
    assert set(legend.values()) == {problem.arms[0], problem.arms[2]}
    every = " ".join(said)
    assert every.count("…") == sum(every.count(short) for short in legend)
