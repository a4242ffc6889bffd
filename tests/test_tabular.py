"""Tables for pandas, spreadsheets, papers and notebooks."""

import csv
import io
import re
import sys
from html import escape
from html.parser import HTMLParser

import pytest

import simplexplore as sx
from simplexplore.tabular import Tabular, to_tex
from simulated import made_up

PROBLEM = sx.Problem(
    ["50% off & more_", "<b>b</b>", "c"],
    {"cap": "`50% off & more_` <= 0.5"},
    means=[1.0, 0.5, 0.2],
)


class Made(Tabular):
    def __init__(self, rows):
        self._made = rows

    def rows(self):
        return self._made


class Cells(HTMLParser):
    """The text of each cell, and that every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_results_give_every_run():
    results = made_up(PROBLEM, runs=7, wrong=2)
    rows = list(csv.DictReader(io.StringIO(results.to_csv())))
    assert [int(row["stopping_time"]) for row in rows] == results.stopping_times.tolist()
    assert [row["correct"] == "True" for row in rows] == results.correct.tolist()
    assert [float(row["pulls c"]) for row in rows] == results.pulls[:, 2].tolist()
    frame = results.to_frame()
    assert frame["stopping_time"].tolist() == results.stopping_times.tolist()
    assert frame["stopping_time"].mean() == results.summary()["stopping_time"]["mean"]
    assert str(frame.dtypes["correct"]) == "bool"


def test_a_table_for_latex_has_the_summary_and_no_bare_sign():
    results = made_up(PROBLEM, name="50%_mine", runs=9)
    text = results.to_latex(caption="Of a_1 & b", label="tab:x")
    assert text.startswith("\\begin{table}")
    assert r"\caption{Of a\_1 \& b}" in text
    assert r"\label{tab:x}" in text
    head, row = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert head.count("&") == row.count("&")
    assert row.startswith(r"50\%\_mine & ")
    times = results.summary()["stopping_time"]
    assert f"{times['mean']:.4g}" in row.replace(",", "")
    assert not re.search(r"(?<!\\)[%_#]", row)


def test_latex_takes_no_name_for_an_option_of_the_row_before():
    rows = Made([{"name": name} for name in ("[2pt] a", "*b", "c [1]")]).to_latex().splitlines()
    assert rows[4:7] == [r"{}[2pt] a \\", r"{}*b \\", r"c [1] \\"]


def test_columns_of_plain_text_are_as_wide_as_they_look():
    text = Made([{"name": "寿司", "x": 1.5}, {"name": "e\u0301", "x": 10.0}]).to_text()
    assert text.splitlines() == ["name    x", "寿司  1.5", "e\u0301      10"]


def test_capped_runs_leave_the_mean_open():
    results = made_up(PROBLEM, scale=30.0, cap=100, runs=9)
    assert results.capped.all()
    assert results.times_bound == float("inf")
    row = results.to_latex().splitlines()[4]
    cells = row.split(" & ")
    assert cells[3:8] == ["--"] * 5  # mean and its error, quantiles, ratio to the bound


def test_files_are_written_and_bad_places_are_said(tmp_path):
    made = Made([{"name": "=cmd", "x": 1.5}, {"name": "b", "x": None}])
    made.to_csv(tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "name,x\n'=cmd,1.5\nb,\n"
    made.to_latex(tmp_path / "x.tex")
    assert "1.5" in (tmp_path / "x.tex").read_text()
    with pytest.raises(sx.SettingError, match=r"cannot write .*no.*x\.csv.: No such file"):
        made.to_csv(tmp_path / "no" / "x.csv")


def test_without_pandas_a_message_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(sx.SettingError, match=r"install 'simplexplore\[pandas\]'"):
        Made([{"a": 1}]).to_frame()


def test_plain_text_is_aligned():
    assert Made([{"name": "a", "x": 1234.5}, {"name": "long", "x": 0.25}]).to_text() == (
        "name      x\na     1,234\nlong   0.25"
    )


def test_signs_of_tex():
    # Of the fonts that LaTeX takes by itself, none has a command for this sign.
    assert to_tex('a "b"') == r"a \char34{}b\char34{}"
    assert to_tex(r"\ $ ^ ~ {x}") == (
        r"\textbackslash{} \$ \textasciicircum{} \textasciitilde{} \{x\}"
    )


def test_notebooks_show_problems_bounds_results_and_studies(tmp_path):
    bound = sx.lower_bound(PROBLEM)
    with sx.Study.create(tmp_path / "s.db", "mix", PROBLEM, "uniform") as study:
        shown = {
            kind: Cells(thing._repr_html_()).cells
            for kind, thing in {
                "problem": PROBLEM,
                "bound": bound,
                "results": made_up(PROBLEM),
                "study": study,
            }.items()
        }
    for kind in ("problem", "bound", "study"):
        assert set(PROBLEM.arms) <= set(shown[kind])
    assert escape("`50% off & more_` <= 0.5") in PROBLEM._repr_html_()
    assert f"{bound.allocation[1]:.4g}" in shown["bound"]
    assert "uniform" in shown["results"]
    long = Made([{"x": i} for i in range(100)])._repr_html_()
    assert "and 70 more rows" in long
