"""Arrays of random numbers as compiled runs draw them, made in a process of its own.

There numba compiles functions that call kernels one by one, which the program never does: it
compiles whole units. So nothing that a test compiled before has a part in it.
"""

from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

import numpy as np
from numba import njit

from engines import streams
from simplexplore.kernels import rng


@cache
def pool():
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def drawn(name, state, count, *arguments):
    """So many numbers, or words, by a function of rng.py; the state moves on."""
    found, after = pool().submit(_draw, name, state, count, arguments).result()
    state[:] = after
    return found


def _draw(name, state, count, arguments):
    found = np.zeros(count, dtype=np.uint64 if name == "next_word" else float)
    _filler(name, len(arguments))(state, found, *arguments)
    return found, state


@cache
def _filler(name, count):
    from simplexplore.kernels import native

    assert native.compiled  # lets compiled code call kernels
    draw = getattr(rng, name)
    if count == 0:

        def fill(state, out):
            for i in range(out.size):
                out[i] = draw(state)

    elif count == 1:

        def fill(state, out, first):
            for i in range(out.size):
                out[i] = draw(state, first)

    else:

        def fill(state, out, first, second):
            for i in range(out.size):
                out[i] = draw(state, first, second)

    return njit(fill)


def rewards_of_run(problem, seed):
    """The rewards of run 0 of a simulation, one by one: a function of the arm that is played."""
    words = streams(seed, range(1))[0, 0].copy()
    means = dict(zip(problem.arms, np.asarray(problem.means).tolist(), strict=True))
    sigma = problem.rewards.sigmas(problem.size)

    def draw(arm):
        with np.errstate(over="ignore"):  # words wrap around
            if problem.rewards.name == "gaussian":
                return means[arm] + float(sigma[problem.arms.index(arm)]) * rng.normal(words)
            return float(rng.uniform(words) < means[arm])  # of coins

    return draw
