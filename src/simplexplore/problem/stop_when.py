"""What ends an exploration before the best policy is known."""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Mapping

from simplexplore.errors import ProblemError

from .checks import check_number
from .places import about

# Nobody takes more samples.
MOST_SAMPLES = 10**12


@dataclasses.dataclass(frozen=True)
class StopWhen:
    """When an answer is good enough, or there is no more to spend: one of the two.

    Attributes
    ----------
    regret : float or None
        Stop as soon as no policy earns more than the answer by more than this; with probability
        1 - delta that is true. In the unit of rewards.
    budget : int or None
        Stop after so many samples, neither sooner nor later, with the best answer that they give:
        delta is not promised then.
    """

    regret: float | None = None
    budget: int | None = None

    def __str__(self) -> str:
        if self.budget is not None:
            return f"{self.budget:,} samples"
        return f"regret {self.regret:g}"

    def to_dict(self) -> dict[str, float]:
        """The table that says the same."""
        return {k: x for k, x in dataclasses.asdict(self).items() if x is not None}


def check_stop_when(value: object) -> StopWhen | None:
    """Read ``{regret = 0.05}`` or ``{budget = 300}``."""
    if value is None:
        return None
    if isinstance(value, StopWhen):
        value = value.to_dict()
    if not isinstance(value, Mapping) or not value:
        raise ProblemError(
            f"stop_when must be a table such as {{regret = 0.05}}; got {reprlib.repr(value)}."
        )
    for key in value:
        if key not in ("regret", "budget"):
            raise ProblemError(
                f"unknown key {reprlib.repr(key)} in stop_when; it takes regret or budget."
            )
    if len(value) > 1:
        raise ProblemError("stop_when takes regret or budget, not both; remove one.")
    if "budget" in value:
        with about("budget"):
            return StopWhen(budget=check_budget(value["budget"]))
    with about("regret"):
        return StopWhen(check_regret(value["regret"]))


def check_regret(value: object) -> float:
    """A positive number."""
    regret = check_number(value, "the regret of stop_when")
    if not 0 < regret < math.inf:
        raise ProblemError(
            "the regret of stop_when must be a positive number, in the unit of rewards; "
            f"got {regret:g}."
        )
    return regret


def check_budget(value: object) -> int:
    """A whole number of samples."""
    budget = check_number(value, "the budget of stop_when")
    if not 1 <= budget <= MOST_SAMPLES or budget != int(budget):
        raise ProblemError(
            f"the budget of stop_when must be a whole number of samples, 1 to {MOST_SAMPLES:,}; "
            f"got {budget:g}."
        )
    return int(budget)
