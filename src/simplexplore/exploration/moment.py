"""How sure one can be now: numbers that hold at every moment, however often one looks.

All come from the e-values of `tilt`; docs/theory/stopping.md has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .engines import ExplorationEngine
from .regret import Regret


@dataclass(frozen=True)
class Moment:
    """What can be said of the recommended policy.

    Attributes
    ----------
    confidence : float
        1 - p: for every alpha, the probability that a policy that is not the best one is ever
        recommended with p <= alpha is at most alpha.
    regret : Regret
        With probability 1 - delta, at every moment, no policy earns more than the recommended one
        by more than its bound; infinite if nothing is known.
    """

    confidence: float
    regret: Regret

    @property
    def regret_bound(self) -> float:
        """The most that can be lost."""
        return self.regret.bound


def moment_of(engine: ExplorationEngine) -> Moment | None:
    """The moment, or None before every arm has a reward or with a rule that has no e-values.

    Where the recommended policy has too many edges to look at, nothing is known.
    """
    if not (engine.has_moments and (engine.has_answer or engine.is_infeasible)):
        return None
    p = engine.plan.delta_of_rule * math.exp(-engine.surplus())
    confidence = 1.0 - p if p < 1.0 - 1e-12 else 0.0  # the rest is rounding
    return Moment(confidence=confidence, regret=engine.regret())
