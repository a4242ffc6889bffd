"""What is known of a study, a sentence about each thing: the same on a terminal and over HTTP."""

import math

import pytest

import simplexplore as sx
from commands import run
from simplexplore.report.study_words import study_words
from studies import drive, make


def test_how_long_it_takes_at_the_pace_so_far(sqlite_url, clock):
    study = drive(make(sqlite_url, sampler="top-two", threshold="tilt", delta=1e-9), 280)
    assert " a day" not in study_words(study.status())["still to go"]  # it began just now
    clock.now += 14 * 86_400
    status = study.status()
    (low, high), days = status["to_go_range"], 14 / 280
    assert high * days >= 14  # weeks are the unit
    weeks = f"{math.floor(low * days / 7)} to {math.ceil(high * days / 7)} weeks at 20 a day."
    words = study_words(status)["still to go"]
    assert words.startswith(f"about {status['to_go']:,} samples ({low:,} to {high:,} in four runs")
    assert words.endswith(weeks.replace("0 to", "up to"))


def test_words_on_a_terminal_and_over_http(client, sqlite_url, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    study = drive(make(sqlite_url), 100)
    for _ in range(2):
        words = study_words(study.status())
        assert client.get(f"/v1/studies/{study.name}/status").json()["words"] == words
        out = run("study", "status", study.name, "--store", sqlite_url).stdout
        for about, sentence in words.items():
            assert f"{about.capitalize()}: {sentence}" in out
        assert words["confidence"].endswith("% that no mix is better.")
        drive(study, 10_000)
    assert list(words)[:2] == ["answer", "decided"]


def test_the_rival_that_is_named_is_the_least_settled(sqlite_url):
    study = drive(make(sqlite_url, sampler="top-two", threshold="tilt", delta=1e-9), 100)
    status = study.status()
    edge = min(status["edges"], key=lambda one: one["statistic"] - one["threshold"])
    shares = {arm: share for arm, share in edge["neighbour"].items() if share > 0}
    said = study_words(status)["evidence"].partition("hardest to rule out: ")[2].rstrip(".")
    named = dict(reversed(part.split(" ", 1)) for part in said.split(", "))
    assert {arm: float(share.rstrip("%")) / 100 for arm, share in named.items()} == pytest.approx(
        shares, abs=5e-4
    )


def test_before_every_arm_has_a_reward(sqlite_url):
    words = study_words(sx.Study.create(sqlite_url, "new", sx.Problem(2)).status())
    assert words["best mix so far"] == "not known yet: some arms have no reward."
    assert words["confidence"] == "not known before every arm has a reward."
    assert words["still to go"] == "too early to say."
