"""What simulated runs gave: numbers, a summary of them, and files that hold several.

A folder of results has one manifest, ``results.json``, and one compressed file of arrays
per result. The manifest names its format and version, and is written last and at once, so
that a folder is never half new and half old.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from simplexplore import __version__
from simplexplore.bound.bound import lower_bound
from simplexplore.bound.result import Bound
from simplexplore.errors import SettingError, SimplexploreError
from simplexplore.exploration.engine import Plan
from simplexplore.exploration.stopping import THRESHOLDS, find_threshold
from simplexplore.files import write_whole
from simplexplore.problem.problem import Problem
from simplexplore.samplers import SAMPLERS, find_sampler

Array = npt.NDArray[np.float64]

MANIFEST = "results.json"
FORMAT = "simplexplore results"
# Goes up when a reader of the last version would misread a folder.
VERSION = 1

# Confidence of intervals for the share of correct runs.
CONFIDENCE = 0.95

_ARRAYS = {
    "run_numbers": np.int64,
    "stopping_times": np.int64,
    "capped": np.bool_,
    "correct": np.bool_,
    "pulls": np.float64,
}


@dataclass(frozen=True, eq=False)
class Results:
    """Runs of one sampler on one instance, as `simulate` returns them.

    Attributes
    ----------
    plan : Plan
        Problem, sampler, threshold, delta, scenario and tracking.
    bound : Bound
        The truth that the runs are measured by.
    seed, runs_asked, max_steps
        As given to `simulate`.
    run_numbers : (n,) array of int
        The runs that finished; all of them unless interrupted.
    stopping_times : (n,) array of int
        Samples until each stopped or was capped.
    capped : (n,) array of bool
        Whether `max_steps` ended it.
    correct : (n,) array of bool
        Whether it recommended an optimal policy, or one within epsilon of it; decided exactly.
    pulls : (n, K) array
        Samples of each arm.
    seconds : float
        Time spent in compiled code, all workers together.
    noise : (K,) array or None
        Standard deviations that rewards were drawn with, where they differ from what the
        sampler was told.
    """

    plan: Plan
    bound: Bound
    seed: int
    runs_asked: int
    max_steps: int
    run_numbers: npt.NDArray[np.int64] = field(repr=False)
    stopping_times: npt.NDArray[np.int64] = field(repr=False)
    capped: npt.NDArray[np.bool_] = field(repr=False)
    correct: npt.NDArray[np.bool_] = field(repr=False)
    pulls: Array = field(repr=False)
    seconds: float
    noise: Array | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return (
            f"<Results: {self.plan.sampler.name}, {self.plan.scenario}, {self.runs} of "
            f"{self.runs_asked} runs, threshold {self.plan.threshold.name}, seed {self.seed}>"
        )

    @property
    def runs(self) -> int:
        """Runs that finished."""
        return len(self.run_numbers)

    @property
    def lower_bound(self) -> float:
        """Least expected number of samples, in the scenario of the runs."""
        return self.bound.scenarios[self.plan.scenario].lower_bound

    @property
    def is_proven(self) -> bool:
        """Whether delta is a promise: proven for this threshold and family of rewards.

        Not where rewards vary more than the sampler was told.
        """
        rewards, size = self.plan.problem.rewards, self.plan.problem.size
        told = self.noise is None or bool((self.noise <= rewards.sigmas(size)).all())
        return told and self.plan.threshold.is_proven(rewards.name)

    def allocations(self) -> Array:
        """Share of its samples that each run gave each arm, (n, K)."""
        return np.asarray(self.pulls / self.stopping_times[:, None])

    def constraint_use(self) -> dict[str, float | None]:
        """Mean over runs of what the samples taken used of each constraint."""
        problem = self.plan.problem
        if not self.runs:
            return dict.fromkeys(problem.names)
        use = problem.matrix @ self.allocations().mean(axis=0)
        return dict(zip(problem.names, use.tolist(), strict=True))

    def summary(self) -> dict[str, Any]:
        """Plain Python numbers under the names of the command's JSON output.

        What cannot be said of so few runs is None.
        """
        times = self.stopping_times
        right = int(self.correct.sum())
        low, high = clopper_pearson(right, self.runs)
        steps = int(times.sum())
        return {
            "sampler": self.plan.sampler.name,
            "scenario": self.plan.scenario,
            "threshold": self.plan.threshold.name,
            "proven": self.is_proven,
            "delta": self.plan.delta,
            **({"epsilon": self.plan.problem.epsilon} if self.plan.problem.epsilon else {}),
            "family": self.plan.problem.rewards.name,
            "runs": self.runs,
            "runs_asked": self.runs_asked,
            "seed": self.seed,
            "noise": None if self.noise is None else self.noise.tolist(),
            "stopping_time": _statistics(times),
            "correct": {
                "fraction": right / self.runs if self.runs else None,
                "low": low,
                "high": high,
            },
            "capped": int(self.capped.sum()),
            "lower_bound": self.lower_bound,
            "microseconds_per_step": 1e6 * self.seconds / steps if steps else None,
            "mean_allocation": self.allocations().mean(axis=0).tolist() if self.runs else None,
            "constraint_use": self.constraint_use(),
        }

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write this result alone into a folder; see `save_results`."""
        save_results([self], folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Results:
        """Read the only result of a folder; see `load_results`."""
        found = load_results(folder)
        if len(found) != 1:
            raise SettingError(
                f"{folder} holds {len(found)} results; load_results gives them as a list."
            )
        return found[0]


def _statistics(times: npt.NDArray[np.int64]) -> dict[str, float | None]:
    if not len(times):
        return dict.fromkeys(("mean", "stderr", "median", "q05", "q95", "max"))
    q05, median, q95 = np.quantile(times, [0.05, 0.5, 0.95]).tolist()
    spread = float(times.std(ddof=1) / np.sqrt(len(times))) if len(times) > 1 else None
    return {
        "mean": float(times.mean()),
        "stderr": spread,
        "median": median,
        "q05": q05,
        "q95": q95,
        "max": int(times.max()),
    }


def clopper_pearson(successes: int, trials: int) -> tuple[float, float]:
    """Interval for a probability that is never too narrow (95%, both sides 2.5%).

    Examples
    --------
    >>> low, high = clopper_pearson(100, 100)
    >>> round(low, 4), high
    (0.9638, 1.0)
    """
    from scipy.special import betaincinv

    outside = (1 - CONFIDENCE) / 2
    failures = trials - successes
    low = float(betaincinv(successes, failures + 1, outside)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - outside)) if failures else 1.0
    return low, high


# ---------------------------------------------------------------------- files


def check_results_folder(folder: str | os.PathLike[str]) -> Path:
    """Raise `SettingError` if no results can be written there; write nothing."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise SettingError(f"cannot save results in {str(target)!r}: it is a file, not a folder.")
    try:
        existing = next(place for place in (target, *target.absolute().parents) if place.exists())
    except OSError as error:
        raise SettingError(f"cannot save results in {str(target)!r}: {_reason(error)}.") from None
    if not existing.is_dir():
        raise SettingError(
            f"cannot save results in {str(target)!r}: {str(existing)!r} is a file, not a folder."
        )
    if not os.access(existing, os.W_OK | os.X_OK):
        raise SettingError(f"cannot save results in {str(target)!r}: permission denied.")
    manifest = target / MANIFEST
    if manifest.exists() and not _is_ours(manifest):
        raise SettingError(
            f"cannot save results in {str(target)!r}: the {MANIFEST} there is not ours, and would "
            "be lost; choose another folder."
        )
    return target


def save_results(results: Sequence[Results], folder: str | os.PathLike[str]) -> None:
    """Write results into a folder, which is made if necessary.

    Results that the folder held before are replaced; other files are left alone. Files of
    one's own samplers and thresholds are stored too.

    Raises
    ------
    SettingError
        If it cannot be written.
    """
    target = check_results_folder(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        old = _array_files(target / MANIFEST)
        entries = [_write_result(result, target) for result in results]
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "simplexplore": __version__,
            "results": entries,
        }
        write_whole(target / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
        for name in old - {entry["arrays"] for entry in entries}:
            (target / name).unlink(missing_ok=True)
    except OSError as error:
        raise SettingError(f"cannot save results in {str(target)!r}: {_reason(error)}.") from error


def load_results(folder: str | os.PathLike[str]) -> list[Results]:
    """Read the results that `save_results` (or ``simulate --out``) wrote.

    Lower bounds are computed again, from the problem and the means.

    Raises
    ------
    SettingError
        If the folder holds no results, damaged ones, or some from a newer version.
    """
    source = Path(folder)
    if not source.is_dir():
        raise SettingError(f"{folder}: there is no such folder of results.")
    manifest = source / MANIFEST
    if not manifest.is_file():
        raise SettingError(f"{folder} holds no results: there is no {MANIFEST} in it.")
    content = _read_manifest(manifest)
    bounds: dict[object, Bound] = {}
    found = []
    for number, entry in enumerate(content["results"], 1):
        try:
            found.append(_read_result(entry, source, bounds))
        except SimplexploreError as error:
            raise SettingError(f"{manifest}, result {number}: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SettingError(
                f"{manifest}, result {number}: it is damaged ({type(error).__name__}: {error})."
            ) from None
    return found


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"{path}: cannot read it: {_reason(error)}.") from None
    except ValueError as error:
        raise SettingError(f"{path}: it is damaged; {error}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise SettingError(f"{path}: this is not a file of results from simplexplore.")
    version = content.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise SettingError(f"{path}: it is damaged; its version is {version!r}.")
    if version > VERSION:
        raise SettingError(
            f"{path}: these results are from a newer version of simplexplore "
            f"({content.get('simplexplore', 'unknown')}, format {version}); this is "
            f"{__version__}, which reads formats up to {VERSION}. Update simplexplore to read them."
        )
    if not isinstance(content.get("results"), list):
        raise SettingError(f"{path}: it is damaged; it has no list of results.")
    return content


def _is_ours(manifest: Path) -> bool:
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT


def _array_files(manifest: Path) -> set[str]:
    """Files of arrays that a manifest speaks of, if there is one."""
    if not manifest.exists():
        return set()
    try:
        entries = json.loads(manifest.read_text(encoding="utf-8"))["results"]
        names = {str(entry["arrays"]) for entry in entries}
    except (ValueError, KeyError, TypeError):
        return set()
    return {name for name in names if name == Path(name).name and name.endswith(".npz")}


def _write_result(result: Results, folder: Path) -> dict[str, Any]:
    """Write what belongs to one result but the manifest, and return its entry there."""
    plan = result.plan
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer, **{name: getattr(result, name).astype(kind) for name, kind in _ARRAYS.items()}
    )
    data = buffer.getvalue()
    # Named after its content: a new result never overwrites what an old manifest speaks of.
    name = f"{plan.sampler.name}-{plan.scenario}-{hashlib.sha256(data).hexdigest()[:12]}.npz"
    write_whole(folder / name, data)
    own = [] if plan.sampler.name in SAMPLERS else [plan.sampler.file, plan.sampler.within]
    return {
        "sampler": plan.sampler.name,
        "sampler_file": _write_own(own, folder),
        "scenario": plan.scenario,
        "threshold": plan.threshold.name,
        "threshold_file": _write_own([plan.threshold.file], folder),
        "tracking": plan.tracking,
        "delta": plan.delta,
        "allocation": plan.allocation,
        "means": result.bound.means.tolist(),
        "noise": None if result.noise is None else result.noise.tolist(),
        "problem": plan.problem.to_text(),
        "seed": result.seed,
        "runs": result.runs,
        "runs_asked": result.runs_asked,
        "max_steps": result.max_steps,
        "seconds": result.seconds,
        "arrays": name,
    }


def _write_own(files: Sequence[Path | None], folder: Path) -> str | None:
    """Keep a sampler or threshold of the user's, under its own name; what it needs beside it."""
    texts = {file.name: file.read_bytes() for file in files if file is not None}
    if not texts:
        return None
    place = f"own/{hashlib.sha256(b''.join(texts.values())).hexdigest()[:12]}"
    (folder / place).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(folder / place / name, text)
    return f"{place}/{next(iter(texts))}"


def _read_result(entry: dict[str, Any], folder: Path, bounds: dict[object, Bound]) -> Results:
    problem = Problem.from_text(entry["problem"], source="its problem")
    means, delta = tuple(entry["means"]), float(entry["delta"])
    # Results of one command share their instance; its bound is computed once.
    key = (problem, means, delta)
    if key not in bounds:
        bounds[key] = lower_bound(problem, means, delta)
    plan = Plan(
        problem=problem,
        sampler=find_sampler(_name_or_file(entry, "sampler", folder, SAMPLERS)),
        threshold=find_threshold(_name_or_file(entry, "threshold", folder, tuple(THRESHOLDS))),
        delta=delta,
        scenario=problem.scenario,
        tracking=entry["tracking"],
        allocation=None if entry["allocation"] is None else tuple(entry["allocation"]),
    )
    runs = int(entry["runs"])
    noise = entry.get("noise")  # folders written before it was stored have none
    arrays = _read_arrays(folder / Path(entry["arrays"]).name, runs, problem.size)
    return Results(
        plan=plan,
        bound=bounds[key],
        seed=int(entry["seed"]),
        runs_asked=int(entry["runs_asked"]),
        max_steps=int(entry["max_steps"]),
        seconds=float(entry["seconds"]),
        noise=None if noise is None else np.array(noise, dtype=float).reshape(problem.size),
        **cast(Any, arrays),
    )


def _name_or_file(entry: dict[str, Any], what: str, folder: Path, known: tuple[str, ...]) -> str:
    file = entry[f"{what}_file"]
    if file is not None:
        return str(folder / file)
    name = str(entry[what])
    if name not in known:
        # Not a path that happens to exist here.
        raise SettingError(f"this version of simplexplore has no {what} {name!r}.")
    return name


def _read_arrays(path: Path, runs: int, size: int) -> dict[str, npt.NDArray[Any]]:
    if not path.is_file():
        raise SettingError(f"its file {path.name} is missing.")
    try:
        # Through memory: numpy leaves a damaged file open.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in _ARRAYS}
    except (EOFError, KeyError, OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise SettingError(f"its file {path.name} is damaged: {_reason(error)}.") from None
    for name, kind in _ARRAYS.items():
        shape = (runs, size) if name == "pulls" else (runs,)
        if arrays[name].dtype != kind or arrays[name].shape != shape:
            raise SettingError(
                f"its file {path.name} is damaged: {name} should be {kind.__name__} of shape "
                f"{shape}, and is {arrays[name].dtype} of shape {arrays[name].shape}."
            )
    return arrays


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error).rstrip(".")
