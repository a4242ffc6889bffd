"""Random numbers: xoshiro256++ (Blackman & Vigna) and a ziggurat for the normal law.

Ours for speed, and so that a stream is the same on every platform and target. Streams are
seeded from `numpy.random.SeedSequence` in Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, uint64

_TAIL = 3.6541528853610088
_AREA = 0.00492867323399


def _layers() -> tuple[Any, Any]:
    """Edges of 256 layers of equal area under exp(-x^2 / 2), and their ratios."""
    x = np.zeros(257)
    x[0] = _AREA / math.exp(-0.5 * _TAIL * _TAIL)
    x[1] = _TAIL
    for i in range(2, 256):
        x[i] = math.sqrt(-2.0 * math.log(_AREA / x[i - 1] + math.exp(-0.5 * x[i - 1] ** 2)))
    return x, x[1:] / x[:-1]


LAYER, RATIO = _layers()


@njit
def next_word(state):
    """Advance a stream by one 64-bit word."""
    total = state[0] + state[3]
    word = ((total << uint64(23)) | (total >> uint64(41))) + state[0]
    shifted = state[1] << uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    last = state[3]
    state[3] = (last << uint64(45)) | (last >> uint64(19))
    return word


@njit
def uniform(state):
    """A float in [0, 1) with 53 random bits."""
    return float(next_word(state) >> uint64(11)) * (1.0 / 9007199254740992.0)


@njit
def normal(state):
    """A standard normal number."""
    while True:
        word = next_word(state)
        layer = word & uint64(255)
        u = float(word >> uint64(11)) * (2.0 / 9007199254740992.0) - 1.0
        if abs(u) < RATIO[layer]:
            return u * LAYER[layer]
        if layer == 0:  # the tail, by Marsaglia's method
            while True:
                x = math.log(1.0 - uniform(state)) / _TAIL
                y = math.log(1.0 - uniform(state))
                if -2.0 * y >= x * x:
                    break
            return x - _TAIL if u < 0.0 else _TAIL - x
        x = u * LAYER[layer]
        upper = math.exp(-0.5 * (LAYER[layer] ** 2 - x * x))
        lower = math.exp(-0.5 * (LAYER[layer + 1] ** 2 - x * x))
        if lower + uniform(state) * (upper - lower) < 1.0:
            return x


@njit
def poisson(state, mean):
    """A Poisson count: inversion in pieces of mean at most 10, which add up."""
    count = 0.0
    left = mean
    while left > 0.0:
        piece = min(left, 10.0)
        left -= piece
        u = uniform(state)
        p = math.exp(-piece)
        total = p
        k = 0.0
        while u >= total and k < 200.0:
            k += 1.0
            p *= piece / k
            total += p
        count += k
    return count
