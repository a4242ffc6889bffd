"""What simulated runs gave: numbers, a summary of them, and folders that hold several."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.bound.result import Bound
from simplexplore.errors import SettingError, SimplexploreError
from simplexplore.exploration.limits import excess_bound
from simplexplore.exploration.measured_evidence import (
    EXCEEDED,
    SAID_INFEASIBLE,
    SUBOPTIMAL,
    VIOLATES,
)
from simplexplore.exploration.plan import Plan, bound_if_feasible
from simplexplore.exploration.proportion import clopper_pearson
from simplexplore.exploration.stopping import find_threshold
from simplexplore.problem.families import Bounded
from simplexplore.problem.problem import EXPLORATION, Problem
from simplexplore.samplers import find_sampler
from simplexplore.tabular import Row, Tabular

from .results_files import ResultsFolder

Array = npt.NDArray[np.float64]

# Ends of runs by name: wrong answers of two kinds, and the finding that no policy is feasible,
# which `correct` says the truth of.
_ENDS = {"violations": VIOLATES, "suboptimal": SUBOPTIMAL, "infeasible": SAID_INFEASIBLE}
_ENDS_WITHIN_LIMITS = _ENDS | {"exceeded": EXCEEDED}  # by samples, in expectation

_ARRAYS: dict[str, type[np.generic]] = {
    "run_numbers": np.int64,
    "stopping_times": np.int64,
    "capped": np.bool_,
    "correct": np.bool_,
    "pulls": np.float64,
}


@dataclass(frozen=True, eq=False)
class Results(Tabular):
    """Runs of one sampler on one instance, as `simulate` returns them.

    Attributes
    ----------
    plan : Plan
        Problem, sampler, threshold, delta, scenario and tracking.
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
        With `stop_when` one within the regret asked for.
    pulls : (n, K) array
        Samples of each arm.
    seconds : float
        Time spent in compiled code, all workers together.
    noise : (K,) array or None
        Standard deviations that rewards were drawn with, where they differ from what the
        sampler was told; bounded rewards then had Beta laws.
    outcomes : (n,) array of int or None
        How each run ended where limits are measured: a sum of the codes of
        exploration/measured_evidence.py.
    """

    plan: Plan
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
    outcomes: npt.NDArray[np.int64] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return (
            f"<Results: {self.plan.sampler.name}, {self.plan.scenario}, {self.runs} of "
            f"{self.runs_asked} runs, threshold {self.plan.threshold.name}, seed {self.seed}>"
        )

    @property
    def bound(self) -> Bound:
        """The truth that the runs are measured by; see `has_bound`."""
        return cast(Bound, self.plan.bound)

    @property
    def runs(self) -> int:
        """Runs that finished."""
        return len(self.run_numbers)

    @property
    def means(self) -> Array:
        """True means of the arms."""
        return np.array(self.plan.means)

    @property
    def has_bound(self) -> bool:
        """Whether there is a bound: not where no policy keeps the measured limits."""
        return self.plan.bound is not None

    @property
    def lower_bound(self) -> float:
        """Least expected cost in the scenario of the runs; samples, where each costs 1.

        NaN where limits are measured.
        """
        if self.plan.problem.measured:
            return math.nan
        return self.bound.scenarios[self.plan.scenario].lower_bound

    @property
    def _least_samples(self) -> float | None:
        """Samples that `lower_bound` pays for, where there is one."""
        least = self.bound.scenarios[self.plan.scenario].lower_bound_samples
        return None if self.plan.problem.measured else least

    @property
    def costs(self) -> Array:
        """What the samples of each run cost, (n,)."""
        return np.asarray(self.pulls @ self.plan.problem.costs)

    @property
    def is_proven(self) -> bool:
        """Whether delta is a promise: proven for this threshold and family of rewards.

        Not where rewards vary more than the sampler was told.
        """
        rewards, size = self.plan.problem.rewards, self.plan.problem.size
        told = self.noise is None or isinstance(rewards, Bounded)
        told = told or bool((np.asarray(self.noise) <= rewards.sigmas(size)).all())
        return told and self.plan.is_proven

    def allocations(self) -> Array:
        """Share of its samples that each run gave each arm.

        Returns
        -------
        ndarray, shape (runs, K)
        """
        return np.asarray(self.pulls / self.stopping_times[:, None])

    def constraint_use(self) -> dict[str, float | None]:
        """Mean over runs of each constraint's sum over the samples.

        In the scenario "exploration", of each limit on exploration.

        Returns
        -------
        dict
            From names to numbers; None without runs.
        """
        problem = self.plan.problem
        rows = problem.exploration if self.plan.scenario == EXPLORATION else problem.constraints
        if not self.runs:
            return dict.fromkeys(row.name for row in rows)
        w = self.allocations().mean(axis=0)
        return {row.name: float(row.coefficients @ w) for row in rows}

    @cached_property
    def excess_bound(self) -> float | None:
        """Pulls by which samples can have exceeded limits at any time; None without limits."""
        if self.plan.problem.measured:
            return None if self.plan.scenario == "end-of-time" else 0.0
        allowed = AllocationSet.of(self.bound._polytope, self.plan.scenario)
        return excess_bound(allowed, self.plan.problem.initial_excess)

    def summary(self) -> dict[str, Any]:
        """Statistics over all runs, under the names of the command's JSON output.

        Returns
        -------
        dict
            Plain Python numbers; None where there are too few runs.
        """
        times = self.stopping_times
        steps = int(times.sum())
        has_costs, least = self.plan.problem.has_costs, self.lower_bound
        known = self.bound if self.has_bound else None
        return {
            "sampler": self.plan.sampler.name,
            "scenario": self.plan.scenario,
            "threshold": self.plan.threshold.name,
            "proven": self.is_proven,
            "delta": self.plan.delta,
            **({"epsilon": self.plan.problem.epsilon} if self.plan.problem.epsilon else {}),
            **({"stop_when": goal.to_dict()} if (goal := self.plan.problem.stop_when) else {}),
            "family": self.plan.problem.rewards.name,
            "runs": self.runs,
            "runs_asked": self.runs_asked,
            "seed": self.seed,
            "noise": None if self.noise is None else self.noise.tolist(),
            "stopping_time": _statistics(times),
            **({"cost": _statistics(self.costs)} if has_costs else {}),
            "correct": _share(self.correct),
            "excess_bound": self.excess_bound if self.excess_bound != math.inf else None,
            "capped": int(self.capped.sum()),
            **self._ends(),
            "lower_bound": None if math.isnan(least) else least,
            **({"lower_bound_samples": self._least_samples} if has_costs and known else {}),
            "microseconds_per_step": 1e6 * self.seconds / steps if steps else None,
            "mean_allocation": self.allocations().mean(axis=0).tolist() if self.runs else None,
            "constraint_use": self.constraint_use(),
        }

    @property
    def _end_codes(self) -> dict[str, int]:
        return _ENDS if self.plan.scenario == "end-of-time" else _ENDS_WITHIN_LIMITS

    def _ends(self) -> dict[str, Any]:
        """How runs ended where limits are measured."""
        ended = self.outcomes
        if ended is None:
            return {}
        return {name: _share(ended & code > 0) for name, code in self._end_codes.items()}

    def rows(self) -> list[Row]:
        """One row per run: its stopping time, whether it was right, samples of each arm."""
        pulls = [f"pulls {arm}" for arm in self.plan.problem.arms]
        return [
            {
                "sampler": self.plan.sampler.name,
                "scenario": self.plan.scenario,
                "run": int(self.run_numbers[i]),
                "stopping_time": int(self.stopping_times[i]),
                "capped": bool(self.capped[i]),
                "correct": bool(self.correct[i]),
                **(
                    {}
                    if self.outcomes is None
                    else {n: bool(self.outcomes[i] & code) for n, code in self._end_codes.items()}
                ),
                **dict(zip(pulls, self.pulls[i].tolist(), strict=True)),
            }
            for i in range(self.runs)
        ]

    @property
    def times_bound(self) -> float:
        """What runs took as a multiple of the lower bound; infinite where some were capped.

        Their times are not known, only that they are more.
        """
        if self.capped.any() or not self.runs or math.isnan(self.lower_bound):
            return math.inf
        return float(self.costs.mean()) / self.lower_bound

    def _known(self, time: float | None) -> float | None:
        """A quantile, unless it falls on a capped run, whose time is not known."""
        return None if time is None or (self.capped.any() and time >= self.max_steps) else time

    def _brief_rows(self) -> list[Row]:
        """One row: the summary."""
        found = self.summary()
        times, capped = found["stopping_time"], found["capped"]
        return [
            {
                "sampler": found["sampler"],
                "scenario": found["scenario"],
                "runs": found["runs"],
                "mean": None if capped else times["mean"],
                "stderr": None if capped else times["stderr"],
                "median": self._known(times["median"]),
                "95%": self._known(times["q95"]),
                "x bound": None if math.isinf(self.times_bound) else self.times_bound,
                "correct": found["correct"]["fraction"],
                "capped": capped,
            }
        ]


def _share(those: npt.NDArray[np.bool_]) -> dict[str, float | None]:
    """The share of runs that are among those, with its 95% interval."""
    runs, count = len(those), int(those.sum())
    low, high = clopper_pearson(count, runs)
    return {"fraction": count / runs if runs else None, "low": low, "high": high}


def _statistics(times: npt.NDArray[np.int64] | Array) -> dict[str, float | None]:
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
        "max": times.max().item(),
    }


def save_results(results: Sequence[Results], folder: str | os.PathLike[str]) -> None:
    """Write results into a folder, which is created if necessary.

    Results that the folder held before are replaced; other files are left alone. Sampler and
    threshold files of your own are stored too. `load_results` reads them back.

    Parameters
    ----------
    results : sequence of Results
    folder : str or path

    Raises
    ------
    SettingError
        If it cannot be written.
    """
    target = ResultsFolder(folder)
    target.check_writable()
    try:
        target.path.mkdir(parents=True, exist_ok=True)
        target.write_manifest([_entry(result, target) for result in results])
    except OSError as error:
        raise SettingError(
            f"cannot save results in {str(folder)!r}: {error.strerror or error}."
        ) from error


def load_results(folder: str | os.PathLike[str]) -> list[Results]:
    """Read the results that `save_results` (or ``simulate --out``) wrote.

    Lower bounds are computed again, from the problem and the means.

    Parameters
    ----------
    folder : str or path

    Returns
    -------
    list of Results
        In the order in which they were saved.

    Raises
    ------
    SettingError
        If the folder holds no results, damaged ones, or some from a newer version.
    """
    source = ResultsFolder(folder)
    found = []
    for number, entry in enumerate(source.entries(), 1):
        try:
            found.append(_result(entry, source))
        except SimplexploreError as error:
            raise SettingError(f"{source.manifest}, result {number}: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SettingError(
                f"{source.manifest}, result {number}: it is damaged "
                f"({type(error).__name__}: {error})."
            ) from None
    return found


def _arrays_of(problem: Problem) -> dict[str, type[np.generic]]:
    return _ARRAYS | {"outcomes": np.int64} if problem.measured else _ARRAYS


def _entry(result: Results, folder: ResultsFolder) -> dict[str, Any]:
    """Write what belongs to one result but the manifest, and return its entry there."""
    plan = result.plan
    kinds = _arrays_of(plan.problem)
    arrays = {name: getattr(result, name).astype(kind) for name, kind in kinds.items()}
    name = folder.write_arrays(f"{plan.sampler.name}-{plan.scenario}", arrays)
    own = [] if plan.sampler.is_ours else [plan.sampler.file, plan.sampler.within]
    return {
        "sampler": plan.sampler.name,
        "sampler_file": folder.write_own(own),
        "scenario": plan.scenario,
        "threshold": plan.threshold.name,
        "threshold_file": folder.write_own([plan.threshold.file]),
        "tracking": plan.tracking,
        "delta": plan.delta,
        "allocation": plan.allocation,
        "means": result.means.tolist(),
        "noise": None if result.noise is None else result.noise.tolist(),
        "problem": plan.problem.to_text(),
        "seed": result.seed,
        "runs": result.runs,
        "runs_asked": result.runs_asked,
        "max_steps": result.max_steps,
        "seconds": result.seconds,
        "arrays": name,
    }


def _result(entry: dict[str, Any], folder: ResultsFolder) -> Results:
    problem = Problem.from_text(entry["problem"], source="its problem")
    means, delta = tuple(entry["means"]), float(entry["delta"])
    plan = Plan(
        problem=problem,
        sampler=find_sampler(_file(entry, "sampler", folder) or str(entry["sampler"])),
        threshold=find_threshold(_file(entry, "threshold", folder) or str(entry["threshold"])),
        delta=delta,
        tracking=entry["tracking"],
        allocation=None if entry["allocation"] is None else tuple(entry["allocation"]),
        bound=bound_if_feasible(problem, means, delta),
        means=means,
    )
    runs = int(entry["runs"])
    noise = entry.get("noise")  # folders written before it was stored have none
    kinds = _arrays_of(problem)
    shapes = {name: (runs, problem.size) if name == "pulls" else (runs,) for name in kinds}
    arrays = folder.read_arrays(entry["arrays"], kinds, shapes)
    return Results(
        plan=plan,
        seed=int(entry["seed"]),
        runs_asked=int(entry["runs_asked"]),
        max_steps=int(entry["max_steps"]),
        seconds=float(entry["seconds"]),
        noise=None if noise is None else np.array(noise, dtype=float).reshape(problem.size),
        **cast(Any, arrays),
    )


def _file(entry: dict[str, Any], what: str, folder: ResultsFolder) -> str | None:
    """Where a sampler or threshold of the user's own is kept."""
    kept = entry[f"{what}_file"]
    return kept and str(folder.path / kept)
