"""What ends an exploration before the best policy is known."""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Mapping

from simplexplore.errors import ProblemError

from .checks import check_number
from .locations import error_context

# Nobody takes more samples.
MAX_SAMPLES = 10**12


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


def check_stop_when(given: object, epsilon: float = 0.0) -> StopWhen | None:
    """Read ``{regret = 0.05}`` or ``{budget = 300}``, which epsilon may not stand beside."""
    if given is None:
        return None
    if isinstance(given, StopWhen):
        given = given.to_dict()
    if not isinstance(given, Mapping) or not given:
        raise ProblemError(
            f"stop_when must be a table such as {{regret = 0.05}}; got {reprlib.repr(given)}."
        )
    for key in given:
        if key not in ("regret", "budget"):
            raise ProblemError(
                f"unknown key {reprlib.repr(key)} in stop_when; it takes regret or budget."
            )
    if len(given) > 1:
        raise ProblemError("stop_when takes regret or budget, not both; remove one.")
    if epsilon:
        raise ProblemError(
            "epsilon and a budget do not go together: a budget asks for the best policy that its "
            "samples find; remove one of them."
            if "budget" in given
            else "epsilon and stop_when both say what is good enough; keep one of them: epsilon "
            "takes fewer samples, stop_when has no limit on the number of policies."
        )
    if "budget" in given:
        with error_context("budget"):
            budget = check_number(given["budget"], "the budget of stop_when")
            if not 1 <= budget <= MAX_SAMPLES or budget != int(budget):
                raise ProblemError(
                    "the budget of stop_when must be a whole number of samples, 1 to "
                    f"{MAX_SAMPLES:,}; got {budget:g}."
                )
            return StopWhen(budget=int(budget))
    with error_context("regret"):
        regret = check_number(given["regret"], "the regret of stop_when")
        if not 0 < regret < math.inf:
            raise ProblemError(
                "the regret of stop_when must be a positive number, in the unit of rewards; "
                f"got {regret:g}."
            )
        return StopWhen(regret)
