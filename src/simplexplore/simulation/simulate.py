"""Many seeded runs of a sampler on an instance whose means are known.

A run is a function of (problem, means, sampler, settings, seed, run number), whoever makes it
(blocks.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from simplexplore import defaults
from simplexplore.errors import SettingError
from simplexplore.exploration.plan import Plan, prepare_simulation
from simplexplore.problem.checks import whole_number
from simplexplore.problem.families import Bounded, Gaussian
from simplexplore.problem.problem import Problem
from simplexplore.problem.stop_when import MAX_SAMPLES, StopWhen

from .blocks import Block, SimulationTask, joined, make_blocks
from .results import Results

Array = npt.NDArray[np.float64]

# Beta laws that vary less, by the length of their range, are points to floats.
MIN_NOISE = 1e-7

Progress = Callable[[int, int], None]


def simulate(
    problem: Problem,
    means: npt.ArrayLike | None = None,
    sampler: str = defaults.SAMPLER,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    stop_when: StopWhen | Mapping[str, float] | None = None,
    runs: int = 100,
    seed: int = 0,
    scenario: str | None = None,
    threshold: str = defaults.THRESHOLD,
    tracking: str | None = None,
    noise: npt.ArrayLike | None = None,
    workers: int | None = None,
    max_steps: int | None = None,
    progress: Progress | None = None,
    device: str = "cpu",
    executor: Executor | None = None,
) -> Results:
    """Simulate many runs of a sampler.

    Parameters
    ----------
    problem : Problem, or path of a problem file
    means : sequence of float, optional
        True means, in the unit of rewards; the problem's guess unless given.
    sampler : str
        One of `simplexplore.SAMPLERS`, or the path of a sampler file.
    runs : int
        How many runs.
    delta, epsilon, stop_when, scenario
        The problem's unless given.
    seed : int
        The same seed gives the same runs, whatever the number of workers.
    threshold : str
        One of `simplexplore.THRESHOLDS`, or the path of a threshold file. ``"gk16"`` is that of
        the paper's figures; only proven ones guarantee delta.
    tracking : str, optional
        How pulls follow the sampler's allocation; the sampler's own way unless given.
    noise : sequence of float, optional
        Standard deviations of the rewards drawn, if they differ from what the sampler is told.
        Bounded rewards then have Beta distributions instead of lying at the two ends.
    workers : int, optional
        Threads; all cores unless given. Results do not depend on it.
    max_steps : int, optional
        Longest run, in samples; longer ones are ended and counted as capped. If policies tie, it
        is needed: the best one is never found.
    progress : function, optional
        Called with (runs done, runs) after each block.
    device : {"cpu", "gpu"}
        On a GPU (add-on ``simplexplore-gpu``) runs agree with those of the processor except where
        the last digits of a logarithm decide.
    executor : concurrent.futures.Executor, optional
        Where to make the runs instead of threads of this process: other processes, or the
        machines of a cluster. Results do not depend on it.

    Returns
    -------
    Results
        Of the runs finished; all of them unless interrupted (Ctrl-C keeps what is done).

    Raises
    ------
    MeansError
        If there are no means, or they do not fit the problem.
    SettingError
        If sampler, threshold or another setting cannot be used for this problem.

    Examples
    --------
    >>> from simplexplore import Problem
    >>> results = simulate(Problem(["a", "b"], delta=0.1), [1.0, 0.0], runs=20, seed=0)
    >>> results
    <Results: top-two, end-of-time, 20 of 20 runs, threshold tilt, seed 0>
    >>> bool(results.stopping_times.mean() > results.lower_bound)
    True
    """
    check_counts(runs=runs, seed=seed, workers=workers, max_steps=max_steps)
    plan = prepare_simulation(
        problem,
        means,
        sampler,
        threshold,
        delta=delta,
        epsilon=epsilon,
        stop_when=stop_when,
        scenario=scenario,
        tracking=tracking,
        is_capped=max_steps is not None,
    )
    return run_plan(
        plan,
        runs=runs,
        seed=seed,
        noise=noise,
        workers=workers,
        max_steps=max_steps,
        progress=progress,
        device=device,
        executor=executor,
    )


def check_counts(*, seed: int, **counts: int | None) -> None:
    """Raise `SettingError` unless all are whole numbers; counts start at 1, seeds at 0."""
    for name, value in counts.items():
        if value is not None:
            whole_number(value, name, 1)
            if value > MAX_SAMPLES:
                raise SettingError(f"{name} must be at most {MAX_SAMPLES:,}; got {value}.")
    whole_number(seed, "seed", 0)


def run_plan(
    plan: Plan,
    *,
    runs: int,
    seed: int = 0,
    noise: npt.ArrayLike | None = None,
    workers: int | None = None,
    max_steps: int | None = None,
    progress: Progress | None = None,
    device: str = "cpu",
    executor: Executor | None = None,
) -> Results:
    """Simulate many runs of a plan that was prepared with its means; counts were checked."""
    problem = plan.problem
    means = np.array(plan.means)
    spread = _noise(problem, means, noise)
    cap = max_steps or defaults.MAX_STEPS
    # Runs do not depend on the bound, which is large.
    known = replace(plan, bound=None)
    task = SimulationTask(known, means, drawn_noise(problem, spread), int(seed), cap)
    done: list[Block] = []
    finished = 0
    try:
        for block in make_blocks(task, int(runs), device, executor, workers):
            done.append(block)
            finished += len(block.runs.pulls)
            if progress:
                progress(finished, runs)
    except KeyboardInterrupt:
        pass  # what is done is kept
    numbers, found = joined(done, problem.size)
    return Results(
        plan=plan,
        seed=int(seed),
        runs_asked=int(runs),
        max_steps=cap,
        run_numbers=numbers,
        stopping_times=np.abs(found.pulls),
        capped=found.pulls < 0,
        correct=found.correct,
        pulls=found.counts,
        seconds=found.seconds,
        noise=spread,
        outcomes=found.ends if problem.measured else None,
    )


def drawn_noise(problem: Problem, noise: Array | None) -> Array:
    """Standard deviations that rewards are drawn with, in unit coordinates."""
    rewards = problem.rewards
    if noise is None:
        return rewards.sigmas(problem.size)
    return np.asarray(noise / rewards.width)


def _noise(problem: Problem, means: Array, noise: npt.ArrayLike | None) -> Array | None:
    """Standard deviations to draw rewards with, where they are not the family's own."""
    rewards = problem.rewards
    if noise is None:
        return None
    if not isinstance(rewards, Gaussian | Bounded):
        raise SettingError(
            f"noise is for gaussian and bounded rewards; {rewards.name} rewards have no standard "
            "deviation of their own."
        )
    try:
        spread = np.broadcast_to(np.asarray(noise, dtype=float), (problem.size,)).copy()
    except (TypeError, ValueError):
        raise SettingError(
            f"noise must be one number, or one for each of the {problem.size} arms; got {noise!r}."
        ) from None
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        raise SettingError("noise must be positive and finite.")
    if isinstance(rewards, Bounded):
        _check_beta(problem, means, spread)
    elif np.array_equal(spread, rewards.sigmas(problem.size)):
        return None
    return spread


def _check_beta(problem: Problem, means: Array, spread: Array) -> None:
    """Raise `SettingError` where no Beta law has the mean and the standard deviation."""
    low, high = problem.rewards.range_of_means()
    for arm, mean, sd in zip(problem.arms, means, spread, strict=True):
        most = math.sqrt((mean - low) * (high - mean))
        if not sd < most:
            raise SettingError(
                f"noise {sd:g} is too much for arm {arm!r}: rewards in [{low:g}, {high:g}] with "
                f"mean {mean:g} have a standard deviation below {most:g}, unless all are at the "
                "two ends (leave noise out for that)."
            )
        if sd < MIN_NOISE * (high - low):
            raise SettingError(
                f"noise {sd:g} is too little for arm {arm!r}: it must be at least "
                f"{MIN_NOISE:g} of the length of [{low:g}, {high:g}]."
            )
