"""What is planned for problems with measured limits, as records.

A plan is what a run works for at the guessed means: an answer, how hard it is to be sure of it,
and which samples tell most. Others could be easier: there is no lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.polytope import Polytope

from .result import Bound, ScenarioBound, shares

Array = npt.NDArray[np.float64]

# What JSON says in place of a lower bound.
PLAN = (
    "a plan, no lower bound: the characteristic time is that of this answer, and another one may "
    "take fewer samples"
)


@dataclass(frozen=True)
class Deciding:
    """One of the closest alternatives, under which the answer is wrong.

    Attributes
    ----------
    limit : str or None
        The measured limit that the answer exceeds under it, or None.
    rival : (K,) array or None
        The policy that keeps all limits under it and earns more than epsilon more, or None.
    """

    limit: str | None
    rival: Array | None


@dataclass(frozen=True)
class PlannedScenario(ScenarioBound):
    """How hard it is to find an answer that is good enough where limits are measured.

    `characteristic_time`, `allocation` and `relative_gap` are those of `answer`; `lower_bound` is
    NaN, as there is none.

    Attributes
    ----------
    answer : (K,) array
        The answer that takes fewest samples, of those found: no vertex in general, as it keeps
        away from the limits.
    known_limits_time : float
        T if the means of all measurements were known.
    deciding : tuple of Deciding
        The alternatives that are closest, up to a percent: hardest to rule out.
    """

    answer: Array
    known_limits_time: float
    deciding: tuple[Deciding, ...]
    _information: Callable[[Array], float] = field(repr=False)  # from shares of what is spent


@dataclass(frozen=True)
class MeasuredPlan(Bound):
    """What `lower_bound` plans for an instance with measured limits.

    `policy`, `value`, `active`, `edges` and `ties` are those of the best mix if the measured limits
    are as guessed; `scenarios` are `PlannedScenario`.

    Attributes
    ----------
    measured_means : (m, K) array
        Means of the measurements, as guessed.
    """

    measured_means: Array = field(kw_only=True)

    @property
    def _known(self) -> Polytope:
        return Polytope(self.problem.replace(measured=()))

    @property
    def forced_to_zero(self) -> tuple[str, ...]:
        """Arms that the known constraints leave no use for."""
        return tuple(self.problem.arms[a] for a in self._known.forced_arms)

    @property
    def redundant(self) -> tuple[str, ...]:
        """Known constraints that could be dropped without changing what they allow."""
        return self._known.redundant

    @property
    def own(self) -> PlannedScenario:
        """The problem's scenario."""
        own = self.scenarios[self.problem.scenario]
        assert isinstance(own, PlannedScenario)
        return own

    def time_of(self, allocation: npt.ArrayLike) -> float:
        """Characteristic time of the answer with this allocation instead of an optimal one."""
        w = shares(allocation, self.problem.size)
        if self.problem.has_costs:
            w = self.problem.costs * w / (self.problem.costs @ w)
        value = self.own._information(w)
        return 1.0 / value if value > 0 else math.inf

    def to_dict(self) -> dict[str, object]:
        found = super().to_dict()
        for name, scenario in self.scenarios.items():
            assert isinstance(scenario, PlannedScenario)
            entry = found["scenarios"][name]  # type: ignore[index]
            entry |= {
                "lower_bound": None,
                "note": PLAN,
                "answer": scenario.answer.tolist(),
                "answer_value": float(self.means @ scenario.answer),
                "known_limits_characteristic_time": scenario.known_limits_time,
                "deciding": [
                    {"limit": x.limit, "rival": None if x.rival is None else x.rival.tolist()}
                    for x in scenario.deciding
                ],
            }
        found["measured"] = [
            {
                "name": row.name,
                "limit": row.limit,
                "tolerance": row.tolerance,
                "sigma": row.sigma,
                "means": means.tolist(),
                "value": float(means @ self.policy),
                "answer_value": float(means @ self.own.answer),
            }
            for row, means in zip(self.problem.measured, self.measured_means, strict=True)
        ]
        return found
