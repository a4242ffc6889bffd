"""Where runs are made does not matter."""

import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import simplexplore as sx
from simplexplore.errors import SettingError, TooLargeError
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.gpu import GpuEngine, for_gpu
from simplexplore.exploration.plan import prepare_simulation
from simplexplore.exploration.seeding import streams
from simplexplore.kernels.episode import simulate_queue
from simplexplore.simulation import backends
from simplexplore.simulation.blocks import Block

STAR = sx.catalog.instance("star")


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


def test_blocks_are_as_long_as_the_last_ones_say():
    """Run 0 takes longer than others: blocks of its length would be calls and little else."""
    sizes = []

    def submit(start, stop):
        sizes.append(stop - start)
        made, seconds = Future(), 1.0 if start == 0 else 1e-3 * (stop - start)
        made.set_result(Block(start, np.zeros(stop - start), None, None, seconds))
        return made

    made = list(backends._spread(submit, 1000, 2, 0.25, 300))
    assert sum(len(block.pulls) for block in made) == 1000
    assert sizes[:3] == [1, 1, 1]
    assert set(sizes[3:-1]) == {250}


def test_a_worker_that_dies_is_said_in_words():
    with ProcessPoolExecutor(1) as executor:
        executor.submit(int).result()
        for process in executor._processes.values():
            process.kill()
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


@pytest.mark.parametrize("sampler", ["top-two", "ctns"])
@pytest.mark.parametrize("ahead", [0, 1024])
def test_what_a_gpu_thread_does_gives_the_same_runs(sampler, ahead, monkeypatch):
    """The loop of a GPU's thread, uncompiled; vertices are added before or between calls."""
    monkeypatch.setattr("simplexplore.exploration.gpu.AHEAD", ahead)
    problem = sx.Problem(3, ["a1 + a2 <= 0.5"], sx.Gaussian(0.5), costs=[1, 2, 3])
    plan = prepare_simulation(problem, [1.0, 0.2, 0.4], sampler, "gk16")
    seeds, means = streams(3, range(6)), np.array([1.0, 0.2, 0.4])
    given = (means, np.full(3, 0.5), seeds, 25)
    usual = Engine(plan)
    usual.compile()
    expected = usual.simulate(*given)
    calls = []

    def launch(setting, table, run, memory, job):
        calls.append(len(job.seeds))
        with np.errstate(all="ignore"):
            simulate_queue(*for_gpu(setting, table, run, memory), job)

    found = GpuEngine(Engine(plan), launch).simulate(*given)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[2], expected[2])
    # Unless they were looked up, some run met a vertex that was not known.
    assert (len(calls) > 1) == (ahead == 0)
    assert (expected[0] < 0).any()  # one was capped


@pytest.mark.parametrize(
    ("said", "kind"),
    [("CUDA_ERROR_OUT_OF_MEMORY: ...", TooLargeError), ("CUDA_ERROR_UNKNOWN", RuntimeError)],
)
def test_a_gpu_without_free_memory_is_said_in_words(said, kind):
    def launch(*_):
        raise RuntimeError(said)

    plan = prepare_simulation(sx.Problem(2), [1.0, 0.2], "uniform", "gk16")
    with pytest.raises(kind, match="not enough free memory" if kind is TooLargeError else said):
        GpuEngine(Engine(plan), launch).simulate(np.ones(2), np.ones(2), streams(3, range(2)), 9)


def test_streams_are_those_of_numpy():
    for seed in (0, 1, 2**32 - 1, 2**32, 2**128 - 3, 2**200 + 5):
        runs = range(7, 2**32, 2**30 + 12345)
        expected = [
            np.random.SeedSequence(entropy=seed, spawn_key=(run,)).generate_state(8, np.uint64)
            for run in runs
        ]
        np.testing.assert_array_equal(
            streams(seed, runs), np.array(expected).reshape(len(runs), 2, 4)
        )


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


def test_no_gpu_is_said_in_words():
    with pytest.raises(SettingError, match=r"needs numba-cuda|finds no GPU"):
        simulated(device="gpu")


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
    monkeypatch.setattr("simplexplore.simulation.cluster.PATIENCE", 0.5)
    with (
        pytest.raises(SettingError, match="no Dask scheduler answers"),
        sx.cluster("tcp://127.0.0.1:9"),
    ):
        pass
