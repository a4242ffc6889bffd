"""Live studies with measured limits: replayed to the last bit, corrected, and found damaged."""

import numpy as np
import pytest

import simplexplore as sx
from commands import run
from stores import execute
from trials import OUTCOMES, explore, trial


def outcomes(seed):
    rng = np.random.default_rng(seed)
    while True:
        found = {arm: pair + rng.normal(0, 0.4, 2) for arm, pair in OUTCOMES.items()}
        yield found


def test_a_study_is_an_explorer(url):
    """One pull at a time it takes the same steps, and a replay gives the same bits."""
    study = sx.Study.create(url, "dose", trial(), seed=3)
    explorer = sx.Explorer(trial(), seed=3)
    for _, drawn in zip(range(60), outcomes(5), strict=False):
        if explorer.stopped:
            break
        (pull,) = study.ask()
        assert pull.arm == explorer.ask()
        reward, toxicity = drawn[pull.arm].tolist()
        study.tell(pull, reward, measured={"toxicity": toxicity})
        explorer.tell(pull.arm, reward, {"toxicity": toxicity})
    assert study.stopped
    assert explorer.stopped
    status, (row,) = study.status(), explorer.measured
    assert status["policy"] == explorer.policy.tolist()
    assert status["confidence"] == explorer.confidence
    (shown,) = status["measured"]
    assert [arm["high"] for arm in shown["arms"]] == row.high.tolist()
    assert shown["value_interval"] == [row.value_low, row.value_high]
    assert (shown["value"], shown["p_value"]) == (row.value, row.p_value)
    told = np.array([e["measured"]["toxicity"] for e in study.events() if "reward" in e])
    assert shown["explored"] == pytest.approx(told.mean())
    again = sx.Study.open(url, "dose")
    assert again.verify()
    assert again.answer == study.answer
    # Later rewards change nothing about the decision.
    study.tell(arm="safe", reward=5.0, measured={"toxicity": 9.0})
    assert study.status()["measured"] == status["measured"]
    assert study.status()["decision"]["later"] == 1
    assert study.verify()


def test_as_if_it_had_never_been_told(sqlite_url, clock):
    """Struck out, a reward takes its measurements along; late ones count with theirs."""
    studies = [
        sx.Study.create(sqlite_url, name, trial(delta=1e-9), expire_after=60.0) for name in "ab"
    ]
    start = clock.now
    for study in studies:
        clock.now = start
        first, second = study.ask(2)
        study.tell(first, 0.5, measured={"toxicity": 0.25})
        clock.now += 100
        study.ask()
        assert study.tell(second, 0.75, measured={"toxicity": 0.125}).outcome == "late"
        for number in (0, 1):
            if number == 1 and study is studies[1]:
                break
            told = sx.Reward(1.0, arm="strong", measured={"toxicity": 1.0 + number})
            study.tell_many([told])
    studies[0].void(event=studies[0].head, reason="another patient")
    mine, others = (study.status() for study in studies)
    for name in ("arms", "edges", "measured", "policy", "confidence", "regret_bound"):
        assert mine[name] == others[name]
    assert mine["rewards"] == 3
    assert [pull.arm for pull in studies[0].ask(20)] == [pull.arm for pull in studies[1].ask(20)]
    assert all(study.verify() for study in studies)


def test_a_correction_after_the_finding_that_there_is_none(sqlite_url):
    study = explore(sx.Study.create(sqlite_url, "none", trial(-1.0)))
    found = study.answer
    assert found["infeasible"]
    study.tell(arm="safe", reward=0.5, measured={"toxicity": 0.25})
    assert study.void(event=study.head, reason="a mistake")["decision"]["answer"] == found
    again = sx.Study.open(sqlite_url, "none")
    assert again.verify()
    assert again.answer == found
    assert again.history()[-1]["policy"] is None


@pytest.mark.parametrize(
    "data",
    [
        None,
        '{"measured": {}}',
        '{"measured": {"toxicity": "0.5"}}',
        '{"measured": {"toxicity": 0.75}}',
        '{"measured": {"toxicity": 0.25, "x": 1.0}}',
        '{"measured": {"toxicity": 0.25}, "replaces": "1"}',
    ],
)
def test_a_changed_measurement_is_found(sqlite_url, data):
    study = sx.Study.create(sqlite_url, "dose", trial())
    study.tell(arm="safe", reward=0.5, measured={"toxicity": 0.25})
    execute(sqlite_url, "UPDATE events SET data = :data", data=data)
    with pytest.raises(sx.StoreError, match="damaged: event 1 "):
        sx.Study.open(sqlite_url, "dose").verify()


@pytest.mark.parametrize(
    ("changes", "settings", "words"),
    [
        ({}, {"sampler": "cge"}, "cge sampler does not support measured limits"),
        ({}, {"threshold": "kk21"}, "'kk21' does not support measured limits"),
        ({}, {"scenario": "anytime"}, "nothing says how much toxicity that is"),
        ({}, {"tracking": "direct"}, "tracking cannot be chosen"),
        ({"epsilon": 0.0}, {}, "measured limits need epsilon > 0"),
    ],
)
def test_what_cannot_be_explored_yet(sqlite_url, changes, settings, words):
    with pytest.raises(sx.SettingError, match=words):
        sx.Study.create(sqlite_url, "dose", trial(**changes), **settings)


@pytest.mark.parametrize("width", [120, 60])
def test_in_a_terminal(sqlite_url, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))

    def shown(study):
        return " ".join(run("study", "status", study.name, "--store", sqlite_url).stdout.split())

    study = sx.Study.create(sqlite_url, "dose", trial(), seed=1)
    assert "some arms have too few rewards" in shown(study)
    explore(study)
    text = shown(study)
    (row,) = study.status()["measured"]
    assert "toxicity <= 0.5" in text
    assert f"{row['value_interval'][0]:.4g} to {row['value_interval'][1]:.4g}" in text
    assert "Arms: toxicity" in text
    none = explore(sx.Study.create(sqlite_url, "none", trial(-1.0)))
    assert "Answer: no mix keeps toxicity below -1." in shown(none)
    none.extend(1e-200)
    assert "It seems that no mix keeps toxicity below -1." in shown(none)
