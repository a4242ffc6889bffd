"""Random numbers: xoshiro256++ (Blackman & Vigna), a ziggurat for the normal law, and others.

Ours for speed, and so that a stream is the same on every platform and target. Streams are
seeded from `numpy.random.SeedSequence` in Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .kernel import inlined, kernel
from .records import POISSON, RunConfig, Words

# Shifts and masks have the type of the words they move.
_11, _17, _19, _23, _41, _45, _255 = np.array([11, 17, 19, 23, 41, 45, 255], dtype=np.uint64)

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


@inlined
def next_word(state: Words) -> np.uint64:
    """Advance a stream by one 64-bit word."""
    total = state[0] + state[3]
    word = ((total << _23) | (total >> _41)) + state[0]
    shifted = state[1] << _17
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    last = state[3]
    state[3] = (last << _45) | (last >> _19)
    return word


@inlined
def uniform(state: Words) -> float:
    """A float in [0, 1) with 53 random bits."""
    return float(next_word(state) >> _11) * (1.0 / 9007199254740992.0)


@kernel
def normal(state: Words) -> float:
    """A standard normal number."""
    while True:
        word = next_word(state)
        layer = word & _255
        u = float(word >> _11) * (2.0 / 9007199254740992.0) - 1.0
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
        upper = math.exp(-0.5 * (LAYER[layer] * LAYER[layer] - x * x))
        lower = math.exp(-0.5 * (LAYER[layer + 1] * LAYER[layer + 1] - x * x))
        if lower + uniform(state) * (upper - lower) < 1.0:
            return x


@kernel
def poisson(state: Words, mean: float) -> float:
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


@kernel
def log_gamma(state: Words, shape: float) -> float:
    """The logarithm of a number with a gamma law (Marsaglia & Tsang 2000).

    Shapes below 1 are raised by 1, and the logarithm of a uniform number over the shape makes up
    for it: the number itself could be too small for a float.
    """
    raised = shape if shape >= 1.0 else shape + 1.0
    d = raised - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    found = 0.0
    while True:
        x = normal(state)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = 1.0 - uniform(state)
        y = x * x
        if u < 1.0 - 0.0331 * y * y or math.log(u) < 0.5 * y + d * (1.0 - v + math.log(v)):
            found = math.log(d) + math.log(v)
            break
    if shape < 1.0:
        found += math.log(1.0 - uniform(state)) / shape
    return found


@kernel
def beta(state: Words, mean: float, deviation: float) -> float:
    """A number with a Beta law on [0, 1]; deviation^2 < mean (1 - mean)."""
    both = mean * (1.0 - mean) / (deviation * deviation) - 1.0
    up = log_gamma(state, mean * both)
    down = log_gamma(state, (1.0 - mean) * both)
    apart = down - up
    if apart > 700.0:
        return 0.0
    return 1.0 / (1.0 + math.exp(apart))


@kernel
def draw(
    config: RunConfig, state: Words, mean: float, noise: float, low: float, high: float
) -> float:
    """A reward or measurement: between two ends if they are apart, else a count, or normal."""
    if config.closed_form and not config.measuring:
        return mean + noise * normal(state)  # other laws need not be compiled
    if high > low:
        part = (mean - low) / (high - low)
        if noise < 1.0:  # no deviation on [0, 1] is so large: by default all are at the two ends
            return low + (high - low) * beta(state, part, noise)
        return high if uniform(state) < part else low
    if config.family == POISSON:
        return poisson(state, mean)
    return mean + noise * normal(state)
