"""Samplers: one small file each; all share tracking, stopping and recommendation.

A sampler file is compiled with the kernels that it calls. It defines

    ARM_VECTORS, EDGE_VECTORS   how many vectors it remembers, over arms and over edges
    TRACKING                    how arms follow its allocation (one, or one per scenario)
    WITHIN_CONSTRAINTS          another file for the anytime scenario (optional)
    POLICIES                    whether it reads setting.policies, all vertices (optional)
    allocate(setting, table, run, memory)   write the next allocation into run.w
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from pathlib import Path

from simplexplore.errors import SettingError
from simplexplore.files import is_file
from simplexplore.problem.problem import SCENARIOS
from simplexplore.problem.spelling import unknown

from .declarations import DECLARATIONS, HERE, defined, definitions, mentioned

TRACKINGS = ("cumulative", "averaged", "direct", "sampled", "focused")

# The paper's first, in its order; others follow as they are found.
_ORDER = ("ctns", "cge", "ptns", "uniform", "oracle", "top-two")

# The oracle is a fixed allocation, too.
_FILES = {"oracle": "uniform.py"} | {
    file.stem.replace("_", "-"): file.name
    for file in HERE.glob("*.py")
    if file.stem not in ("__init__", "declarations", "top_two_within")
}

# Those that can only spend a given number of samples, and those that need not be given one.
FOR_BUDGETS = ("halving",)
SAMPLERS = tuple(
    sorted(
        _FILES.keys() - set(FOR_BUDGETS),
        key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name),
    )
)


@dataclass(frozen=True)
class Sampler:
    """What a sampler file declares."""

    name: str
    file: Path
    arm_vectors: int
    edge_vectors: int
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
    def needs_budget(self) -> bool:
        """Whether it must be given a number of samples."""
        return self.name in FOR_BUDGETS

    @property
    def is_ours(self) -> bool:
        """Whether it is the program's own."""
        return self.name in _FILES


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
    raise SettingError(unknown("sampler", name, [*SAMPLERS, *FOR_BUDGETS], ", or a file of yours"))


def _read(name: str, path: Path) -> Sampler:
    """Read the declarations of a sampler file without running it."""
    found: dict[str, object] = {"ARM_VECTORS": 0, "EDGE_VECTORS": 0, "TRACKING": "cumulative"}
    functions = set()
    for node in definitions(path):
        if isinstance(node, ast.FunctionDef):
            functions.add(node.name)
            continue
        for key in defined(node).intersection(DECLARATIONS):
            try:
                found[key] = ast.literal_eval(node.value)
            except ValueError:
                raise SettingError(
                    f"{path.name}, line {node.lineno}: {key} is read without running the file, so "
                    "it must be written out."
                ) from None
    if "allocate" not in functions:
        raise SettingError(
            f"{path.name} defines no function 'allocate(setting, table, run, memory)'."
        )
    tracking = found["TRACKING"]
    if isinstance(tracking, str):
        tracking = dict.fromkeys(SCENARIOS, tracking)
    if not isinstance(tracking, dict) or not all(
        tracking.get(scenario) in TRACKINGS for scenario in SCENARIOS
    ):
        raise SettingError(
            f"{path.name}: TRACKING must be one of {', '.join(TRACKINGS)}, or say which for each "
            f"scenario: {{{', '.join(f'{scenario!r}: ...' for scenario in SCENARIOS)}}}."
        )
    used = mentioned(path)
    counts = []
    for key, users in (
        ("ARM_VECTORS", {"memory.arms"}),
        ("EDGE_VECTORS", {"memory.edges", "maximin"}),
    ):
        value = found[key]
        if not isinstance(value, int) or value < 0:
            raise SettingError(f"{path.name}: {key} must be a whole number, 0 or more.")
        if value == 0 and (asked := users & used):
            # Compiled code would write where nothing is.
            raise SettingError(f"{path.name} uses {asked.pop()}, so it must declare {key} = 1.")
        counts.append(value)
    within = found.get("WITHIN_CONSTRAINTS")
    if within is not None and not (isinstance(within, str) and (path.parent / within).is_file()):
        raise SettingError(f"{path.name}: there is no file {within!r} beside it.")
    other = None if within is None else path.parent / str(within)
    pairs = bool(found.get("PAIRS", False))
    policies = bool(found.get("POLICIES", False))
    return Sampler(name, path, counts[0], counts[1], tracking, pairs, policies, other)
