"""Many processes on one study: nothing lost, nothing doubled, decisions as in a replay."""

import os
import random
import signal
import time

import pytest

import simplexplore as sx
import workers
from nightly import NIGHTLY


@pytest.fixture
def study(url):
    study = sx.Study.create(url, "mix", workers.star(), "ctns")
    study.status()
    return study


def test_32_processes(study, url, tmp_path):
    crew = workers.Crew(url, "mix", 32, 3, 300.0, tmp_path)
    crew.stop(rewards=3 * 32)
    times = crew.wait()
    assert len(times) == 32  # none failed: nobody saw a locked database
    told = workers.acknowledged(crew.logs)
    assert len(told) >= 3 * 32
    assert workers.is_sound(study, told)
    status = study.status()
    assert status["rewards"] == len(told)
    assert status["pending"] == 0


def test_killed_workers(study, url, tmp_path):
    dice = random.Random(5)
    told = []
    for turn in range(2 if NIGHTLY else 1):
        folder = tmp_path / str(turn)
        folder.mkdir()
        crew = workers.Crew(url, "mix", 5, 2, 60.0, folder)
        for pid, log in zip(crew.pids, crew.logs, strict=True):
            time.sleep(dice.random() * 0.2)
            while not log.exists() or not log.read_text():  # it has not done anything yet
                time.sleep(0.01)
            os.kill(pid, signal.SIGKILL)
        assert crew.wait() == []
        told += workers.acknowledged(crew.logs)
    assert len(told) >= (turn + 1) * 5 * 2
    assert workers.is_sound(sx.Study.open(url, "mix"), told)
    status = study.status()
    assert status["rewards"] >= len(told)
    assert study.ask(5)  # and it goes on
