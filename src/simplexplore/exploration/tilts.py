"""The mixture of tilts that stopping by `tilt` rests on: its constants.

They were chosen once, on synthetic prices of two-arm comparisons, and hold for every problem:
any choice is proven, this one is cheap over a wide range (docs/theory/stopping.md).
"""

from __future__ import annotations

import numpy as np

from simplexplore.kernels.records import GAUSSIAN, Tilts
from simplexplore.kernels.tilt import OWN
from simplexplore.problem.family import Family

# Each tilt is weaker than the one before by this factor.
RATIO = 1.6

# Prior of the scales: flat, less at both ends.
SCALES = (0.4, 0.7, *[1.0] * 9, *(0.8**i for i in range(1, 10)))

# How much weaker an arm's own tilt is than its scale, with its prior; -1 is no tilt at all. Arms
# that the policy has too little of carry the scale; of those that it has, there may be more.
LOSE = {0: 0.39, 1: 0.30, 2: 0.10, 3: 0.09, 5: 0.06, 8: 0.03, -1: 0.03}
WIN = {0: 0.22, 1: 0.22, 2: 0.17, 3: 0.13, 5: 0.12, 7: 0.07, 10: 0.04, -1: 0.03}


def make_tilts(rewards: Family) -> Tilts:
    """The constants for a family of rewards, in unit coordinates."""
    count = len(SCALES) + max(*LOSE, *WIN)
    strength = rewards.strongest_tilt * RATIO ** -np.arange(count + 1.0)
    strength[-1] = 0.0
    signed = np.vstack([-strength, strength])
    step, share = np.zeros((2, OWN + 1), dtype=np.int64), np.zeros((2, OWN + 1))
    for side, prior in enumerate((LOSE, WIN)):
        places = [*range(len(prior) - 1), OWN]  # no tilt is the last one
        step[side, places] = list(prior)
        share[side, places] = np.array(list(prior.values())) / sum(prior.values())
    return Tilts(
        strength=strength,
        slope=signed if rewards.code == GAUSSIAN else np.expm1(signed),
        scale=np.array(SCALES) / sum(SCALES),
        step=step,
        share=share,
    )
