"""Tables at every width: no number is cut, no name is lost, what is left out is named."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import simplexplore as sx
from simplexplore.report.bound_table import print_bound
from simplexplore.report.numbers import shorten
from simplexplore.report.results_table import print_results
from simplexplore.report.study_table import print_status, print_studies
from simplexplore.report.table import Column, Table, legend, short_names, text_column

WIDTHS = (40, 53, 60, 80, 120)


def printed(show, width):
    out = io.StringIO()
    show(Console(file=out, width=width, markup=False, highlight=False, emoji=False))
    lines = out.getvalue().splitlines()
    assert all(cell_len(line.rstrip()) <= width for line in lines)
    return "\n".join(lines)


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
    assert missing <= {c.heading for c in columns if c.rank}
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


def test_a_table_too_narrow_for_its_columns_is_written_row_by_row():
    table = Table("Title", (text_column("name"), Column("mean"), Column("median")))
    table.add_row("top-two", "1,234,567,890 ± 123,456", "9,876,543,210")
    assert printed(table.print, 40).splitlines() == [
        "Title",
        "top-two",
        "  mean 1,234,567,890 ± 123,456",
        "  median 9,876,543,210",
    ]


def test_long_names_are_shortened_in_one_way_and_told_apart():
    long = ["x" * 60 + "a" + "y" * 60, "x" * 60 + "b" + "y" * 60, "short"]
    shown = short_names(long)
    assert shown["short"] == "short"
    assert len(set(shown.values())) == 3
    assert all(len(name) <= 48 for name in shown.values())
    assert legend(shown) == [f"{shown[name]}: {name}" for name in long[:2]]


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
    """What commands print, by a name."""
    bound = sx.lower_bound(PROBLEM)
    tiny = sx.lower_bound(TINY)
    dear = sx.lower_bound(PROBLEM.replace(costs=[1.0, 12345.0, 2.0, 3.0]))
    results = [
        sx.simulate(PROBLEM, sampler="uniform", threshold="gk16", runs=3, max_steps=cap, seed=seed)
        for seed, cap in ((0, None), (1_234_567, 40))
    ]
    store = f"sqlite:///{tmp_path_factory.mktemp('studies') / 's.db'}"
    with sx.Study.create(store, "a study with quite a long name", PROBLEM, "uniform") as study:
        for _ in range(3):
            for arm, reward in zip(ARMS, (1.0, 0.5, 0.4, 1234.5678), strict=True):
                study.tell(None, reward, arm=arm)
        status = study.status()
    listed = sx.Study.list(store)
    return {
        "bound": lambda console: print_bound(bound, console),
        "hostile": lambda console: print_bound(tiny, console),
        "costs": lambda console: print_bound(dear, console),
        "results": lambda console: print_results(results, console),
        "status": lambda console: print_status(status, console),
        "studies": lambda console: print_studies(listed, console),
    }


@pytest.mark.parametrize("name", ["bound", "hostile", "costs", "results", "status", "studies"])
def test_what_commands_print_is_whole_at_every_width(shows, name):
    whole = printed(shows[name], 400)
    for width in WIDTHS:
        text = printed(shows[name], width)
        assert numbers(text) <= numbers(whole), width
        for word in ("pizza", "price", "uniform", "Hundred-Foot", "study with", "second", "日本"):
            assert (word in text) == (word in whole), (width, word)
        assert text.count("…") <= whole.count("…")


def test_what_capped_runs_leave_open_is_said(shows):
    (row,) = (
        line for line in printed(shows["results"], 120).splitlines() if "1234567" in line[:30]
    )
    assert re.findall(r"> [\d.,]+", row) == ["> 40.0", "> 40", "> 40"]  # mean, median, 95%
    assert " - " in row  # and no multiple of the bound
