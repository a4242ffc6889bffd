"""What `lower_bound` finds out about problems with measured limits, as records."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.families import Gaussian

from .information import binary_kl
from .measured_information import MeasuredInformation
from .result import Bound, ScenarioBound, shares

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Deciding:
    """One of the alternatives that make an answer hard to be sure of.

    Attributes
    ----------
    weight : float
        Its part in the proof that no shares of samples do better; they sum to 1.
    limit : str or None
        The measured limit that the answer exceeds under it, or None.
    rival : (K,) array or None
        The policy that keeps all limits under it and earns more than epsilon more, or None.
    """

    weight: float
    limit: str | None
    rival: Array | None


@dataclass(frozen=True)
class MeasuredScenario(ScenarioBound):
    """How hard it is to find an answer that is good enough where limits are measured.

    `characteristic_time`, `allocation` and `relative_gap` are those of `answer`.

    Attributes
    ----------
    answer : (K,) array
        The answer that takes fewest samples, of those found: no vertex in general, as it keeps
        away from the limits.
    least_time : float
        Proven: no answer's characteristic time is less. 0 where nothing was proven.
    known_limits_time : float
        T if the means of all measurements were known.
    deciding : tuple of Deciding
        What makes the answer hard, hardest first.
    closest_measured : (m, K) array or None
        Means of the measurements that go with `closest_alternative`.
    """

    answer: Array
    least_time: float
    known_limits_time: float
    deciding: tuple[Deciding, ...]
    closest_measured: Array | None
    _information: MeasuredInformation | None = field(repr=False)


@dataclass(frozen=True)
class MeasuredBound(Bound):
    """What `lower_bound` knows about an instance with measured limits.

    `policy`, `value`, `active`, `edges` and `ties` are those of the best mix if the measured limits
    are as guessed; `scenarios` are `MeasuredScenario`.

    Attributes
    ----------
    measured_means : (m, K) array
        Means of the measurements, as guessed.
    """

    measured_means: Array = field(kw_only=True)

    @property
    def is_gaussian(self) -> bool:
        """Whether rewards and measurements are Gaussian.

        If not, they are treated as if they were, with half their range for a standard deviation:
        the characteristic time is what methods take that know no more, and no lower bound.
        """
        noises = (self.problem.rewards, *(row.noise for row in self.problem.measured))
        return all(isinstance(noise, Gaussian) for noise in noises)

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
    def own(self) -> MeasuredScenario:
        """The problem's scenario."""
        own = self.scenarios[self.problem.scenario]
        assert isinstance(own, MeasuredScenario)
        return own

    @property
    def planned_samples(self) -> float:
        """Samples that the answer takes, T * kl(delta, 1 - delta), where delta is small."""
        own = self.own
        return own.characteristic_time * binary_kl(self.delta) / own.cost_per_sample

    def time_of(self, allocation: npt.ArrayLike) -> float:
        """Characteristic time of the answer with this allocation instead of an optimal one."""
        w = shares(allocation, self.problem.size)
        if self.problem.has_costs:
            w = self.problem.costs * w / (self.problem.costs @ w)
        information = self.own._information
        if information is None:
            return math.inf
        value = information.least(self.own.answer, w)
        return 1.0 / value if value > 0 else math.inf

    def to_dict(self) -> dict[str, object]:
        found = super().to_dict()
        for name, scenario in self.scenarios.items():
            assert isinstance(scenario, MeasuredScenario)
            entry = found["scenarios"][name]  # type: ignore[index]
            entry |= {
                "answer": scenario.answer.tolist(),
                "answer_value": float(self.means @ scenario.answer),
                "least_characteristic_time": scenario.least_time,
                "known_limits_characteristic_time": scenario.known_limits_time,
                "deciding": [
                    {
                        "weight": x.weight,
                        "limit": x.limit,
                        "rival": None if x.rival is None else x.rival.tolist(),
                    }
                    for x in scenario.deciding
                ],
                "closest_measured": (
                    None
                    if scenario.closest_measured is None
                    else {
                        row.name: scenario.closest_measured[i].tolist()
                        for i, row in enumerate(self.problem.measured)
                    }
                ),
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
        found["is_lower_bound"] = self.is_gaussian
        return found
