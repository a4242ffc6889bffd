"""Numbers, and tables at every width: no number or name is lost, what is left out is named."""

import io
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import simplexplore as sx
from commands import run
from simplexplore.report.document import to_terminal
from simplexplore.report.numbers import number, percent, rough_percent, share, shorten
from simplexplore.report.results_report import results_document
from simplexplore.report.table import Column, Table, text_column

WIDTHS = (40, 53, 60, 80, 120)


def printed(show, width):
    out = io.StringIO()
    show(Console(file=out, width=width, markup=False, highlight=False, emoji=False))
    lines = out.getvalue().splitlines()
    assert all(cell_len(line.rstrip()) <= width for line in lines)
    return "\n".join(lines)


def commanded(*args):
    """What a command prints, by the width of the terminal."""

    def show(width):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            lines = run(*args).stdout.splitlines()
        assert all(cell_len(line.rstrip()) <= width for line in lines)
        return "\n".join(lines)

    return show


def numbers(text):
    """Words with digits in them, without what stands around them in a sentence."""
    return {word.strip("(),.:;") for word in text.split() if re.search(r"\d", word)}


names = st.text("abcdefgh 日é-e\u0301🧪", min_size=1, max_size=40).map(
    lambda s: " ".join(s.split()) or "x"
)


@st.composite
def tables(draw):
    columns = [
        Column(f"h{i} of", rank=draw(st.integers(0, 3))) for i in range(draw(st.integers(1, 8)))
    ]
    rows = [
        (
            draw(names),
            [f"{draw(st.integers(0, 10 ** draw(st.integers(1, 12)))):,}" for _ in columns],
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return columns, rows


@given(tables(), st.integers(40, 140))
def test_numbers_are_whole_and_columns_are_there_or_named(drawn, width):
    columns, rows = drawn
    table = Table("Some title", (text_column("name"), *columns))
    for name, cells in rows:
        table.add_row(name, *cells)
    text = printed(table.print, width)
    left = re.search(r"columns left out at this width: (.*)", text, re.DOTALL)
    missing = set(" ".join(left[1].split()).split(", ")) if left else set()
    words = text[: left.start() if left else None].split()
    for i, column in enumerate(columns):
        for _, cells in rows:
            assert cells[i] in words or column.heading in missing
    shown = [c for c in columns if c.heading not in missing]
    assert min([c.rank for c in columns if c.heading in missing], default=9) >= max(
        [c.rank for c in shown], default=0
    )
    characters = "".join(words)
    for name, _ in rows:
        for word in name.split():
            if cell_len(word) <= 14:
                assert word in characters


def test_a_table_too_narrow_for_its_columns_says_what_is_left_out():
    table = Table("Title", (text_column("name"), Column("mean"), Column("median")))
    table.add_row("top-two", "1,234,567,890 ± 123,456", "9,876,543,210")
    lines = printed(table.print, 40).splitlines()
    assert lines[0] == "Title"
    assert lines[-2] == "top-two   1,234,567,890 ± 123,456"
    assert lines[-1] == "columns left out at this width: median"


def test_long_names_are_whole():
    table = Table("Title", (text_column("name"), Column("mean")))
    table.add_row("a name that goes on and on, " * 9 + "x" * 60, "7")
    text = printed(table.print, 40)
    assert text.count("x") == 60
    assert text.split().count("goes") == 9
    assert "…" not in text


@given(st.text("ab日\u0301\u200d👩🔬", max_size=30), st.integers(6, 20))
def test_what_is_cut_is_cut_between_characters(name, longest):
    short = shorten(name, longest)
    if short != name:
        head, _, tail = short.partition("…")
        assert name.startswith(head)
        assert name.endswith(tail)
        for before, after in ((head, name[len(head) :]), (name[: -len(tail)], tail)):
            assert not before.endswith("\u200d")
            assert after[0] not in "\u0301\u200d"
        assert cell_len(short) <= longest


ARMS = ["The Hundred-Foot Journey of a Very Long Title", "pizza", "a" * 70, "Das Boot"]
PROBLEM = sx.Problem(
    ARMS,
    [
        sx.Constraint("a limit whose name is long for a column", [4, 1, 1, 0], 0.05, 1.5),
        sx.Constraint("price", [1234.5, 1, 0, 0], -float("inf"), 1000.25),
    ],
    scenario="anytime",
    means=[1.0, 0.5, 0.4, 0.95],
)


# Names that are long, begin alike or take two cells a character; numbers tiny and huge.
HOSTILE = [
    *(f"a common beginning of names {which}" for which in ("first", "second")),
    "日本語の名前がとても長い腕の名前です二十三文字くらい",
    "e\u0301" * 30,
    "👩\u200d🔬 tests 🧪",
    *(f"arm{i}" for i in range(25)),
]
TINY = sx.Problem(
    HOSTILE,
    [
        sx.Constraint("名前 of a limit with a long name", [1e-12] * 30, -1e12, 1.5e-12),
        sx.Constraint("price", [1.0, 1.0] + 28 * [0.0], -float("inf"), 0.123456789),
    ],
    sx.Gaussian(1e-12),
    means=[(30.0 - i) * 1e-12 for i in range(30)],
)


@pytest.fixture(scope="module")
def shows(tmp_path_factory):
    """What commands print, by a name: functions of a width."""
    folder = tmp_path_factory.mktemp("shown")
    files = {}
    for name, problem in {
        "bound": PROBLEM,
        "hostile": TINY,
        "costs": PROBLEM.replace(costs=[1.0, 12345.0, 2.0, 3.0]),
    }.items():
        files[name] = folder / f"{name}.toml"
        problem.to_file(files[name])
    results = [
        sx.simulate(PROBLEM, sampler="uniform", threshold="gk16", runs=3, max_steps=cap, seed=seed)
        for seed, cap in ((0, None), (1_234_567, 40))
    ]
    store = f"sqlite:///{folder / 's.db'}"
    title = "a study with quite a long name"
    with sx.Study.create(store, title, PROBLEM, "uniform") as study:
        for _ in range(3):
            for arm, reward in zip(ARMS, (1.0, 0.5, 0.4, 1234.5678), strict=True):
                study.tell(None, reward, arm=arm)
    return {
        # How many runs a forecast makes is a matter of time.
        **{name: commanded("bound", file, "--no-forecast") for name, file in files.items()},
        "results": lambda width: printed(
            lambda console: to_terminal(results_document(results), console), width
        ),
        "status": commanded("study", "status", title, "--store", store),
        "studies": commanded("study", "list", "--store", store),
    }


@pytest.mark.parametrize("name", ["bound", "hostile", "costs", "results", "status", "studies"])
def test_what_commands_print_is_whole_at_every_width(shows, name):
    whole = shows[name](400)
    for width in WIDTHS:
        text = shows[name](width)
        assert numbers(text) <= numbers(whole), width
        for word in ("pizza", "price", "uniform", "Hundred-Foot", "study with", "second", "日本"):
            assert (word in text) == (word in whole), (width, word)
        assert text.count("…") <= whole.count("…")


def test_what_capped_runs_leave_open_is_said(shows):
    lines = shows["results"](120).splitlines()
    row = next(line for line in lines if "1234567" in line[:30])
    assert re.findall(r"> [\d.,]+", row) == ["> 40.0", "> 40", "> 40"]  # mean, median, 95%
    assert " - " in row  # and no multiple of the bound


# ------------------------------------------------------------ numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (-0.2, "-0.2"),
        (999.96, "1000"),
        (123456.7, "123,457"),
        (1e-7, "1e-07"),
        (1.2341e-12, "1.234e-12"),
        (-1e-16, "0"),
        (3e17, "3e+17"),
        (np.inf, "infinite"),
        (-np.inf, "-infinite"),
    ],
)
def test_number(value, text):
    assert number(value) == text


def test_share():
    assert [share(x) for x in (1.0, 0.12345, 0.0005, 0.0004, 0.0)] == [
        "1.000",
        "0.123",
        "0.001",
        "<0.001",
        "-",
    ]


@pytest.mark.parametrize("width", range(1, 12))
def test_shorten_keeps_to_the_width(width):
    short = shorten("abcdefghij", width)
    assert len(short) == min(width, 10)
    assert ("…" in short) == (width < 10)


def test_percentages_are_rounded_to_the_nearest_and_only_all_is_all():
    for n in (7, 30, 2000):
        for k in range(n + 1):
            text = percent(k / n)
            exact = Fraction(100 * k, n)
            if text.startswith((">", "<")):
                assert exact not in (0, 100)
                assert text in (">99.9%", "<0.1%")
                assert min(exact, 100 - exact) <= Fraction(1, 20)
            else:
                assert abs(Fraction(text[:-1]) - exact) <= Fraction(1, 20)
                assert (text == "100%") == (k == n)
                assert (text == "0%") == (k == 0)
    assert percent(29 / 30) == "96.7%"


@pytest.mark.parametrize("value", [1e-9, 0.05, 9.96, 99.4, 99.49, 99.5, 99.96, 100.0, 123.4, 9e5])
def test_percentages_have_no_exponent(value):
    """From a thousandth on they read as people write them, and close to what they are."""
    text = rough_percent(value)
    assert text.endswith("%")
    assert "e" not in text or value < 1e-3
    assert float(text[:-1].replace(",", "")) == pytest.approx(value, rel=0.05)
