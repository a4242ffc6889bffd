"""What a live study is made with, apart from its problem; fixed for as long as it lives."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from simplexplore.errors import SettingError
from simplexplore.exploration.plan import Plan
from simplexplore.exploration.stopping import THRESHOLDS, find_threshold
from simplexplore.problem.checks import whole_number
from simplexplore.problem.problem import Problem
from simplexplore.samplers import SAMPLERS, find_sampler

from .pulls import check_key

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
        return Plan(
            problem=problem,
            sampler=find_sampler(self.sampler),
            threshold=find_threshold(self.threshold),
            delta=problem.delta,
            scenario=problem.scenario,
            tracking=self.tracking,
        )

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
