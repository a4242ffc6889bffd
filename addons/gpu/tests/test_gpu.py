"""Runs of a GPU without one: what its threads do, as Python, and what is refused."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

import simplexplore as sx
from simplexplore import SettingError, TooLargeError
from simplexplore.exploration.engine import Engine, streams
from simplexplore.exploration.plan import prepare_simulation
from simplexplore_gpu.engine import GpuEngine, for_gpu
from simplexplore_gpu.queue import simulate_queue


@pytest.mark.parametrize("sampler", ["top-two", "ctns"])
@pytest.mark.parametrize("ahead", [0, 1024])
def test_what_a_gpu_thread_does_gives_the_same_runs(sampler, ahead, monkeypatch):
    """The loop of a GPU's thread, uncompiled; vertices are added before or between calls."""
    monkeypatch.setattr("simplexplore_gpu.engine.AHEAD", ahead)
    problem = sx.Problem(3, ["a1 + a2 <= 0.5"], sx.Gaussian(0.5), costs=[1, 2, 3])
    plan = prepare_simulation(problem, [1.0, 0.2, 0.4], sampler, "gk16")
    seeds, means = streams(3, range(6)), np.array([1.0, 0.2, 0.4])
    given = (means, np.full(3, 0.5), seeds, 25)
    usual = Engine(plan)
    usual.compile()
    expected = usual.simulate(*given)
    calls = []

    def launch(config, table, run, scratch, job):
        calls.append(len(job.seeds))
        with np.errstate(all="ignore"):
            simulate_queue(*for_gpu(config, table, run, scratch), job)

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


def test_no_gpu_is_said_in_words():
    with pytest.raises(SettingError, match=r"needs numba-cuda|finds no GPU"):
        sx.simulate(sx.Problem(2), [1.0, 0.2], runs=1, device="gpu")


def test_what_cannot_be_is_said():
    measured = sx.Measured("toxicity", 0.5, sigma=1, tolerance=0.1, means=[0.1, 0.3])
    learns_variance = sx.Problem(2, means=[1.0, 0.2], measured=(measured,), epsilon=0.3)
    with pytest.raises(SettingError, match="a GPU cannot run samplers that learn limits"):
        sx.simulate(learns_variance, runs=1, device="gpu")
    plan = prepare_simulation(
        sx.Problem(2, stop_when={"regret": 0.1}), [1.0, 0.2], "uniform", "tilt"
    )
    with pytest.raises(SettingError, match="linear program now and then, which a GPU cannot"):
        GpuEngine(Engine(plan), lambda *_: None)


def test_it_is_of_the_same_version():
    told = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    assert told["version"] == sx.__version__
    assert f"simplexplore=={sx.__version__}" in told["dependencies"]
