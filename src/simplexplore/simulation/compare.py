"""Many instances, several samplers: one comparison."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from simplexplore import defaults
from simplexplore.bound.result import Bound
from simplexplore.errors import SettingError
from simplexplore.exploration.plan import prepare_simulation
from simplexplore.exploration.proportion import clopper_pearson
from simplexplore.problem.catalog import Instance
from simplexplore.problem.messages import count
from simplexplore.problem.problem import Problem
from simplexplore.samplers import find_sampler
from simplexplore.tabular import Row, Tabular

from .results import Results, load_results, save_results
from .results_files import MANIFEST, ResultsFolder
from .simulate import check_counts, run_plan

Array = npt.NDArray[np.float64]
Instances = Mapping[str, Problem | Instance] | Sequence[Problem | Instance | str | os.PathLike[str]]

# What is finished is kept on disk: a cell for each simulation. It is written at once or not at all,
# so whatever ends a run, the cells that exist are whole. Its name holds a hash of everything that
# its content depends on, the settings and the program itself: nothing stale is ever found.
CELLS = "cells"


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """What several samplers took on several instances.

    Attributes
    ----------
    names : tuple of str
        Of the instances.
    samplers : tuple of str
    results : tuple of tuples of Results
        One tuple per instance, one result per sampler.
    """

    names: tuple[str, ...]
    samplers: tuple[str, ...]
    results: tuple[tuple[Results, ...], ...]

    def __repr__(self) -> str:
        runs = sorted({result.runs for group in self.results for result in group})
        each = f"{runs[0]:,}" if len(runs) == 1 else f"{runs[0]:,} to {runs[-1]:,}"
        of = count(len(self.names), "instance")
        return f"<Comparison: {of}, {', '.join(self.samplers)}, {each} runs each>"

    def __str__(self) -> str:
        return self.to_text()

    def ratios(self) -> Array:
        """Mean stopping times as multiples of the lower bounds.

        Returns
        -------
        ndarray, shape (instances, samplers)
            Infinite where runs were capped: then the mean is only known to be larger.
        """
        return np.array([[result.times_bound for result in group] for group in self.results])

    def rows(self) -> list[Row]:
        """One row per run: instance, lower bound, and what `Results.rows` has except pulls."""
        return [
            {
                "instance": name,
                "lower_bound": result.lower_bound,
                **{key: value for key, value in row.items() if not key.startswith("pulls ")},
                "sampler": sampler,
            }
            for name, group in zip(self.names, self.results, strict=True)
            for sampler, result in zip(self.samplers, group, strict=True)
            for row in result.rows()
        ]

    def summary(self) -> list[Row]:
        """One row per sampler, over all instances.

        Multiples of the lower bound are medians and extremes over instances; "best on" counts
        those on which a sampler's mean is the least, "capped on" those with capped runs; "low" and
        "high" are the 95% interval of "correct". What capped runs leave open is None.

        Returns
        -------
        list of dict
        """
        ratios = self.ratios()
        least = ratios.min(axis=1)
        found: list[Row] = []
        for s, sampler in enumerate(self.samplers):
            column = ratios[:, s]
            results = [group[s] for group in self.results]
            right = int(sum(result.correct.sum() for result in results))
            runs = sum(result.runs for result in results)
            low, high = clopper_pearson(right, runs)
            found.append(
                {
                    "sampler": sampler,
                    "instances": len(column),
                    "x bound: median": _known(float(np.median(column))),
                    "geometric mean": _known(float(np.exp(np.log(column).mean()))),
                    "worst": _known(float(column.max())),
                    "best on": int(((column == least) & np.isfinite(column)).sum()),
                    "correct": right / runs,
                    "low": low,
                    "high": high,
                    "capped on": int(np.isinf(column).sum()),
                }
            )
        return found

    def _brief_rows(self) -> list[Row]:
        hidden = ("instances", "low", "high")
        return [
            {key: value for key, value in row.items() if key not in hidden}
            for row in self.summary()
        ]


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def compare(
    instances: Instances,
    samplers: Sequence[str] = (defaults.SAMPLER, "ctns", "uniform"),
    *,
    runs: int = 100,
    seed: int = 0,
    delta: float | None = None,
    scenario: str | None = None,
    threshold: str = defaults.THRESHOLD,
    workers: int | None = None,
    max_steps: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Simulate samplers on many instances.

    Parameters
    ----------
    instances : mapping or sequence
        Problems with means, by name; or a sequence of problems, of instances (from
        `random_instances` or `catalog`), or of paths of problem files.
    samplers : sequence of str
        Names, or paths of sampler files.
    runs, seed, delta, scenario, threshold, workers, max_steps
        As for `simulate`, for every instance and sampler.
    folder : path-like, optional
        Where results are kept: what is finished there is not run again, so that the same call
        goes on where it was interrupted.
    progress : function, optional
        Called with (what is under way, how many are done, how many there are).

    Returns
    -------
    Comparison
        Its `summary`, `ratios` and rows, for tables; `plot_comparison` draws it.

    Raises
    ------
    SettingError
        If an instance has no means or nothing to find out, or a name is not known.

    Examples
    --------
    >>> from simplexplore import Problem
    >>> easy = Problem(["a", "b"], means=[1.0, 0.0], delta=0.1)
    >>> compare({"easy": easy}, ["top-two"], runs=20)
    <Comparison: 1 instance, top-two, 20 runs each>
    """
    check_counts(runs=runs, seed=seed, workers=workers, max_steps=max_steps)
    named = _named(instances)
    chosen = {name: find_sampler(name).name for name in samplers}
    if not named or not chosen:
        raise SettingError("compare needs at least one instance and one sampler.")
    if len(set(chosen.values())) < len(samplers):
        raise SettingError(f"two samplers have one name: {', '.join(samplers)}.")
    place = None if folder is None else Path(folder)
    if place is not None:
        ResultsFolder(place).check_writable()
    groups: list[tuple[Results, ...]] = []
    for i, (name, (problem, noise)) in enumerate(named.items()):
        group = []
        for s, (sampler, label) in enumerate(chosen.items()):
            if progress:
                progress(f"{name}, {label}", i * len(chosen) + s, len(named) * len(chosen))
            plan = prepare_simulation(
                problem,
                None,
                sampler,
                threshold,
                delta=delta,
                scenario=scenario,
                is_capped=max_steps is not None,
            )
            least = cast(Bound, plan.bound).scenarios[plan.scenario].lower_bound
            if problem.measured or not 0 < least < math.inf:
                why = "limits are measured" if problem.measured else "its bound is 0 or infinite"
                raise SettingError(f"there is nothing to compare on {name!r}: {why}.")
            given: dict[str, Any] = {
                "runs": runs,
                "seed": seed,
                "noise": noise,
                "max_steps": max_steps,
            }
            settings = {
                "problem": plan.problem.to_text(),
                "delta": plan.delta,
                "sampler": [label, _content(plan.sampler.file, plan.sampler.within)],
                "threshold": [plan.threshold.name, _content(plan.threshold.file)],
                **given,
            }
            result = kept(place, label, settings, partial(run_plan, plan, workers=workers, **given))
            group.append(result)
        groups.append(tuple(group))
    return Comparison(tuple(named), tuple(chosen.values()), tuple(groups))


# ---------------------------------------------------------------------- cells


def kept(
    folder: Path | None, name: str, settings: Mapping[str, Any], make: Callable[[], Results]
) -> Results:
    """The results of a simulation: those kept in a folder, if there is one, or new ones.

    Ctrl-C ends it: a part of a simulation neither compares nor is kept.
    """
    place = None
    if folder is not None:
        content = json.dumps({**settings, "program": program()}, sort_keys=True)
        place = folder / CELLS / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
        if (place / MANIFEST).is_file():
            return load_results(place)[0]
    made = make()
    if made.runs < made.runs_asked:
        raise KeyboardInterrupt
    if place is not None:
        save_results([made], place)
    return made


@cache
def program() -> str:
    """A hash of the program's text."""
    files = sorted(Path(__file__).parent.parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _content(*files: Path | None) -> list[str]:
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file is not None]


def _named(instances: Instances) -> dict[str, tuple[Problem, tuple[float, ...] | None]]:
    """Problems with their names, and how their rewards are drawn."""
    if isinstance(instances, Mapping):
        pairs: list[tuple[str, object]] = [(str(name), one) for name, one in instances.items()]
    else:
        pairs = [(_name(one, i), one) for i, one in enumerate(instances, 1)]
    found: dict[str, tuple[Problem, tuple[float, ...] | None]] = {}
    for name, one in pairs:
        if name in found:
            raise SettingError(
                f"two instances are called {name!r}; give a mapping from names to them."
            )
        if isinstance(one, Instance):
            found[name] = one.problem, one.noise
        elif isinstance(one, Problem):
            found[name] = one, None
        elif isinstance(one, str | os.PathLike):
            found[name] = Problem.from_file(one), None
        else:
            raise SettingError(
                f"{name}: an instance is a Problem with means, or the path of a file; got {one!r}."
            )
    return found


def _name(one: object, place: int) -> str:
    if isinstance(one, Instance):
        return one.name
    return Path(one).stem if isinstance(one, str | os.PathLike) else f"instance {place}"
