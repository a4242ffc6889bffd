"""What a study does, wherever it is: one suite for `Study` and for `RemoteStudy`."""

import csv
import inspect
import json
from typing import get_type_hints

import numpy as np
import pytest
from pydantic import TypeAdapter

import simplexplore as sx
from servers import Thread
from trials import explore, trial
from workers import MEANS, star


def result_of(call):
    """The type that a function or a property says it returns."""
    return get_type_hints(call.fget if isinstance(call, property) else call)["return"]


# What `sx.connect(...).open(...)` returns.
RemoteStudy = result_of(result_of(sx.connect).open)
SHAPES = {name: result_of(getattr(sx.Study, name)) for name in ("about", "status", "answer")}
SHAPES |= {name: result_of(getattr(sx.Study, name)) for name in ("history", "events", "list")}
Checked, Event = result_of(sx.Study.check_csv), result_of(sx.Study.void)


class Local:
    """Studies of a store."""

    def __init__(self, url):
        self.url = url

    def create(self, *arguments, **settings):
        return sx.Study.create(self.url, *arguments, **settings)

    def open(self, name):
        return sx.Study.open(self.url, name)

    def list(self, **options):
        return sx.Study.list(self.url, **options)


@pytest.fixture(params=["local", "remote"])
def studies(request, sqlite_url):
    """Makes, finds and lists studies."""
    if request.param == "local":
        yield Local(sqlite_url)
        return
    with Thread(sqlite_url) as running, sx.connect(running.url) as service:
        yield service


@pytest.fixture
def study(studies):
    return studies.create("mix", star(delta=0.1), "ctns", expire_after=60.0)


def drive(study, rounds, batch=5):
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        if study.stopped:
            break
        study.tell_many([(pull, float(rng.normal(MEANS[pull.arm]))) for pull in study.ask(batch)])
    return study


def fits(kind, value):
    """Whether plain data is what a type says, with nothing left over."""
    return TypeAdapter(kind).validate_python(value, strict=True) == value


# ---------------------------------------------------------------------- the interface

# Attributes of a sx.Study, properties of a RemoteStudy.
FIXED = {"name", "created", "problem", "seed", "expire_after"}
# The service gives no event back for a note, and does not count what it exports.
WITHOUT_RESULT = {"note", "export"}


def public(kind):
    return {name: one for name, one in vars(kind).items() if not name.startswith("_")}


def test_names():
    of_stores = {"create", "open", "list", "backup"}
    assert set(public(RemoteStudy)) - FIXED == set(public(sx.Study)) - of_stores


@pytest.mark.parametrize("name", sorted(set(public(RemoteStudy)) - FIXED))
def test_signatures(name):
    here, there = (inspect.getattr_static(kind, name) for kind in (sx.Study, RemoteStudy))
    assert isinstance(here, property) == isinstance(there, property)
    if isinstance(here, property):
        here, there = here.fget, there.fget
    here, there = inspect.signature(here), inspect.signature(there)
    assert list(here.parameters.values()) == list(there.parameters.values())
    if name not in WITHOUT_RESULT:
        assert here.return_annotation == there.return_annotation


def test_types(studies, study):
    pulls = study.ask(7)
    assert all(isinstance(pull, sx.Pull) for pull in pulls)
    told = study.tell_many([(pull, MEANS[pull.arm]) for pull in pulls])
    assert all(isinstance(one, sx.Told) for one in told)
    study.note("hello", key="k")
    study.extend(0.05)
    for _ in range(2):
        assert fits(SHAPES["about"], study.about)
        assert fits(SHAPES["status"], study.status())
        assert fits(SHAPES["answer"], study.answer)
        assert fits(SHAPES["history"], study.history())
        assert fits(SHAPES["events"], study.events())
        assert fits(SHAPES["list"], studies.list())
        drive(study, 100, batch=50)
    assert study.answer is not None
    status = study.status()
    assert json.loads(json.dumps(status, allow_nan=False)) == status


# ---------------------------------------------------------------------- behaviour


def test_asking_and_telling(study):
    pulls = study.ask(6)
    assert sorted(pull.arm for pull in pulls[:5]) == list(MEANS)
    assert len({pull.id for pull in pulls}) == 6
    told = study.tell(pulls[0], 0.25)
    assert told == sx.Told(pulls[0].id, pulls[0].arm, 0.25, "told", False)
    assert study.tell(pulls[0].id, 0.25).outcome == "repeated"
    assert study.tell(arm="b", reward=1).outcome == "elsewhere"
    assert study.tell_many([]) == []
    outcomes = [one.outcome for one in study.tell_many([(pulls[1], 1.0), sx.Reward(1.0, arm="c")])]
    assert outcomes == ["told", "elsewhere"]
    kinds = [event["event"] for event in study.events()]
    assert kinds == ["asked"] * 6 + ["told", "elsewhere", "told", "elsewhere"]
    assert [event["seq"] for event in study.events()] == list(range(1, 11))
    assert study.events(after=8) == study.events()[8:]
    assert study.events(after=1, limit=2) == study.events()[1:3]
    assert list(study.each_event()) == study.events()
    assert study.head == 10
    assert study.status()["pending"] == 4
    assert study.verify()


def test_keys(studies, study):
    pulls = study.ask(2, key="week 3")
    assert study.ask(2, key="week 3") == pulls
    assert study.tell(arm="a", reward=1.0, key="r").outcome == "elsewhere"
    assert study.tell(arm="a", reward=1.0, key="r").outcome == "repeated"
    for _ in range(2):
        study.note("spring", key="n")
        study.extend(0.05, key="e")
    assert study.head == 5
    made = studies.create("other", star(), key="c")
    assert studies.create("other", star(), key="c").created == made.created
    with pytest.raises(sx.ConflictError, match="the key 'week 3' was used for another request"):
        study.ask(3, key="week 3")


def test_expiry(clock, study):
    pulls = study.ask(2)
    clock.now += 61
    assert study.status()["overdue"] == 2
    study.ask()
    status = study.status()
    assert (status["expired"], status["pending"], status["overdue"]) == (2, 1, 0)
    assert study.tell(pulls[0], 0.5).outcome == "late"


def test_stopping_and_extending(studies, study):
    assert study.answer_in_words == "No answer yet."
    drive(study, 200, batch=50)
    answer = study.answer
    assert study.stopped
    assert study.wait() == study.answer
    assert studies.open("mix").answer == answer
    assert set(answer["mix"]) == {"a", "d"}
    assert study.answer_in_words.startswith("The answer, wrong with probability at most 0.1: ")
    assert study.status()["state"] == "stopped"
    assert study.status()["to_go"] == 0
    assert studies.list()[0]["answer"] == answer
    with pytest.raises(sx.StoppedError, match=r"hands out no more pulls\. The answer"):
        study.ask()
    study.extend(1e-9)
    assert not study.stopped
    assert study.wait(timeout=0) is None
    assert study.ask()
    assert study.verify()


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda study: study.tell("x-1-0000", 1.0), sx.PullError, "belongs to another study"),
        (lambda study: study.tell("x", 1.0), sx.PullError, "is not the id of a pull"),
        (lambda study: study.tell(reward=1.0), sx.PullError, "name the pull, or the arm"),
        (lambda study: study.tell(arm="q", reward=1.0), sx.SettingError, "there is no arm 'q'"),
        (lambda study: study.tell(arm="a", reward=float("nan")), sx.RewardError, "finite"),
        (lambda study: study.ask(0), sx.SettingError, "n"),
        (lambda study: study.extend(0.5), sx.SettingError, "a smaller delta: it has 0.1, got 0.5"),
        (lambda study: study.extend(2.0), sx.ProblemError, "between 0 and 1"),
        (lambda study: study.tell_many([("x", 1.0)] * 100_001), sx.TooLargeError, "at most"),
        (lambda study: study.export("x.xml"), sx.SettingError, "the ending says"),
        (lambda study: study.import_csv("none.csv"), sx.SettingError, "none.csv: cannot read it"),
    ],
)
def test_refusals(study, call, kind, words):
    with pytest.raises(kind, match=words):
        call(study)
    assert study.head == 0


def test_unknown_and_taken_names(studies):
    studies.create("mix", star())
    with pytest.raises(sx.UnknownStudyError, match="there is no study 'none'"):
        studies.open("none")
    with pytest.raises(sx.ConflictError, match="there is a study 'mix'"):
        studies.create("mix", star())
    with pytest.raises(sx.SettingError, match="a study's name is one line"):
        studies.create(" mix", star())


def test_which_reward_is_wrong(study):
    one, two = study.ask(2)
    with pytest.raises(sx.ConflictError, match=r"^reward 3: .* Nothing was recorded") as caught:
        study.tell_many([(one, 1.0), (two, 2.0), (one, 3.0)])
    assert caught.value.place.row == 2
    with pytest.raises(sx.SettingError, match=r"^there is no arm 'q'") as caught:
        study.tell(arm="q", reward=1.0)
    assert caught.value.place.row == 0
    assert study.head == 2


@pytest.mark.parametrize("rows", [1, 3])
def test_which_line_is_wrong(study, tmp_path, rows):
    file = tmp_path / "week.csv"
    good = "arm,reward\n\n" + "a,1.5\n" * rows
    file.write_text(good)
    assert [one.outcome for one in study.import_csv(file)] == ["elsewhere"] * rows
    # The first and the last row.
    for text, line in (
        (good.replace("a,1.5", "q,1.5", 1), 3),
        (good.removesuffix("a,1.5\n") + "q,1", rows + 2),
    ):
        file.write_text(text)
        with pytest.raises(sx.SettingError) as caught:
            study.import_csv(file)
        assert str(caught.value).startswith(f"{file}, line {line}: there is no arm 'q'. Known: a, ")
        assert (caught.value.place.file, caught.value.place.line) == (str(file), line)
    file.write_text(good + "a,much\n")
    with pytest.raises(sx.SettingError, match="the reward 'much' is not a number") as caught:
        study.import_csv(file)
    assert (caught.value.place.line, caught.value.place.field) == (rows + 3, "reward")
    assert study.head == rows


def test_correcting(study):
    one, two = study.ask(2)
    study.tell(one, 9.0)
    study.tell(arm="a", reward=8.0)
    assert study.pending() == [two]
    event = study.void(one.id, reason="spilt", key="v")
    assert fits(Event, event)
    assert study.void(one, reason="spilt", key="v") == event
    assert study.void(event=4, reason="another")["voids"] == 4
    assert study.pending() == [one, two]
    assert (study.status()["rewards"], study.status()["voided"]) == (0, 2)
    with pytest.raises(sx.PullError, match="has no reward"):
        study.void(one, reason="spilt")
    assert study.tell(one, 1.0).outcome == "told"
    assert fits(SHAPES["events"], study.events())
    assert study.verify()


def test_pausing_and_archiving(studies, study):
    study.pause()
    with pytest.raises(sx.PausedError, match="'mix' is paused and gives no pulls"):
        study.ask()
    study.tell(arm="a", reward=1.0)
    study.archive()
    assert studies.list() == []
    assert [one["name"] for one in studies.list(archived=True)] == ["mix"]
    with pytest.raises(sx.PausedError, match="'mix' is archived and takes no rewards"):
        study.tell(arm="a", reward=1.0)
    assert study.state == studies.open("mix").state == "archived"
    study.resume()
    assert study.state == "running"
    assert fits(SHAPES["list"], studies.list())
    assert study.ask()


def test_checking_a_file(study, tmp_path):
    file = tmp_path / "week.csv"
    pull = study.ask()[0]
    file.write_text(f"pull;arm;reward\n{pull.id};;0,5\n;q;1\n;b;x\n;b;1\n{pull.id};;2\n")
    found = study.check_csv(file)
    assert fits(Checked, found)
    assert [(row["line"], row["outcome"]) for row in found["rows"]] == [
        (2, "told"),
        (5, "elsewhere"),
    ]
    assert [(fault["line"], fault["text"][:20]) for fault in found["faults"]] == [
        (3, "there is no arm 'q'."),
        (4, "the reward 'x' is no"),
        (6, f"pull '{pull.id}' has"[:20]),
    ]
    assert study.head == 1
    file.write_text(f"pull;arm;reward\n{pull.id};;0,5\n;b;1,25\n")
    for outcomes in (["told", "elsewhere"], ["repeated", "repeated"]):
        told = study.import_csv(file, key="k")
        assert [one.outcome for one in told] == outcomes
    assert [event.get("reward") for event in study.events()] == [None, 0.5, 1.25]


def test_export(study, tmp_path):
    drive(study, 3)
    study.ask()
    study.export(tmp_path / "study.json")
    written = json.loads((tmp_path / "study.json").read_text())
    assert written["study"] == {**study.about, "answer": study.answer}
    assert [pull["outcome"] for pull in written["pulls"]] == ["told"] * 15 + ["pending"]
    study.export(tmp_path / "study.csv")
    assert len((tmp_path / "study.csv").read_text().splitlines()) == 17


def test_what_was_fixed(clock, studies):
    made = studies.create("fixed", star(delta=0.1), "uniform", seed=3, expire_after=None)
    assert (made.name, made.seed, made.expire_after) == ("fixed", 3, float("inf"))
    assert made.created == clock.now
    assert made.problem == star(delta=0.1)
    assert made.about == studies.open("fixed").about
    assert made.about["problem"] == made.problem.to_text()
    assert "fixed" in repr(made)
    with made as same:
        assert same is made
    assert made.ask()  # closed, it opens again


# ---------------------------------------------------------------------- measured limits


@pytest.mark.parametrize("limit", [0.5, -1.0])
def test_measured_limits(studies, limit):
    study = studies.create("dose", trial(limit), seed=1)
    shapes = (
        (SHAPES["status"], study.status),
        (SHAPES["answer"], lambda: study.answer),
        (SHAPES["history"], study.history),
        (SHAPES["events"], study.events),
    )
    pulls = study.ask(3)
    told = study.tell(pulls[0], 0.25, measured={"toxicity": 1})
    assert told == sx.Told(pulls[0].id, pulls[0].arm, 0.25, "told", False)
    assert study.tell(pulls[0].id, 0.25, measured={"toxicity": 1.0}).outcome == "repeated"
    assert study.events()[-1]["measured"] == {"toxicity": 1.0}
    assert study.tell(arm="strong", reward=1, measured={"toxicity": 0.9}).outcome == "elsewhere"
    study.tell_many(
        [(pulls[1], 0.0, {"toxicity": 0.0}), sx.Reward(0.1, pulls[2].id, measured={"toxicity": 0})]
    )
    for kind, value in shapes:
        assert fits(kind, value())
    explore(study)
    for kind, value in shapes:
        assert fits(kind, value())
    assert study.verify()
    answer, status = study.answer, study.status()
    (row,) = status["measured"]
    assert answer["infeasible"] == (limit < 0)
    if limit < 0:
        assert answer["policy"] is answer["value"] is status["policy"] is row["p_value"] is None
        assert study.answer_in_words == (
            "The answer, wrong with probability at most 0.2: no mix keeps toxicity below -1."
        )
    else:
        assert answer["value"] == pytest.approx(status["value"])
        assert row["value"] <= limit + row["tolerance"]
        low, high = row["value_interval"]
        assert low < row["value"] < high
        assert 0 < row["p_value"] <= 0.2
        # Its confidence is that of the answer: enough for delta.
        assert status["confidence"] >= 0.8
        assert "within 0.5 of the best mix that keeps toxicity below 0.5 (tolerance 0.3)" in (
            study.answer_in_words
        )
    with pytest.raises(sx.StoppedError, match="has stopped"):
        study.ask()


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (None, "toxicity is missing"),
        ({}, "toxicity is missing"),
        ({"toxicty": 0.1}, "no measured row 'toxicty'. Did you mean 'toxicity'"),
        ({"toxicity": 0.1, "x": 1}, "no measured row 'x'"),
        ({"toxicity": 2e150}, r"finite numbers, at most 2e\+29 in size"),
    ],
)
def test_wrong_measurements(studies, measured, words):
    study = studies.create("dose", trial(), seed=1)
    (pull,) = study.ask()
    with pytest.raises(sx.RewardError, match=words):
        study.tell(pull, 1.0, measured=measured)
    assert study.status()["rewards"] == 0


def test_measurements_of_a_study_without_limits(study):
    (pull,) = study.ask()
    with pytest.raises(sx.RewardError, match=r"no measured row 'toxicity'\. Known: none"):
        study.tell(pull, 1.0, measured={"toxicity": 0.1})


def test_other_measurements_of_the_same_pull(studies):
    study = studies.create("dose", trial(), seed=1)
    (pull,) = study.ask()
    study.tell(pull, 1.0, measured={"toxicity": 0.5})
    with pytest.raises(sx.ConflictError, match=r"reward 1.0 and the measurements {'toxicity': 0.5"):
        study.tell(pull, 1.0, measured={"toxicity": 0.25})
    # Struck out, the pull has neither reward nor measurements.
    study.void(pull, reason="mixed up")
    assert study.status()["measured"][0]["explored"] is None
    assert study.tell(pull, 1.0, measured={"toxicity": 0.25}).outcome == "told"
    assert study.status()["measured"][0]["explored"] == 0.25
    assert study.verify()


def test_measurements_in_files(studies, tmp_path):
    study = studies.create("dose", trial(), seed=1)
    first, second = study.ask(2)
    path = tmp_path / "doses.csv"
    path.write_text(f"arm;pull;toxicity;reward\n;{first.id};0,25;1\nsafe;;;2\nsafe;;x;3\n")
    found = study.check_csv(path)
    assert [row["measured"] for row in found["rows"]] == [{"toxicity": 0.25}]
    assert [(fault["line"], fault["text"]) for fault in found["faults"]] == [
        (3, "the toxicity is missing."),
        (4, "the toxicity 'x' is not a number."),
    ]
    with pytest.raises(sx.SettingError, match=r"line 3: the toxicity is missing"):
        study.import_csv(path)
    path.write_text("arm,reward\nsafe,1\n")
    for read in (study.check_csv, study.import_csv):
        with pytest.raises(sx.SettingError, match=r"Found: arm, reward\. Missing: toxicity"):
            read(path)
    path.write_text(f"pull,reward,toxicity\n{first.id},1.5,0.1\n{second.id},-0.5,1e-3\n")
    assert [one.outcome for one in study.import_csv(path)] == ["told", "told"]
    # What comes out goes into another study.
    study.export(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [*rows[0]][:5] == ["pull", "arm", "reward", "toxicity", "outcome"]
    lines = [f"{row['arm']},{row['reward']},{row['toxicity']}" for row in rows]
    path.write_text("\n".join(["arm,reward,toxicity", *lines]))
    other = studies.create("again", trial(), seed=1)
    other.import_csv(path)
    mine, others = (one.status() for one in (study, other))
    assert mine["measured"] == others["measured"]
    study.ask()
    study.export(tmp_path / "out.json")
    pulls = json.loads((tmp_path / "out.json").read_text())["pulls"]
    assert [pull["measured"] for pull in pulls] == [{"toxicity": 0.1}, {"toxicity": 0.001}, None]
