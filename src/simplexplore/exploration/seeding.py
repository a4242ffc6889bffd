"""Random streams of numbered runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

# The constants of `numpy.random.SeedSequence` (after O'Neill's seed_seq).
_POOL = 4
_INIT_A, _MULT_A = 0x43B0D7E5, 0x931E8875
_INIT_B, _MULT_B = 0x8B51F9DD, 0x58F38DED
_MIX_LEFT, _MIX_RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_SHIFT = np.uint32(16)
_MASK = 0xFFFFFFFF


def streams(seed: int, runs: range) -> npt.NDArray[np.uint64]:
    """Random streams (runs, 2, 4) of numbered runs: one for rewards, one for choices.

    Those of ``SeedSequence(entropy=seed, spawn_key=(run,)).generate_state(8, uint64)``, for all
    runs at once: one by one a million of them would take half a minute.
    """
    numbers = np.arange(runs.start, runs.stop, runs.step, dtype=np.uint64)
    if len(numbers) and int(numbers[-1]) > _MASK:
        raise OverflowError("runs are numbered up to 2^32")
    entropy = [np.uint32(word) for word in _words_of(seed)]
    # A spawn key is preceded by entropy that fills the pool.
    entropy += [np.uint32(0)] * (_POOL - len(entropy))
    pool = _mixed([np.full(len(numbers), w, np.uint32) for w in entropy], numbers.astype(np.uint32))
    return _drawn(pool, 16).view(np.uint64).reshape(len(numbers), 2, 4)


def _words_of(number: int) -> list[int]:
    """A number in pieces of 32 bits, least first."""
    words = [number & _MASK]
    while number := number >> 32:
        words.append(number & _MASK)
    return words


class _Hash:
    """A multiplier that changes with every use."""

    def __init__(self, start: int, factor: int) -> None:
        self._constant, self._factor = start, factor

    def __call__(self, value: Words) -> Words:
        value = value ^ np.uint32(self._constant)
        self._constant = self._constant * self._factor & _MASK
        value = value * np.uint32(self._constant)
        return np.asarray(value ^ (value >> _SHIFT))


def _mix(x: Words, y: Words) -> Words:
    mixed = _MIX_LEFT * x - _MIX_RIGHT * y
    return np.asarray(mixed ^ (mixed >> _SHIFT))


def _mixed(entropy: list[Words], last: Words) -> list[Words]:
    """The pool: entropy hashed, every word mixed into every other, then what did not fit."""
    hashed = _Hash(_INIT_A, _MULT_A)
    pool = [hashed(word) for word in entropy[:_POOL]]
    for i in range(_POOL):
        for j in range(_POOL):
            if i != j:
                pool[j] = _mix(pool[j], hashed(pool[i]))
    for word in [*entropy[_POOL:], last]:
        pool = [_mix(part, hashed(word)) for part in pool]
    return pool


def _drawn(pool: list[Words], count: int) -> Words:
    hashed = _Hash(_INIT_B, _MULT_B)
    return np.stack([hashed(pool[i % _POOL]) for i in range(count)], axis=1)
