"""Kernels compile for a GPU as they are: the same functions over the same records.

Runs where numba-cuda with its compiler is installed (`pip install "numba-cuda[cu13]"`); a GPU
is not needed.
"""

import importlib.util

import numpy as np
import pytest

from simplexplore import Bernoulli, Gaussian, Problem
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.plan import prepare
from simplexplore.samplers import SAMPLERS
from simplexplore_gpu.engine import for_gpu

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed", allow_module_level=True)

HOPPER = (9, 0)


@pytest.mark.parametrize("rewards", [Gaussian(1.0), Bernoulli()], ids=lambda x: x.name)
@pytest.mark.parametrize("sampler", sorted(set(SAMPLERS) - {"oracle"}))
def test_kernels_compile_for_a_gpu(sampler, rewards, monkeypatch):
    from simplexplore_gpu.program import assembly

    class Device:
        compute_capability = HOPPER

    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: Device)
    problem = Problem(3, ([[1, 1, 0]], [0.5]), rewards, scenario="anytime")
    records = for_gpu(*Engine(prepare(problem, sampler, "tilt")).workspace.records)
    symbol, ptx = assembly(*records, HOPPER)
    assert ".target sm_90" in ptx
    assert f".entry {symbol}(" in ptx


def test_packed_records_hold_what_the_records_hold():
    from simplexplore_gpu.program import Packed

    problem = Problem(3, ([[1, 1, 0]], [0.5]), Gaussian(1.0), scenario="anytime")
    config, table, run, _ = Engine(prepare(problem, "ctns", "tilt")).workspace.records
    for record in (config, table):
        packed = Packed(record, apart=False)
        words = packed.words()
        assert len(words) == packed.size
    packed = Packed(run._replace(n=np.arange(3.0)), apart=True)
    assert packed.size + packed.small == sum(array.size for array in run)
