"""Random streams of numbered runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def streams(seed: int, runs: range) -> npt.NDArray[np.uint64]:
    """Random streams (runs, 2, 4) of numbered runs: one for rewards, one for choices."""
    words = [
        np.random.SeedSequence(entropy=seed, spawn_key=(run,)).generate_state(8, np.uint64)
        for run in runs
    ]
    return np.array(words, dtype=np.uint64).reshape(len(runs), 2, 4)
