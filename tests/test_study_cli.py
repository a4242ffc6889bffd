"""`simplexplore study`, as a user meets it."""

import contextlib
import csv
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import simplexplore as sx
from commands import invoke
from trials import trial

MEAL = str(Path(__file__).parent.parent / "examples" / "meal.toml")
STRICT_TRIAL = str(Path(__file__).parent.parent / "examples" / "strict_trial.toml")


@pytest.fixture(autouse=True)
def _store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIMPLEXPLORE_STORE", "meals.db")


def run(*args, code=0):
    result = invoke("study", *args)
    assert result.exit_code == code, result.output
    return result


def answer(*args):
    return json.loads(run(*args, "--json").stdout)


def refuse(*args):
    result = run(*args, code=2)
    assert result.stdout == ""
    return " ".join(result.stderr.split())


def create(*args):
    return run("create", MEAL, "--sampler", "top-two", *args)


def test_from_problem_to_answer():
    assert "Study 'meal' is ready in sqlite:///meals.db." in create("--delta", "0.2").stdout
    taste = {"pizza": 8.0, "salmon": 7.5, "lentils": 6.0}
    for _ in range(100):
        pulls = answer("ask", "meal", "-n", "40")["pulls"]
        with Path("results.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["pull", "reward"])
            writer.writerows([pull["id"], taste[pull["arm"]]] for pull in pulls)
        if answer("tell", "meal", "--file", "results.csv")["answer"]:
            break
    status = answer("status", "meal")
    assert status["state"] == "stopped"
    assert status["answer"]["policy"] == pytest.approx([12 / 39, 16 / 39, 11 / 39])
    text = run("status", "meal").stdout
    assert "Answer: 41% salmon, 30.8% pizza, 28.2% lentils." in " ".join(text.split())
    message = refuse("ask", "meal")
    assert "has stopped and hands out no more pulls" in message
    assert "0.308 pizza, 0.41 salmon, 0.282 lentils" in message
    assert "goes on with delta 1e-06" in run("extend", "meal", "--delta", "1e-6").stdout
    assert len(run("ask", "meal").stdout.splitlines()) == 1


def test_a_clinician_with_late_results():
    """Patients come in threes, results weeks later and out of order: no limit is ever exceeded."""
    run("create", STRICT_TRIAL, "--expire-after", "never", "--delta", "0.3")
    effect = {"standard": 0.0, "low": 0.0, "medium": 1.0, "high": 1.0}
    waiting = []
    for week in range(15):
        waiting += answer("ask", "strict_trial", "-n", "3")["pulls"]
        status = answer("status", "strict_trial")
        assert status["excess_bound"] is not None
        for row in status["exploration"]:
            assert (row["excess"] or 0.0) <= status["excess_bound"] + 1e-9
        if week % 5 == 4:
            # The latest first, and some are not there yet.
            arrived, waiting = waiting[:1:-1], waiting[:2]
            lines = [f"{pull['id']};{effect[pull['arm']]:g}" for pull in arrived]
            Path("results.csv").write_text("\n".join(["pull;reward", *lines]))
            answer("tell", "strict_trial", "--file", "results.csv")
    status = answer("status", "strict_trial")
    assert (status["rewards"], status["pending"]) == (43, 2)
    toxicity = next(row for row in status["exploration"] if row["name"] == "toxicity")
    assert toxicity["excess"] == 0
    run("export", "strict_trial", "trial.csv")
    exported = Path("trial.csv").read_text()
    assert exported.count(",told,2") == 43


def test_ask_and_tell():
    create()
    lines = run("ask", "meal", "-n", "3").stdout.splitlines()
    pull, arm = lines[0].split("\t")
    assert arm == "pizza"
    assert run("tell", "meal", pull, "-1.5").stdout == "Recorded 1 reward.\n"
    assert run("tell", "meal", pull, "-1.5").stdout == "Recorded 1 reward (1 known already).\n"
    assert "already has the reward -1.5" in refuse("tell", "meal", pull, "2")
    assert (
        run("tell", "meal", "--arm", "pizza", "-2").stdout
        == "Recorded 1 reward (1 made elsewhere).\n"
    )
    told = answer("tell", "meal", "--arm", "salmon", "7", "--key", "k")
    assert told["rewards"][0]["outcome"] == "elsewhere"
    assert answer("ask", "meal", "--key", "q") == answer("ask", "meal", "--key", "q")
    status = answer("status", "meal")
    assert (status["rewards"], status["pending"]) == (3, 3)
    assert run("note", "meal", "new oven").stdout == ""
    assert answer("note", "meal", "old oven")["text"] == "old oven"
    text = " ".join(run("status", "meal").stdout.split())
    assert "Best mix so far: not known yet: some arms have no reward." in text


def test_a_damaged_study_in_a_list():
    create("--name", "one")
    create("--name", "other [b]")
    with contextlib.closing(sqlite3.connect("meals.db")) as database, database:
        database.execute("UPDATE studies SET rewards = -5, changed = 1e300 WHERE name = 'one'")
    lines = run("list").stdout.splitlines()
    rows = {line.split("  ")[0]: line for line in lines}
    assert rows["one"].split() == ["one", "damaged"]  # and none of its numbers
    assert "running" in rows["other [b]"]
    words = "one: damaged: its row says rewards = -5. Put back a copy of the store."
    assert words in " ".join(" ".join(lines).split())
    assert [one.get("trouble") for one in answer("list")["studies"]] == [words[5:], None]


def test_a_list_shows_budgets_instead_of_deltas():
    create("--name", "spent", "--budget", "40000")
    run("tell", "spent", "--arm", "pizza", "2")
    create("--name", "sure", "--delta", "0.03125")
    rows = {line.split()[0]: line.split() for line in run("list").stdout.splitlines() if line}
    assert rows["spent"][4:6] == ["budget", "40,000"]
    assert rows["sure"][4] == "0.03125"
    found = {one["name"]: one for one in answer("list")["studies"]}
    assert found["spent"]["stop_when"] == {"budget": 40000}
    assert found["spent"]["progress"] == 1 / 40000
    assert "stop_when" not in found["sure"]


def test_mistakes():
    assert "there is no file 'meals.db'; 'simplexplore study create' makes one" in refuse("list")
    assert not Path("meals.db").exists()
    create()
    assert "there is a study 'meal' in sqlite:///meals.db already" in refuse("create", MEAL)
    assert "there is no study 'meel' in sqlite:///meals.db. It holds: meal." in refuse(
        "ask", "meel"
    )
    for values in ([], ["x"], ["x", "1", "2"], ["--arm", "pizza"], ["x", "--file", "f.csv"]):
        assert "tell NAME PULL REWARD, or" in refuse("tell", "meal", *values)
    message = refuse("tell", "meal", "--file", "f.csv", "--key", "k")
    assert "--file: keys and measurements have columns of their own there" in message
    assert "a study's name is one line" in refuse("create", MEAL, "--name", "")
    assert "the reward 'good' is not a number" in refuse("tell", "meal", "--arm", "pizza", "good")
    assert "tell has no option --csv" in refuse("tell", "meal", "--csv", "rewards.csv")
    assert "gaussian rewards are finite numbers; got nan" in refuse(
        "tell", "meal", "--arm", "pizza", "nan"
    )
    mistyped = refuse("tell", "meal", "--arm", "pizzza", "1")
    assert "there is no arm 'pizzza'. Did you mean 'pizza'?" in mistyped
    assert "write 90s, 15m, 12h, 7d or never" in refuse(
        "create", MEAL, "--name", "x", "--expire-after", "soon"
    )
    assert "Did you mean 'top-two'" in refuse("create", MEAL, "--name", "x", "--sampler", "top-to")
    assert "a store is SQLite or PostgreSQL" in refuse("list", "--store", "mysql://x/y")
    assert [row["name"] for row in answer("list")["studies"]] == ["meal"]
    assert "meal" in run("list").stdout


def test_import_names_the_bad_row():
    create()
    file = Path("r.csv")
    pull = answer("ask", "meal")["pulls"][0]["id"]
    for text, message in {
        "": "line 1: the first line names the columns",
        "arm,score\n": "Found: arm, score",
        "Pull,Reward,Date\n": "Found: pull, reward, Date. Remove Date.",
        "arm,arm,reward\n": "a column is named twice",
        "arm,reward\npizza,1\nsalmon\n": "line 3: 1 values for 2 columns. Nothing was recorded",
        "arm,reward\npizza,1\n\nsalmon,much\n": "line 4: the reward 'much' is not a number",
        "arm,reward\npizza,1\nsalmon,\n": "line 3: the reward is missing. Nothing was recorded.",
        "arm,reward\npizza,1\nlasagne,2\n": "line 3: there is no arm 'lasagne'",
        "arm,reward\npizza,1\nsalmon,inf\n": "line 3: gaussian rewards are finite numbers",
        "arm,reward,key\npizza,1,k\npizza,2,k\n": "line 3: the key 'k' was used for another",
        f"pull,reward\n{pull},1\nxyz,2\n": "line 3: 'xyz' is not the id of a pull",
        f"pull,reward\n{pull},1\n{pull},2\n": "line 3: pull",
        'arm,reward\npizza,"1\n': "line 2: unexpected end of data",
    }.items():
        file.write_text(text)
        assert message in refuse("tell", "meal", "--file", file), text
    file.write_bytes(b"arm,reward\npizza,\xff\n")
    assert "it is not UTF-8 text" in refuse("tell", "meal", "--file", file)
    assert "cannot read it" in refuse("tell", "meal", "--file", "none.csv")
    assert answer("status", "meal")["rewards"] == 0
    file.write_text(f"\ufeffPull, arm, REWARD, key\n{pull},,1,\n,salmon,2,k\n,salmon,2,k\n")
    outcomes = [row["outcome"] for row in answer("tell", "meal", "--file", file)["rewards"]]
    assert outcomes == ["told", "elsewhere", "repeated"]
    file.write_text("Arm,Key,N,Mean\npizza,monday,3,7.5\n")
    assert answer("tell", "meal", "--file", file)["rewards"][0]["arm"] == "pizza"
    Path("many.csv").write_text("arm,reward\n" + "pizza,7\n" * 1000)
    found = run("tell", "meal", "--file", "many.csv").stdout
    assert found == "Recorded 1,000 rewards (1,000 made elsewhere).\n"


def test_backup():
    create()
    answer("ask", "meal", "-n", "3")
    assert run("backup", "copy.db").stdout.endswith(" is copied to copy.db.\n")
    assert answer("backup", "again.db") == {"file": "again.db"}
    assert sx.Study.open("copy.db", "meal").head == 3


def test_export():
    create("--expire-after", "never")
    pulls = answer("ask", "meal", "-n", "3")["pulls"]
    run("tell", "meal", pulls[1]["id"], "0.1")
    run("tell", "meal", "--arm", "lentils", "0.30000000000000004", "--key", "k")
    run("note", "meal", "half way")
    expected = [
        (pulls[1]["id"], "salmon", 0.1, "told", None),
        (None, "lentils", 0.30000000000000004, "elsewhere", "k"),
        (pulls[0]["id"], "pizza", None, "pending", None),
        (pulls[2]["id"], "lentils", None, "pending", None),
    ]
    columns = ("pull", "arm", "reward", "outcome", "key")
    assert answer("export", "meal", "out.json") == {"file": "out.json", "pulls": 4}
    saved = json.loads(Path("out.json").read_text())
    assert [tuple(row[name] for name in columns) for row in saved["pulls"]] == expected
    assert saved["notes"][0]["text"] == "half way"
    assert sx.Problem.from_text(saved["study"]["problem"]) == sx.Problem.from_file(MEAL)
    assert run("export", "meal", "out.csv").stdout == "4 pulls: out.csv\n"
    with Path("out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    texts = [tuple("" if value is None else str(value) for value in row) for row in expected]
    assert [tuple(row[name] for name in columns) for row in rows] == texts
    assert rows[0]["asked"] < rows[0]["told"]
    assert "the ending says in which format" in refuse("export", "meal", "out.xlsx")
    assert "cannot write it" in refuse("export", "meal", "no/out.csv")


def test_correcting_pausing_and_archiving():
    create("--epsilon", "0.1")
    assert "epsilon = 0.1" in run("problem", "meal").stdout
    assert sx.Problem.from_text(run("problem", "meal").stdout) == sx.Problem.from_text(
        answer("problem", "meal")["problem"]
    )
    pull = answer("ask", "meal")["pulls"][0]
    run("tell", "meal", pull["id"], "99")
    assert "give a reason" in refuse("void", "meal", pull["id"])
    assert (
        "Voided the reward of event 2."
        in run("void", "meal", pull["id"], "--reason", "spilt").stdout
    )
    assert answer("status", "meal")["rewards"] == 0
    run("tell", "meal", "--arm", "pizza", "5")
    assert answer("void", "meal", "--event", "4", "--reason", "spilt")["voids"] == 4
    assert "is paused" in run("pause", "meal").stdout
    assert "'meal' is paused and gives no pulls" in refuse("ask", "meal")
    assert answer("archive", "meal") == {"name": "meal", "state": "archived"}
    assert answer("list")["studies"] == []
    assert "All studies here are archived (1): --archived lists them." in run("list").stdout
    assert "meal" in run("list", "--archived").stdout
    assert answer("resume", "meal") == {"name": "meal", "state": "running"}
    assert answer("verify", "meal") == {"sound": True}
    assert "The journal is complete" in run("verify", "meal").stdout


def test_waiting_for_the_answer():
    create("--delta", "0.2")
    assert run("wait", "meal", "--timeout", "0s", code=1).stdout == (
        "Study 'meal' has no answer after 0s.\n"
    )
    waiting = json.loads(run("wait", "meal", "--timeout", "0", "--json", code=1).stdout)
    assert waiting == {"name": "meal", "state": "running", "answer": None}
    assert "--timeout 'soon': write 90s" in refuse("wait", "meal", "--timeout", "soon")
    assert "there is no study 'lunch'" in refuse("wait", "lunch")
    # In a process of its own, while others tell.
    command = [sys.executable, "-m", "simplexplore", "study", "wait", "meal", "--timeout", "5m"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiter:
        study = sx.Study.open("meals.db", "meal")
        taste = {"pizza": 8.0, "salmon": 7.5, "lentils": 6.0}
        while not study.stopped:
            assert waiter.poll() is None
            study.tell_many([(pull, taste[pull.arm]) for pull in study.ask(40)])
        assert waiter.communicate(timeout=60) == (f"{study.answer_in_words}\n", None)
        assert waiter.returncode == 0
    assert answer("wait", "meal") == {
        "name": "meal",
        "state": "stopped",
        "answer": answer("status", "meal")["answer"],
    }


def test_which_rows_are_wrong():
    create()
    text = "arm;reward;key\npizza;7,5;a\nsoup;1;b\nsalmon;many;c\nlentils;6;d\n"
    Path("week.csv").write_text(text)
    found = run("tell", "meal", "--file", "week.csv", "--check", code=2).stdout
    assert "line 3: there is no arm 'soup'" in found
    assert "line 4: the reward 'many' is not a number" in found
    assert "2 rows can be imported, 2 cannot." in found
    assert answer("status", "meal")["rewards"] == 0
    good = text.replace("soup", "pizza").replace("many", "1e1")
    Path("week.csv").write_text("\ufeff" + good, encoding="utf-8")
    assert "4 rows can be imported" in run("tell", "meal", "--file", "week.csv", "--check").stdout
    assert (
        "Recorded 4 rewards (4 made elsewhere)." in run("tell", "meal", "--file", "week.csv").stdout
    )
    means = {arm["arm"]: arm["mean"] for arm in answer("status", "meal")["arms"]}
    assert means == {"pizza": 4.25, "salmon": 10.0, "lentils": 6.0}
    assert "--check is for a file" in refuse("tell", "meal", "--check", "x", "1")


def test_a_copy_replaces_no_device():
    create()
    os.mkfifo("pipe")
    assert "a device or a pipe is not replaced by a file" in refuse("backup", "pipe")
    assert Path("pipe").is_fifo()


def test_measured_limits(tmp_path):
    trial().to_file(tmp_path / "dose.toml")
    run("create", "dose.toml", "--seed", "1")
    (pull,) = answer("ask", "dose")["pulls"]
    assert "add --measured toxicity=NUMBER" in refuse("tell", "dose", pull["id"], "-0.5")
    for wrong, words in (
        ("toxicity", "write a name and a number, toxicity=0.2"),
        ("toxicity=high", "--measured toxicity: 'high' is not a number"),
        ("toxicty=1", "Did you mean 'toxicity'?"),
    ):
        assert words in refuse("tell", "dose", pull["id"], "-0.5", "--measured", wrong)
    twice = ("--measured", "toxicity=1", "--measured", "toxicity=2")
    assert "given twice" in refuse("tell", "dose", pull["id"], "-0.5", *twice)
    answer("tell", "dose", pull["id"], "-0.5", "--measured", "toxicity=-1e-3")
    assert sx.Study.open("meals.db", "dose").events()[-1]["measured"] == {"toxicity": -0.001}
    run("tell", "dose", "--arm", "strong", "1", "--measured", "toxicity=1")
    Path("doses.csv").write_text("arm,reward,toxicity\nsafe,0,0\nstrong,1,\n")
    assert "line 3: the toxicity is missing" in refuse("tell", "dose", "--file", "doses.csv")
    assert "measurements have columns of their own" in refuse(
        "tell", "dose", "--file", "doses.csv", "--measured", "toxicity=1"
    )
    (row,) = answer("status", "dose")["measured"]
    assert row["explored"] == pytest.approx(0.4995)
    assert "Measured limits" in run("status", "dose").stdout
