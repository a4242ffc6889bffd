"""The kernels' source compiles for a GPU as it is; only the decorator differs.

Runs where numba-cuda with its compiler is installed (`pip install "numba-cuda[cu12]"`); a GPU
is not needed.
"""

import importlib.util
import re

import numpy as np
import pytest
from numba import typeof

from simplexplore import Bernoulli, Gaussian, Problem
from simplexplore.exploration.engine import Engine, Plan
from simplexplore.exploration.stopping import find_threshold
from simplexplore.kernels.build import generated_text
from simplexplore.samplers import SAMPLERS, find_sampler

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed", allow_module_level=True)

HOPPER = (9, 0)


@pytest.mark.parametrize("family", ["gaussian", "exponential"])
@pytest.mark.parametrize("sampler", sorted(set(SAMPLERS) - {"oracle"}))
def test_source_compiles_for_a_gpu(sampler, family, tmp_path, monkeypatch):
    from numba import cuda

    class Device:
        compute_capability = HOPPER

    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: Device)
    rewards = Gaussian(1.0) if family == "gaussian" else Bernoulli()
    problem = Problem(3, ([[1, 1, 0]], [0.5]), rewards, scenario="anytime")
    chosen = find_sampler(sampler).in_scenario("anytime")
    plan = Plan(problem, chosen, find_threshold("gk16"), 0.1, "anytime", None, None)
    engine = Engine(plan)

    text = generated_text(chosen.file, family, None, "gk16")
    text = text.replace("from numba import njit", "from numba import cuda")
    text = re.sub(r"@njit\(.*\)\n", "@cuda.jit(device=True)\n", text)
    path = tmp_path / "kernels.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    seeds, whole = np.zeros((1, 2, 4), np.uint64), np.zeros(3, np.int64)
    reals = np.zeros(3)
    arguments = (reals, reals, 10, seeds, whole, whole, whole, np.zeros((1, 3)))
    signature = tuple(typeof(x) for x in (engine._setting, *engine._arrays, *arguments))
    ptx, _ = cuda.compile_ptx(module.simulate_runs.py_func, signature, device=True, cc=HOPPER)
    assert ".target sm_90" in ptx
