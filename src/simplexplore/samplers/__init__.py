"""Samplers: one small file each; all share tracking, stopping and recommendation.

A sampler file is compiled with the kernels that it calls. It defines

    ARM_STATE, EDGE_STATE   how many vectors it remembers, over arms and over edges
    TRACKING                    how arms follow its allocation (one, or one per scenario)
    WITHIN_CONSTRAINTS          another file for the anytime scenario (optional)
    POLICIES                    whether it reads config.policies, all vertices (optional)
    allocate(config, table, run, scratch)   write the next allocation into run.w
    allocate_measured(...)                  write the next arm into run.integers[ARM], where limits
                                            are measured (optional)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType

from simplexplore.errors import SettingError
from simplexplore.files import is_file
from simplexplore.kernels.records import CUMULATIVE, DIRECT, FOCUSED, SAMPLED
from simplexplore.problem.messages import unknown
from simplexplore.problem.problem import SCENARIOS

from .own_file import HERE, module_of

TRACKINGS = {
    "cumulative": CUMULATIVE,
    "direct": DIRECT,
    "sampled": SAMPLED,
    "focused": FOCUSED,
}

# The paper's first, in its order.
SAMPLERS = ("ctns", "cge", "ptns", "uniform", "oracle", "top-two")

# The oracle is a fixed allocation, too.
_FILES = {name: f"{name.replace('-', '_')}.py" for name in SAMPLERS} | {"oracle": "uniform.py"}


@dataclass(frozen=True)
class Sampler:
    """What a sampler file declares."""

    name: str
    file: Path
    arm_state: int
    edge_state: int
    tracking: dict[str, str]
    pairs: bool
    policies: bool
    within: Path | None = None  # another file where exploration must satisfy the constraints

    def in_scenario(self, scenario: str) -> Sampler:
        """The sampler with the file that the scenario needs."""
        if self.within is None or scenario == "end-of-time":
            return self
        other = _read(self.name, self.within)
        return replace(other, tracking=self.tracking, pairs=self.pairs or other.pairs)

    @property
    def needs_truth(self) -> bool:
        """Whether it must be given the optimal allocation."""
        return self.name == "oracle"

    @property
    def is_ours(self) -> bool:
        """Whether it is the program's own."""
        return self.name in _FILES

    @property
    def allocate_measured(self) -> Callable[..., None] | None:
        """What it does where limits are measured; None if nothing."""
        found: Callable[..., None] | None
        if self.is_ours:
            found = module_of(HERE / "measured.py").ALLOCATE.get(self.name)
        else:
            found = getattr(module_of(self.file), "allocate_measured", None)
        return found


def find_sampler(name: str) -> Sampler:
    """A sampler by name, or one's own from a file: ``path/to/file.py``."""
    if not isinstance(name, str):
        raise SettingError(f"a sampler is a name or the path of a file; got {name!r}.")
    if name in _FILES:
        return _read(name, HERE / _FILES[name])
    if name.endswith(".py"):
        path = Path(name)
        if not is_file(path):
            raise SettingError(f"there is no sampler file {name!r}.")
        # Often a copy of one of ours, under its name.
        return _read(path.name if path.stem in _FILES else path.stem, path.resolve())
    raise SettingError(unknown("sampler", name, SAMPLERS, ", or a file of yours"))


def _read(name: str, path: Path) -> Sampler:
    """What a sampler file declares."""
    module = module_of(path)
    allocate = getattr(module, "allocate", None)
    if not isinstance(allocate, FunctionType) or allocate.__code__.co_argcount != 4:
        raise SettingError(
            f"{path.name} defines no function 'allocate(config, table, run, scratch)'."
        )
    tracking = getattr(module, "TRACKING", "cumulative")
    if isinstance(tracking, str):
        tracking = dict.fromkeys(SCENARIOS, tracking)
    if not isinstance(tracking, dict) or not all(
        tracking.get(scenario) in [*TRACKINGS] for scenario in SCENARIOS
    ):
        raise SettingError(
            f"{path.name}: TRACKING must be one of {', '.join(TRACKINGS)}, or say which for each "
            f"scenario: {{{', '.join(f'{scenario!r}: ...' for scenario in SCENARIOS)}}}."
        )
    counts = []
    for key in ("ARM_STATE", "EDGE_STATE"):
        value = getattr(module, key, 0)
        if not isinstance(value, int) or value < 0:
            raise SettingError(f"{path.name}: {key} must be a whole number, 0 or more.")
        counts.append(value)
    within = getattr(module, "WITHIN_CONSTRAINTS", None)
    if within is not None and not (isinstance(within, str) and (path.parent / within).is_file()):
        raise SettingError(f"{path.name}: there is no file {within!r} beside it.")
    other = None if within is None else path.parent / str(within)
    pairs = bool(getattr(module, "PAIRS", False))
    policies = bool(getattr(module, "POLICIES", False))
    return Sampler(name, path, counts[0], counts[1], tracking, pairs, policies, other)
