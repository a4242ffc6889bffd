"""What ends an exploration before the best policy is known."""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Mapping

from simplexplore.errors import ProblemError

from .checks import check_number
from .places import about


@dataclasses.dataclass(frozen=True)
class StopWhen:
    """When an answer is good enough.

    Attributes
    ----------
    regret : float
        Stop as soon as no policy earns more than the answer by more than this; with probability
        1 - delta that is true. In the unit of rewards.
    """

    regret: float

    def __str__(self) -> str:
        return f"regret {self.regret:g}"


def check_stop_when(value: object) -> StopWhen | None:
    """Read ``{regret = 0.05}``."""
    if value is None or isinstance(value, StopWhen):
        return value
    if not isinstance(value, Mapping) or not value:
        raise ProblemError(
            f"stop_when must be a table such as {{regret = 0.05}}; got {reprlib.repr(value)}."
        )
    for key in value:
        if key != "regret":
            raise ProblemError(f"unknown key {reprlib.repr(key)} in stop_when; it takes regret.")
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
