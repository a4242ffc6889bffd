"""Rewards as CSV: what a spreadsheet would calculate is a text, and comes back as it was."""

import csv

import pytest

import simplexplore as sx
from simplexplore.study.import_export import _FORMULA, read_rewards
from simplexplore.study.pulls import Reward

ODD = [
    "=cmd|' /C calc'!A0",
    "+1",
    "-2+3",
    "@SUM(A1)",
    "'=x",
    "''=x",
    "'plain",
    "＝x",
    "a=b",
    "plain",
]


def exported(study, path):
    study.export(path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_cells_are_no_formulas(tmp_path):
    study = sx.Study.create(tmp_path / "s.db", "mix", sx.Problem(ODD))
    rewards = [Reward(-1.5 - i, None, arm, f"{arm} key") for i, arm in enumerate(ODD)]
    study.tell_many(rewards)
    study.ask(3, key="=asked")
    rows = exported(study, tmp_path / "out.csv")
    assert [float(row["reward"]) for row in rows[: len(ODD)]] == [one.reward for one in rewards]
    for row in rows:
        assert row["reward"] == "" or row["reward"].startswith("-")  # numbers stay numbers
        for name, cell in row.items():
            assert name == "reward" or cell[:1] not in ("=", "+", "-", "@", "\t", "\r", "＝")
    # The export, without the columns that say when, is read back as it was told.
    wanted = ("arm", "reward", "key")
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, wanted, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(row for row in rows if row["reward"])
    assert read_rewards(tmp_path / "in.csv")[0] == rewards
    other = sx.Study.create(tmp_path / "s.db", "copy", sx.Problem(ODD))
    other.import_csv(tmp_path / "in.csv")
    assert [one["mean"] for one in other.status()["arms"]] == [one.reward for one in rewards]
    assert {one.outcome for one in study.import_csv(tmp_path / "in.csv")} == {"repeated"}


@pytest.mark.parametrize("text", [*ODD, "\t=1", "\r=1", ""])
def test_what_a_formula_is(text):
    assert (_FORMULA.match(text) is not None) == (text.lstrip("'")[:1] in tuple("=+-@\t\r＝"))
