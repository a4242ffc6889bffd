"""Rewards that are struck out, pauses, archives: in a store of each kind."""

import json
from itertools import pairwise

import numpy as np
import pytest

import simplexplore as sx
from stores import postgresql_at_night
from workers import star

MEANS = {"a": 3.0, "b": 1.0, "c": 0.0, "d": 2.8, "e": 1.5}

# What differs between a study in which a reward was struck out and one that never had it.
OWN = ("name", "store", "seq", "voided", "created", "now")


def told(study, batch, rng):
    pulls = study.ask(batch)
    study.tell_many([(pull, float(rng.normal(MEANS[pull.arm]))) for pull in pulls])
    return pulls


def known(study):
    return {name: value for name, value in study.status().items() if name not in OWN}


@postgresql_at_night
@pytest.mark.usefixtures("clock")
def test_as_if_it_had_never_been_told(url):
    problem = star(delta=0.1)
    one, other = (sx.Study.create(url, name, problem, "ctns") for name in ("one", "other"))
    watching = sx.Study.open(url, "one")
    for study in (one, other):
        told(study, 20, np.random.default_rng(0))
    assert watching.head == 40
    pulls = [study.ask(3) for study in (one, other)]
    one.tell(pulls[0][1], 99.0)
    assert known(one) != known(other)
    assert watching.status()["rewards"] == 21
    event = one.void(pulls[0][1], reason="a slip of the pen", key="v")
    assert (event["event"], event["voids"], event["reason"]) == ("voided", 44, "a slip of the pen")
    assert known(one) == known(other)
    assert [pull.arm for pull in one.ask(4)] == [pull.arm for pull in other.ask(4)]
    # The others see it too, and so does whoever opens the study next.
    for study in (one, watching, sx.Study.open(url, "one")):
        assert known(study) == known(other)
        assert study.status()["voided"] == 1
        assert study.verify()
    # The pull is pending again; another reward takes the place of the one that was struck out.
    assert one.void(pulls[0][1], reason="a slip of the pen", key="v") == event
    for study, pull in zip((one, other), pulls, strict=True):
        assert study.tell(pull[1], 0.9).outcome == "told"
        assert study.tell(pull[1], 0.9).outcome == "repeated"
    assert one.events(limit=100)[-1]["replaces"] == 44
    with pytest.raises(sx.ConflictError, match="if it is wrong, void it first"):
        one.tell(pulls[0][1], 99.0)
    assert known(one) == known(other)
    one.void(pulls[0][1], reason="wrong again")
    one.tell(pulls[0][1], 0.8)
    assert one.verify()


def test_what_can_be_struck_out(url):
    study = sx.Study.create(url, "mix", star())
    pull, pending = study.ask(2)
    study.tell(pull, 1.0)
    study.tell(arm="a", reward=5.0, key="k")
    head = study.head
    for arguments, kind, words in (
        ({"pull": pending, "reason": "x"}, sx.PullError, "has no reward, so there is none"),
        ({"pull": "x-1-0000", "reason": "x"}, sx.PullError, "belongs to another study"),
        ({"pull": pull.id[:-4] + "zzzz", "reason": "x"}, sx.PullError, "never handed out"),
        ({"event": 1, "reason": "x"}, sx.PullError, r"event 1 \(asked\) has no reward"),
        ({"event": 99, "reason": "x"}, sx.PullError, "there is no event 99; the last one is 4"),
        ({"reason": "x"}, sx.PullError, "name the pull, or the number"),
        ({"pull": pull, "reason": " "}, sx.SettingError, "give a reason"),
    ):
        with pytest.raises(kind, match=words):
            study.void(**arguments)
    assert study.head == head
    study.void(event=4, reason="another arm")
    with pytest.raises(sx.ConflictError, match="the reward of event 4 was voided already"):
        study.void(event=4, reason="another arm")
    with pytest.raises(sx.ConflictError, match="the key 'k' was used for another request"):
        study.void(pull, reason="x", key="k")
    # Its key is free again, as if it had never been used.
    assert study.tell(arm="b", reward=2.0, key="k").outcome == "elsewhere"
    assert study.verify()


def test_any_history_without_its_mistakes(sqlite_url, clock):
    """Two studies, one with mistakes that are struck out: they ask and know the same."""
    problem = star(delta=1e-9)
    clumsy, careful = both = [
        sx.Study.create(sqlite_url, name, problem, "top-two", expire_after=50)
        for name in ("clumsy", "careful")
    ]
    rng = np.random.default_rng(3)
    expired, struck = [], set()
    for _ in range(30):
        clock.now += float(rng.integers(30))
        seed, batch, more = (int(number) for number in rng.integers(1, 5, 3))
        for study in both:
            told(study, batch, np.random.default_rng(seed))
        waiting = [study.ask(more) for study in both]
        assert [pull.arm for pull in waiting[0]] == [pull.arm for pull in waiting[1]]
        expired.append(waiting)
        late = expired.pop(0) if rng.random() < 0.3 else None
        mistakes = [{"arm": str(rng.choice(list(MEANS)))}, {"pull": waiting[0][0]}]
        if late is not None and late is not waiting:
            mistakes.append({"pull": late[0][0]})
        for mistake in mistakes:
            if rng.random() < 0.4:
                struck.add(clumsy.tell(reward=float(rng.normal()), **mistake).outcome)
                clumsy.void(event=clumsy.head, reason="mistake")
        if late is not None:
            for study, pulls in zip(both, late, strict=True):
                study.tell(pulls[0], 0.5)
        assert known(clumsy) == known(careful)
    assert struck == {"told", "elsewhere", "late"}
    assert clumsy.status()["voided"] > 10
    for study in (clumsy, sx.Study.open(sqlite_url, "clumsy")):
        assert known(study) == known(careful)
        assert study.verify()


def stopped(url, name="mix"):
    study = sx.Study.create(url, name, star(delta=0.1), "ctns")
    rng = np.random.default_rng(1)
    while not study.stopped:
        told(study, 10, rng)
    return study


@postgresql_at_night
def test_a_decision_keeps_its_evidence(url):
    study = sx.Study.create(url, "mix", star(delta=0.1), "ctns")
    rng = np.random.default_rng(1)
    late = study.ask(5)
    while not study.stopped:
        told(study, 1, rng)
    before = study.status()
    decision = before["decision"]
    assert decision["samples"] == study.answer["rewards"] == before["rewards"]
    assert decision["statistic"] >= decision["threshold"]
    if study.answer["statistic"] >= study.answer["threshold"]:
        assert decision["statistic"] == study.answer["statistic"]
    else:  # all others were ruled out together
        assert before["confidence"] == pytest.approx(1 - np.exp(-decision["statistic"]))
    assert (decision["seq"], decision["later"]) == (study.head - 1, 0)
    assert decision["at"] == study.events()[-1]["at"]
    assert before["progress"] == 1.0
    study.tell_many([(pull, 2.0) for pull in late])
    after = study.status()
    # What was known at the decision stays; what came later stands apart.
    for name in ("value", "value_interval", "edges", "policy", "confidence", "regret_bound"):
        assert after[name] == before[name], name
    assert after["decision"] == decision | {"later": 5}
    assert sum(arm["later"] for arm in after["arms"]) == 5
    assert [arm["later_mean"] for arm in after["arms"]] == pytest.approx([2.0] * 5)
    assert [arm["mean"] for arm in after["arms"]] == [arm["mean"] for arm in before["arms"]]
    assert after["rewards"] == before["rewards"] + 5
    assert study.verify()
    assert sx.Study.open(url, "mix").status()["edges"] == before["edges"]
    # A later reward that is struck out leaves the decision alone.
    study.void(late[0], reason="spilt")
    assert study.status()["decision"] == decision | {"later": 4}
    assert study.answer == sx.Study.open(url, "mix").answer
    assert study.verify()
    study.extend(1e-6)
    assert study.status()["decision"] is None
    assert study.status()["arms"][0]["later"] == 0


@postgresql_at_night
def test_a_decision_that_hung_on_a_mistake(url):
    study = sx.Study.create(url, "mix", star(delta=0.1), "ctns")
    rng = np.random.default_rng(1)
    for _ in range(3):
        told(study, 5, rng)
    assert not study.stopped
    # A wrong unit: two arms look so good that nothing else can be best.
    for arm in ("a", "d"):
        study.tell(arm=arm, reward=500.0, unlikely="accept")
    assert study.stopped
    wrong = [one["seq"] for one in study.events() if one.get("reward") == 500.0]
    answers = [study.answer["mix"]]
    for event in wrong:
        study.void(event=event, reason="in cents")
        answers.append(study.answer and study.answer["mix"])
    taken_back = sum(one != other for one, other in pairwise(answers))
    assert answers[-1] is None
    watching = sx.Study.open(url, "mix")
    assert study.state == "running"
    assert study.status()["decision"] is None
    assert sx.Study.list(url)[0]["state"] == "running"
    assert sx.Study.list(url)[0]["answer"] is None
    assert study.ask()
    while not study.stopped:
        told(study, 5, rng)
    assert set(study.answer["mix"]) == {"a", "d"}
    # Each answer that was taken back had a delta of its own.
    for one in (study, watching, sx.Study.open(url, "mix")):
        assert one.status()["withdrawn"] == taken_back > 0
        assert one.answer_in_words.endswith(
            f"any answer ever announced is wrong is at most {0.1 * (1 + taken_back):g}."
        )
    assert study.verify()
    assert watching.answer == study.answer
    assert sx.Study.open(url, "mix").status()["decision"] == study.status()["decision"]


@postgresql_at_night
def test_a_decision_moves_to_where_the_evidence_was_enough(url):
    """Judged without a reward, it is the decision of a study that never had it."""
    study = stopped(url)
    decision = study.status()["decision"]
    kinds = {one["seq"]: one for one in study.events()}
    misleading = min(
        (seq for seq, one in kinds.items() if one.get("arm") in ("a", "d") and "reward" in one),
        key=lambda seq: kinds[seq]["reward"],
    )
    study.void(event=misleading, reason="broken")
    moved = study.status()["decision"]
    assert moved["seq"] < decision["seq"]  # without it there was enough sooner
    # A study without the reward, told the others of the same arms, decides there, too.
    left = [one for one in study.events() if "reward" in one and one["seq"] != misleading]
    twin = sx.Study.create(url, "twin", study.problem, study.about["sampler"])
    for one in left:
        if twin.tell(arm=one["arm"], reward=one["reward"]).stopped:
            break
    assert one["seq"] == moved["seq"]
    assert twin.answer["mix"] == study.answer["mix"]
    assert twin.answer["rewards"] == study.answer["rewards"]
    assert moved["later"] == study.status()["rewards"] - moved["samples"]
    # The answer is the same with and without the reward, so it was not taken back.
    assert study.status()["withdrawn"] == 0
    assert "taken back" not in study.answer_in_words
    for again in (study, sx.Study.open(url, "mix")):
        assert again.verify()
        assert again.status()["decision"] == moved


def test_paused_and_archived(url):
    study = sx.Study.create(url, "mix", star(), "ctns")
    watching = sx.Study.open(url, "mix")
    pull, other = study.ask(2, key="k")
    for _ in range(2):
        study.pause()
    assert (study.state, watching.status()["state"]) == ("paused", "paused")
    with pytest.raises(sx.PausedError, match=r"study 'mix' is paused and gives no pulls.*'resume'"):
        watching.ask()
    assert [one.id for one in watching.ask(2, key="k")] == [pull.id, other.id]
    watching.tell(pull, 1.0)
    watching.void(pull, reason="x")
    study.archive()
    assert sx.Study.list(url) == []
    assert [one["state"] for one in sx.Study.list(url, archived=True)] == ["archived"]
    for call in (
        watching.ask,
        lambda: watching.tell(other, 1.0),
        lambda: watching.void(pull, reason="x"),
        lambda: watching.extend(1e-9),
        watching.pause,
    ):
        with pytest.raises(sx.PausedError, match="is archived and"):
            call()
    watching.note("kept for the record")
    for _ in range(2):
        watching.resume()
    assert study.state == "running"
    assert study.ask()
    kinds = [one["event"] for one in study.events()]
    assert [kinds.count(kind) for kind in ("paused", "archived", "resumed")] == [1, 1, 1]
    assert study.verify()


@postgresql_at_night
def test_a_study_that_has_stopped(url):
    study = stopped(url)
    with pytest.raises(sx.StoppedError, match="has stopped: it is not running"):
        study.pause()
    answer = study.answer
    study.archive()
    assert (study.state, study.answer) == ("archived", answer)
    study.resume()
    assert (study.state, study.answer) == ("stopped", answer)


def test_exports_leave_out_what_was_struck_out(sqlite_url, tmp_path):
    study = sx.Study.create(sqlite_url, "mix", star())
    one, two = study.ask(2)
    study.tell(one, 99.0)
    study.tell(two, 1.0)
    study.tell(arm="c", reward=77.0)
    study.void(one, reason="spilt")
    study.void(event=5, reason="another dish")
    study.tell(one, 0.5)
    study.export(tmp_path / "x.json")
    written = json.loads((tmp_path / "x.json").read_text())
    assert [(row["pull"], row["reward"]) for row in written["pulls"]] == [
        (two.id, 1.0),
        (one.id, 0.5),
    ]
    assert [(row["event"], row["reward"], row["reason"]) for row in written["voided"]] == [
        (3, 99.0, "spilt"),
        (5, 77.0, "another dish"),
    ]
    assert study.export(tmp_path / "x.csv") == 2
    assert ",99.0," not in (tmp_path / "x.csv").read_text()
    # As rows of a table that is read back, they are what the study knows.
    copy = sx.Study.create(sqlite_url, "copy", star())
    text = "arm,reward\n" + "".join(f"{row['arm']},{row['reward']}\n" for row in written["pulls"])
    (tmp_path / "y.csv").write_text(text)
    copy.import_csv(tmp_path / "y.csv")
    assert [arm["mean"] for arm in copy.status()["arms"]] == [
        arm["mean"] for arm in study.status()["arms"]
    ]
