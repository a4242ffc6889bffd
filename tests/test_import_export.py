"""Rewards as CSV: what a spreadsheet would calculate is a text, and comes back as it was."""

import csv

import numpy as np
import pytest

import simplexplore as sx

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


def test_blanks_around_a_value_count_only_if_an_arm_is_called_so(tmp_path):
    study = sx.Study.create(tmp_path / "s.db", "mix", sx.Problem([" a", "a", "b"]))
    file = tmp_path / "in.csv"
    file.write_text("arm,reward\n a,1\na ,2\n  b ,3\n", encoding="utf-8")
    assert [told.arm for told in study.import_csv(file)] == [" a", "a", "b"]
    rows = exported(study, tmp_path / "out.csv")
    assert [row["arm"] for row in rows] == [" a", "a", "b"]


def test_cells_are_no_formulas(tmp_path):
    study = sx.Study.create(tmp_path / "s.db", "mix", sx.Problem(ODD))
    rewards = [sx.Reward(-1.5 - i, None, arm, f"{arm} key") for i, arm in enumerate(ODD)]
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
    other = sx.Study.create(tmp_path / "s.db", "copy", sx.Problem(ODD))
    other.import_csv(tmp_path / "in.csv")
    assert [one["mean"] for one in other.status()["arms"]] == [one.reward for one in rewards]
    assert {one.outcome for one in study.import_csv(tmp_path / "in.csv")} == {"repeated"}


STAR = {"arms": ["a", "b", "c"], "constraints": {"cap": "a + b <= 0.5"}, "delta": 0.49}
ROW = {"limit": "<= 0.6", "sigma": 0.5, "tolerance": 0.1}
PROBLEMS = {
    "anytime": sx.Problem(**STAR, scenario="anytime"),
    "bernoulli": sx.Problem(**STAR, rewards=sx.Bernoulli()),
    "poisson": sx.Problem(**STAR, rewards=sx.Poisson()),
    "bounded": sx.Problem(**STAR, rewards=sx.Bounded(-2, 6)),
    "unknown sigma": sx.Problem(**STAR, rewards=sx.Gaussian("unknown")),
    "measured": sx.Problem(**STAR, epsilon=0.3, measured={"dose": ROW}),
}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_file_is_told_row_by_row(tmp_path, name):
    """One transaction leaves the journal, checksums included, and the state of many."""
    problem, rng = PROBLEMS[name], np.random.default_rng(5)
    at_once, one_by_one = (
        sx.Study.create(tmp_path / file, "mix", problem) for file in ("a.db", "b.db")
    )
    pulls = [study.ask(8) for study in (at_once, one_by_one)]
    lines, means = ["pull,arm,reward,key" + ",dose" * bool(problem.measured)], (3.0, -1.0, 0.5)
    for i in range(90):  # as many as are taken in from lists
        asked = i < 24 and i % 3 == 0
        arm = problem.arms.index(pulls[0][i // 3].arm) if asked else i % 3
        reward = float(rng.normal(means[arm]))
        if name == "bernoulli":
            reward = float(rng.random() < means[arm])
        elif name == "poisson":
            reward = float(rng.poisson(3 + means[arm]))
        elif name == "bounded":
            reward = min(max(reward, -2.0), 6.0)
        dose = float(rng.normal((0.9, 0.1, 0.2)[arm])) if problem.measured else None
        key = f"k{i}" if i % 5 == 0 else None
        measured = None if dose is None else {"dose": dose}
        cells = [pulls[0][i // 3].id if asked else "", "" if asked else problem.arms[arm]]
        more = [] if dose is None else [repr(dose)]
        lines.append(",".join([*cells, repr(reward), key or "", *more]))
        given = {"measured": measured, "key": key}
        if asked:
            one_by_one.tell(pulls[1][i // 3], reward, **given)
        else:
            one_by_one.tell(None, reward, arm=problem.arms[arm], **given)
    (tmp_path / "week.csv").write_text("\n".join(lines))
    told = at_once.import_csv(tmp_path / "week.csv")
    assert [one.outcome for one in told].count("told") == 8
    one, other = (
        [{**event, "pull": None} for event in study.events()] for study in (at_once, one_by_one)
    )
    assert one == other
    assert "stopped" in [event["event"] for event in one][:-1]  # and rewards after it
    assert at_once.status() | {"name": 0, "store": 0} == one_by_one.status() | {
        "name": 0,
        "store": 0,
    }
    assert at_once.verify()
