"""Many seeded runs of a sampler on an instance whose means are known.

A run is a function of (problem, means, sampler, settings, seed, run number). Workers are
threads: compiled code runs without the interpreter's lock, each worker has an engine of its
own, and blocks of runs are handed out one by one, so that results never depend on how many
workers there are.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import cast

import numpy as np
import numpy.typing as npt

from simplexplore import defaults
from simplexplore.bound.result import Bound
from simplexplore.errors import SettingError
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.plan import Plan, prepare_simulation
from simplexplore.exploration.seeding import streams
from simplexplore.problem.checks import whole_number
from simplexplore.problem.families import Bounded, Gaussian
from simplexplore.problem.problem import Problem
from simplexplore.problem.stop_when import StopWhen

from .results import Results

Array = npt.NDArray[np.float64]

# A run that has not stopped by then is stuck for all practical purposes.
DEFAULT_MAX_STEPS = 10_000_000

# Runs per call of compiled code: long enough to hide the call, short enough to report
# progress and to be interrupted.
BLOCK_SECONDS = 0.25
MAX_BLOCK = 200

# Beta laws that vary less, by the length of their range, are points to floats.
LEAST_NOISE = 1e-7

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class _Block:
    first: int
    pulls: npt.NDArray[np.int64]
    correct: npt.NDArray[np.bool_]
    counts: Array
    seconds: float


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
) -> Results:
    """Simulate many runs of a sampler.

    Parameters
    ----------
    problem : Problem
    means : sequence of float, optional
        True means; default: the problem's own guess.
    sampler : str
        One of `simplexplore.SAMPLERS`, or the path of a sampler file.
    delta, epsilon, stop_when, scenario
        Default: the problem's.
    threshold : str
        One of `simplexplore.THRESHOLDS`, or the path of a threshold file. ``"gk16"`` compares
        with the paper's figures; only proven ones keep delta as a promise.
    tracking : str, optional
        How arms follow the sampler's allocation; default: the sampler's own choice.
    noise : sequence of float, optional
        Standard deviations of the rewards drawn: Gaussian ones, where they differ from what the
        sampler is told; bounded ones, which then have Beta laws instead of being at the two ends.
    workers : int, optional
        Threads; default: all cores. Results do not depend on it.
    max_steps : int, optional
        Runs are capped there, and counted as capped. A tied optimum needs one: it is never
        found.
    progress : function, optional
        Called with (runs done, runs) after each block.

    Returns
    -------
    Results
        Of the runs finished; all of them unless interrupted (Ctrl-C keeps what is done).
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
        may_tie=max_steps is not None,
    )
    return run_plan(
        plan,
        runs=runs,
        seed=seed,
        noise=noise,
        workers=workers,
        max_steps=max_steps,
        progress=progress,
    )


def check_counts(*, seed: int, **counts: int | None) -> None:
    """Raise `SettingError` unless all are whole numbers; counts start at 1, seeds at 0."""
    for name, value in counts.items():
        if value is not None:
            whole_number(value, name, 1)
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
) -> Results:
    """Simulate many runs of a plan that was prepared with its means; counts were checked."""
    problem, bound = plan.problem, cast(Bound, plan.bound)
    spread = _noise(problem, bound.means, noise)
    drawn = drawn_noise(problem, spread)
    count = workers or os.cpu_count() or 1
    cap = max_steps or DEFAULT_MAX_STEPS
    done = sorted(
        _run_blocks(plan, drawn, runs, seed, cap, count, progress), key=lambda block: block.first
    )
    return Results(
        plan=plan,
        bound=bound,
        seed=int(seed),
        runs_asked=int(runs),
        max_steps=cap,
        run_numbers=np.concatenate(
            [np.arange(b.first, b.first + len(b.pulls)) for b in done] or [np.zeros(0, int)]
        ),
        stopping_times=np.concatenate([np.abs(b.pulls) for b in done] or [np.zeros(0, int)]),
        capped=np.concatenate([b.pulls < 0 for b in done] or [np.zeros(0, bool)]),
        correct=np.concatenate([b.correct for b in done] or [np.zeros(0, bool)]),
        pulls=np.concatenate([b.counts for b in done] or [np.zeros((0, problem.size))]),
        seconds=float(sum(b.seconds for b in done)),
        noise=spread,
    )


def _run_blocks(
    plan: Plan,
    noise: Array,
    runs: int,
    seed: int,
    max_steps: int,
    workers: int,
    progress: Progress | None,
) -> list[_Block]:
    means = cast(Bound, plan.bound).means
    first = Engine(plan)
    first.compile()
    idle: SimpleQueue[Engine] = SimpleQueue()
    idle.put(first)

    def block(start: int, stop: int) -> _Block:
        try:
            engine = idle.get_nowait()
        except Empty:
            engine = first.twin()
        began = time.perf_counter()
        pulls, vertices, counts = engine.simulate(
            means, noise, streams(seed, range(start, stop)), max_steps
        )
        seconds = time.perf_counter() - began
        right = np.isin(vertices, list(engine.right_answers(means)))
        idle.put(engine)
        return _Block(start, pulls, right, counts, seconds)

    # Run 0 says how long a run takes.
    done: list[_Block] = []
    pool = ThreadPoolExecutor(max_workers=workers)
    active: set[Future[_Block]] = set()

    def collect() -> None:
        """Wait for some block and report."""
        nonlocal active
        ready, active = wait(active, return_when=FIRST_COMPLETED)
        done.extend(future.result() for future in ready)
        if progress:
            progress(sum(len(b.pulls) for b in done), runs)

    try:
        active.add(pool.submit(block, 0, 1))
        collect()
        each = max(done[0].seconds, 1e-6)
        size = int(min(MAX_BLOCK, max(1, BLOCK_SECONDS / each), max(1, runs // (4 * workers))))
        for start, stop in _pieces(1, runs, size):
            active.add(pool.submit(block, start, stop))
            if len(active) >= 2 * workers:
                collect()
        while active:
            collect()
    except KeyboardInterrupt:
        # Blocks under way cannot be stopped; they are short, and what they find is kept.
        pool.shutdown(wait=True, cancel_futures=True)
        done += [future.result() for future in active if not future.cancelled()]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return done


def _pieces(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(start, stop, size):
        yield first, min(first + size, stop)


def drawn_noise(problem: Problem, noise: Array | None) -> Array:
    """Standard deviations that rewards are drawn with, in unit coordinates."""
    rewards = problem.rewards
    if noise is None:
        return rewards.sigmas(problem.size)
    return np.asarray(noise * float(rewards.to_unit(1.0) - rewards.to_unit(0.0)))


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
        if sd < LEAST_NOISE * (high - low):
            raise SettingError(
                f"noise {sd:g} is too little for arm {arm!r}: it must be at least "
                f"{LEAST_NOISE:g} of the length of [{low:g}, {high:g}]."
            )
