"""What is fixed for as long as a live study lives."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import NamedTuple

from simplexplore.errors import SettingError
from simplexplore.exploration.plan import Plan, prepare
from simplexplore.exploration.stopping import THRESHOLDS
from simplexplore.problem.checks import whole_number
from simplexplore.problem.problem import Problem
from simplexplore.samplers import SAMPLERS

from .pulls import PullIds, check_key

# Seconds until a pull without a reward expires, unless given: a day.
DEFAULT_EXPIRY = 86_400.0


@dataclass(frozen=True)
class Settings:
    """How a problem is explored; see `Study.create`."""

    sampler: str
    threshold: str
    tracking: str | None
    seed: int
    expire_after: float | None
    key: str | None = None

    def __post_init__(self) -> None:
        check_key(self.key)
        whole_number(self.seed, "seed", 0)
        for what, known, chosen in (
            ("sampler", SAMPLERS, self.sampler),
            ("threshold", THRESHOLDS, self.threshold),
        ):
            if chosen not in known and str(chosen).endswith(".py"):
                raise SettingError(
                    f"a live study needs a built-in {what} ({', '.join(known)}): a file of your "
                    "own might be missing or changed weeks later."
                )
        if self.expire_after is not None and not 0 < self.expire_after < math.inf:
            raise SettingError(
                "expire_after must be a positive number of seconds, or None; got "
                f"{self.expire_after!r}."
            )

    def plan(self, problem: Problem) -> Plan:
        """The exploration of a problem in this way."""
        return prepare(problem, self.sampler, self.threshold, tracking=self.tracking)

    def to_text(self) -> str:
        """As JSON, for the store."""
        values = asdict(self) | {"seed": int(self.seed)}
        if self.expire_after is not None:
            values["expire_after"] = float(self.expire_after)  # whatever kind of number came
        if self.key is None:
            del values["key"]
        return json.dumps(values)

    @classmethod
    def from_text(cls, text: str) -> Settings:
        """Read what `to_text` wrote."""
        return cls(**json.loads(text))


class Definition(NamedTuple):
    """What a study is, in a store.

    Attributes
    ----------
    number : int
        The study's number in the store.
    identity : str
        Of the store.
    ids : PullIds
        What pulls are called outside.
    plan : Plan
        What is explored, and how.
    seed : int
    expire_after : float
        Seconds after which a pull without a reward expires; infinite if never.
    """

    number: int
    identity: str
    ids: PullIds
    plan: Plan
    seed: int
    expire_after: float
