"""How sure one can be now: numbers that hold at every moment, however often one looks.

All come from the e-values of `tilt`; docs/theory/stopping.md has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .engine import Engine
from .vertex_table import AnswerTable


@dataclass(frozen=True)
class Moment:
    """What can be said of the recommended policy.

    Attributes
    ----------
    confidence : float
        1 - p: for every alpha, the probability that a policy that is not the best one is ever
        recommended with p <= alpha is at most alpha.
    regret_bound : float
        With probability 1 - delta, at every moment, no policy earns more than the recommended one
        by more than this; infinite if nothing is known.
    """

    confidence: float
    regret_bound: float


def moment_of(engine: Engine) -> Moment | None:
    """The moment, or None before every arm has a reward or with a rule that has no e-values."""
    if not (engine.has_moments and engine.is_warm):
        return None
    p = engine.plan.delta * math.exp(-engine.surplus())
    return Moment(confidence=max(0.0, 1.0 - p), regret_bound=regret_bound(engine))


def regret_bound(engine: Engine) -> float:
    """The most that a policy can earn more, given what each edge can gain at most.

    Every policy is the recommended one plus nonnegative multiples of the edges' directions; the
    worst is a linear program in these multiples.
    """
    from scipy.optimize import linprog

    gains = engine.gain_bounds()
    if isinstance(engine.table, AnswerTable):
        # Comparisons are with whole policies; those left out are within epsilon anyway.
        return max(float(gains.max(initial=0.0)), engine.plan.problem.epsilon)
    if (gains <= 0).all():
        return 0.0
    if np.isinf(gains).any():
        return math.inf
    directions = engine.directions()
    policy, problem = engine.policy, engine.plan.problem
    rows = np.vstack([problem.matrix, -problem.matrix, -np.eye(problem.size)])
    limits = np.concatenate([problem.upper, -problem.lower, np.zeros(problem.size)])
    given = np.isfinite(limits)
    rows, room = rows[given], limits[given] - rows[given] @ policy
    found = linprog(-gains, A_ub=rows @ directions.T, b_ub=np.maximum(room, 0.0))
    return max(0.0, -float(found.fun or 0.0)) if found.success else math.inf
