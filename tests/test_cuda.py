"""Kernels compile for a GPU as they are: the same functions over the same records.

Runs where numba-cuda with its compiler is installed (`pip install "numba-cuda[cu12]"`); a GPU
is not needed.
"""

import importlib.util
import types

import numpy as np
import pytest
from numba import typeof

from simplexplore import Bernoulli, Gaussian, Problem
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.plan import prepare
from simplexplore.kernels.episode import simulate_runs
from simplexplore.kernels.kernel import options
from simplexplore.kernels.records import Job
from simplexplore.samplers import SAMPLERS

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed", allow_module_level=True)

HOPPER = (9, 0)


@pytest.mark.parametrize("rewards", [Gaussian(1.0), Bernoulli()], ids=lambda x: x.name)
@pytest.mark.parametrize("sampler", sorted(set(SAMPLERS) - {"oracle"}))
def test_kernels_compile_for_a_gpu(sampler, rewards, monkeypatch):
    from numba import cuda
    from numba.cuda.typing.typeof import typeof_impl

    class Device:
        compute_capability = HOPPER

    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: Device)
    made = {}

    def device(function):
        if function not in made:
            made[function] = cuda.jit(device=True)(function)
        return made[function]

    @typeof_impl.register(types.FunctionType)
    def _(function, _):
        return None if options(function) is None else device(function)._numba_type_

    problem = Problem(3, ([[1, 1, 0]], [0.5]), rewards, scenario="anytime")
    engine = Engine(prepare(problem, sampler, "gk16"))
    slots = type(engine._setting.slots)(*map(device, engine._setting.slots))
    setting = engine._setting._replace(slots=slots)
    reals, whole = np.zeros(3), np.zeros(3, np.int64)
    seeds = np.zeros((1, 2, 4), np.uint64)
    job = Job(reals, reals, 10, seeds, whole, whole, whole, np.zeros((1, 3)))
    signature = tuple(typeof(x) for x in (setting, *engine._arrays, job))
    ptx, _ = cuda.compile_ptx(simulate_runs, signature, device=True, cc=HOPPER)
    assert ".target sm_90" in ptx
