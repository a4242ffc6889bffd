"""What can be said now, however often one looks: of the recommended policy, and of its edges.

All comes from the e-values of `tilt`; docs/theory/stopping.md has the proofs. Which edges are shown
is for the data to say, so one e-value alone is no p-value of an edge: `p_best` and `p_pays` pay for
that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from .engine import Engine
from .evidence import Regret

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AnytimeConfidence:
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


def anytime_confidence(engine: Engine) -> AnytimeConfidence | None:
    """The moment, or None before every arm has a reward or with a rule that has no e-values.

    Where the recommended policy has too many edges to look at, nothing is known.
    """
    if not (engine.plan.has_e_values and (engine.has_answer or engine.is_infeasible)):
        return None
    p = engine.plan.delta_of_rule * math.exp(-engine.evidence.confidence_margin())
    confidence = 1.0 - p if p < 1.0 - 1e-12 else 0.0  # the rest is rounding
    return AnytimeConfidence(confidence=confidence, regret=engine.evidence.regret())


class Edge(TypedDict):
    """From the recommended policy to a neighbour: evidence that it is no improvement.

    For every alpha, the probability that the best policy is ever shown as a neighbour with
    `p_best` <= alpha is at most alpha, and so is that of a move that pays with `p_pays` <= alpha:
    for all rows, policies and moments together.
    """

    direction: dict[str, float]
    neighbour: dict[str, float] | None  # its shares; None where there are too many to look at
    statistic: float
    threshold: float
    log_evidence: float | None  # with `tilt`
    p_best: float | None  # that the neighbour is the best policy, likewise
    p_pays: float | None  # that moving there pays, likewise; not known with measured limits


def edges_at(engine: Engine, moment: AnytimeConfidence | None) -> list[Edge]:
    """All edges of the recommended policy at a moment; of very many those with least evidence."""
    evidence, arms = engine.evidence, engine.plan.problem.arms
    directions, policies = evidence.directions(), evidence.neighbours()
    # Where limits are measured, the evidence that they are kept comes first.
    statistics, thresholds = (values[-len(directions) :] for values in evidence.values())
    best = pays = None
    if moment is not None:
        best, pays = evidence.p_values(statistics, 1.0 - moment.confidence)
    return [
        {
            "direction": _shares(arms, direction),
            "neighbour": None if policies is None else _shares(arms, policies[e]),
            "statistic": float(statistics[e]),
            "threshold": float(thresholds[e]),
            "log_evidence": None if moment is None else float(statistics[e]),
            "p_best": None if best is None else min(1.0, float(best[e])),
            "p_pays": None if pays is None else min(1.0, float(pays[e])),
        }
        for e, direction in enumerate(directions)
    ]


def _shares(arms: tuple[str, ...], values: Array) -> dict[str, float]:
    """What is not zero, by arm."""
    return {arm: float(x) for arm, x in zip(arms, values, strict=True) if x}
