"""Where runs are made does not matter."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import simplexplore as sx
from engines import streams
from simplexplore import SettingError

STAR = sx.catalog.instance("star")
EXAMPLES = Path(__file__).parent.parent / "examples"


def simulated(**given):
    return sx.simulate(STAR.problem, STAR.means, "top-two", threshold="gk16", runs=60, **given)


@pytest.fixture(scope="module")
def expected():
    return simulated(workers=1)


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("run_numbers", "stopping_times", "correct", "pulls")
    )


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_executors_make_the_same_runs(pool, expected):
    seen = []
    with pool(2) as executor:
        found = simulated(executor=executor, progress=lambda done, _: seen.append(done))
    assert same(found, expected)
    assert seen == sorted(seen)
    assert seen[-1] == 60


def test_a_worker_that_dies_is_said_in_words():
    with ProcessPoolExecutor(1) as executor:
        os.kill(executor.submit(os.getpid).result(), signal.SIGKILL)
        with pytest.raises(SettingError, match="a worker has died"):
            simulated(executor=executor)


def test_ctrl_c_keeps_what_is_done():
    def interrupt(done, _):
        if done > 20:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as executor:
        found = simulated(executor=executor, progress=interrupt)
    assert 20 < len(found.run_numbers) < 60
    assert found.runs_asked == 60


def test_streams_are_those_of_numpy():
    for seed in (0, 2**32, 2**200 + 5):
        children = np.random.SeedSequence(seed).spawn(20)
        expected = [child.generate_state(8, np.uint64).reshape(2, 4) for child in children]
        np.testing.assert_array_equal(streams(seed, range(5, 20)), expected[5:])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"device": "tpu"}, "must be 'cpu' or 'gpu'; got 'tpu'"),
        ({"device": "gpu", "executor": ThreadPoolExecutor(1)}, "leave executor out"),
    ],
)
def test_what_cannot_be_is_said(given, words):
    with pytest.raises(SettingError, match=words):
        simulated(**given)


def test_a_missing_addon_is_said_in_words():
    code = (
        "import sys; sys.modules['simplexplore_gpu'] = None\n"
        "from simplexplore.cli.app import main\n"
        "sys.argv = ['simplexplore', 'simulate', 'star.toml', '--device', 'gpu', '--runs', '1']\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=EXAMPLES, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "pip install addons/gpu" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cluster_gives_the_same_runs_though_a_worker_dies(expected):
    from distributed import LocalCluster

    killed = []

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as local:

        def kill_one(done, _):
            if done > 1 and not killed:
                killed.append(next(iter(local.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        with sx.cluster(local.scheduler_address) as executor:
            found = simulated(executor=executor, progress=kill_one)
    assert killed
    assert same(found, expected)


def test_no_scheduler_is_said_in_words(monkeypatch):
    monkeypatch.setattr("simplexplore.simulation.blocks.PATIENCE", 0.5)
    with (
        pytest.raises(SettingError, match="no Dask scheduler answers"),
        sx.cluster("tcp://127.0.0.1:9"),
    ):
        pass
