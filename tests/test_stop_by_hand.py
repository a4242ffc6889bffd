"""Good enough: studies that somebody stops, in a store of each kind."""

import json

import numpy as np
import pytest

import simplexplore as sx
from commands import run
from service_client import refused
from workers import MEANS, star


def told(study, n, seed=0):
    rng = np.random.default_rng(seed)
    pulls = study.ask(n)
    study.tell_many([(pull, float(rng.normal(MEANS[pull.arm]))) for pull in pulls])
    return pulls


def test_the_answer_is_that_of_the_moment(url):
    study = sx.Study.create(url, "mix", star(delta=0.1))
    with pytest.raises(sx.StudyError, match="nothing to recommend yet"):
        study.stop("tired")
    pulls = told(study, 60)
    waiting = study.ask(2)
    so_far = study.status()
    answer = study.stop("good enough", key="enough")
    assert answer["by_hand"] is True
    assert answer["reason"] == "good enough"
    assert answer["rewards"] == 60
    for name in ("policy", "value", "confidence", "regret_bound"):
        assert answer[name] == so_far[name]
    assert answer["statistic"] < answer["threshold"]
    assert study.stop("good enough", key="enough") == answer == study.answer
    assert study.state == "stopped"
    words = study.answer_in_words
    assert words.startswith("Stopped by hand after 60 samples (delta is not guaranteed)")
    assert words.endswith("Reason: good enough")
    with pytest.raises(sx.StoppedError, match="hands out no more pulls"):
        study.ask()
    with pytest.raises(sx.StoppedError, match="has stopped"):
        study.stop("again")
    # Later rewards change nothing, and without an earlier one the numbers are those without it.
    study.tell(waiting[0], 1.0)
    assert study.answer == answer
    study.void(pulls[7], reason="a broken scale")
    without = study.answer
    assert (without["by_hand"], without["rewards"]) == (True, 59)
    for one in (study, sx.Study.open(url, "mix")):
        assert one.answer == without
        assert one.verify()
    study.extend(0.05)
    assert study.answer is None
    assert study.verify()


def test_without_the_reward_that_made_an_answer_there_is_none(url):
    study = sx.Study.create(url, "two", sx.Problem(["a", "b"]))
    study.tell_many([(pull, 1.0) for pull in study.ask(2)])
    study.stop("enough")
    study.void(event=3, reason="wrong")
    assert (study.answer, study.state) == (None, "running")
    assert study.verify()


def test_reasons(sqlite_url):
    study = sx.Study.create(sqlite_url, "two", sx.Problem(["a", "b"]))
    for reason in (" ", "x" * 10_001):
        with pytest.raises(sx.SettingError, match="give a reason, a text of 1 to 10,000"):
            study.stop(reason)
    study.tell_many([(pull, 1.0) for pull in study.ask(2)])
    study.archive()
    with pytest.raises(sx.PausedError, match="is archived and cannot be stopped"):
        study.stop("enough")
    assert study.answer is None


def test_on_the_command_line(sqlite_url):
    study = sx.Study.create(sqlite_url, "two", sx.Problem(["a", "b"]))
    study.tell_many([(pull, 1.0) for pull in study.ask(2)])
    place = ("two", "--store", sqlite_url)
    stopped = run("study", "stop", *place, "--reason", "a week is over")
    assert stopped.stdout.startswith("Stopped by hand after 2 samples")
    assert json.loads(run("study", "wait", *place, "--json").stdout)["answer"] == study.answer
    again = run("study", "stop", *place, "--reason", "enough", code=2)
    assert "has stopped" in again.stderr


def test_over_http(client, study, service):
    refused(client.post(f"{study}/stop", json={}), 422, "setting", "reason")
    refused(
        client.post(f"{study}/stop", json={"reason": "x"}), 422, "study", "nothing to recommend"
    )
    remote = service.create("two", sx.Problem(["a", "b"], delta=0.1))
    remote.tell_many([(pull, 1.0) for pull in remote.ask(2)])
    answer = remote.stop("a week is over")
    assert (answer["by_hand"], answer["rewards"]) == (True, 2)
    assert remote.answer == remote.wait(0) == answer
