"""How many samples to expect, and how often a number of samples errs: by simulation.

`forecast` and `forecast_budget` make runs from the start; `samples_to_go` lets a run that is under
way go on from where it is, at means that its rewards leave plausible.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from simplexplore import defaults
from simplexplore.bound.information import binary_kl
from simplexplore.bound.result import Bound
from simplexplore.errors import NotConvergedError, SettingError, TooLargeError
from simplexplore.problem.families import UNKNOWN, Bounded, Family, Gaussian
from simplexplore.problem.problem import Problem
from simplexplore.samplers.own_file import module_of

from .engine import Engine, streams
from .plan import Plan, prepare
from .proportion import clopper_pearson
from .vertex_table import VertexTable
from .workspace import Workspace

Array = npt.NDArray[np.float64]

# Runs are made until the standard error of their mean is this much of it. All together take no more
# than so many steps, so that a forecast repeats; where steps are slow, seconds of the processor end
# it first. Runs that meet policies for the first time take longer, and are not timed.
PRECISION = 0.03
MIN_RUNS, MAX_RUNS, BATCH = 20, 200, 10
MAX_STEPS = 2_000_000
SECONDS = 1.0

# A run may have up to so many steps, the first one at first few. Where that is too few, or
# `MIN_RUNS` would take too long, the variance of the noise is divided by `EASE_FACTOR`, and again;
# not for runs as short as `MIN_LENGTH`, which say little of longer ones.
MAX_LENGTH = MAX_STEPS // (2 * MIN_RUNS)
EASE_FACTOR, MIN_LENGTH = 4.0, 1_000

# After so many seconds less noise is no remedy, and after `SECONDS` more `MIN_LATE_RUNS` runs do;
# if these take as long again, or there are more arms, there is no forecast.
MAX_SECONDS, MIN_LATE_RUNS = 4.0, 5
MAX_ARMS = 1_000

# Longer runs than so many times the mean are not waited for.
MAX_RATIO = 100

# Runs of a budget: their errors are counted.
MAX_BUDGET_RUNS, MIN_BUDGET_RUNS = 2_000, 100

# Runs that are under way: draws of the means, with each of which it goes on for so many times its
# length and some more; and steps of all. Draws end sooner where they would take longer than
# `MAX_SECONDS_TO_GO` seconds together: for slow steps, or for policies that are met for the first
# time.
MIN_DRAWS, MAX_DRAWS = 9, 40
MAX_RATIO_TO_GO, MIN_LENGTH_TO_GO = 10, 20_000
MAX_STEPS_TO_GO, MAX_SECONDS_TO_GO = 300_000, 4.0

SEED = 20240502


@dataclass(frozen=True)
class Forecast:
    """Samples that runs take.

    Attributes
    ----------
    samples : float
        Their mean.
    low, high : float
        Four runs in five lie between: the 10% and 90% quantiles.
    cost : float
        What they cost on average; `samples`, where each costs 1.
    error : float
        Standard error of the mean, relative to it.
    runs : int
        How many were simulated.
    ease : float
        By how much the variance of their noise was divided; 1 unless they would take too long.
    """

    samples: float
    low: float
    high: float
    cost: float
    error: float
    runs: int
    ease: float


@dataclass(frozen=True)
class BudgetForecast:
    """What a number of samples can do.

    Attributes
    ----------
    samples : int
    error_probability : float
        Share of simulated runs whose answer is wrong after so many samples.
    error_range : (float, float)
        Its 95% interval (Clopper-Pearson).
    allocation : (K,) array
        Mean shares of the samples in these runs.
    runs : int
        How many were simulated.
    """

    samples: int
    error_probability: float
    error_range: tuple[float, float]
    allocation: Array
    runs: int

    def to_dict(self) -> dict[str, object]:
        """Plain Python numbers under the names of the command's JSON output."""
        return {
            "samples": self.samples,
            "error_probability": self.error_probability,
            "error_range": list(self.error_range),
            "allocation": self.allocation.tolist(),
        }


def forecast(
    bound: Bound, scenario: str | None = None, delta: float | None = None
) -> Forecast | None:
    """Samples that sampler `top-two` with threshold `tilt` takes, from simulated runs.

    Parameters
    ----------
    bound : Bound
        From `lower_bound`: problem, means and delta. A budget of the problem is left aside.
    scenario : str, optional
        Default: the problem's.
    delta : float, optional
        Default: the bound's.

    Returns
    -------
    Forecast or None
        None if runs would never end: policies tie, or samples cannot tell the best one. The mean
        is known to about 3%, or as well as a second of the processor allows. Runs longer than that
        are made with less noise; `samples` are those that noise as it is takes.

    Raises
    ------
    SimplexploreError
        If the sampler cannot explore the problem; the message says why.

    Examples
    --------
    >>> from simplexplore import Problem, lower_bound
    >>> bound = lower_bound(Problem(["a", "b"]), [1.0, 0.0], delta=0.1)
    >>> bound.samples < forecast(bound).samples < 50
    True
    """
    scenario = scenario or bound.problem.scenario
    goal, hardness = bound.problem.regret_goal, bound.scenarios[scenario]
    if not (hardness.characteristic_time < math.inf or goal):
        return None
    if not (bound.edges or bound.problem.measured):
        return Forecast(0.0, 0.0, 0.0, 0.0, 0.0, 0, 1.0)
    problem = bound.problem.replace(stop_when={"regret": goal} if goal else None)
    delta = bound.delta if delta is None else delta
    needed = hardness.characteristic_time * binary_kl(delta) / hardness.cost_per_sample
    ease = 1.0
    while not goal and needed > ease * MAX_LENGTH:
        ease *= EASE_FACTOR
    runs = _known_runs(_plan(problem, delta, scenario), bound.means, ease)
    pulls = runs.lengths
    mean = float(pulls.mean())
    # A new run is shorter than the k-th shortest of n with probability k / (n + 1).
    low, high = np.quantile(pulls, (0.1, 0.9), method="weibull").tolist()
    cost = float((runs.counts @ problem.costs / runs.pulls * pulls).mean())
    return Forecast(mean, low, high, cost, runs.error, len(pulls), runs.ease)


def forecast_budget(bound: Bound, samples: int | None = None) -> BudgetForecast:
    """How often sampler `top-two` is wrong after a number of samples, from simulated runs.

    Parameters
    ----------
    bound : Bound
        From `lower_bound`: problem and means.
    samples : int, optional
        Default: the budget of the problem's `stop_when`.

    Returns
    -------
    BudgetForecast

    Raises
    ------
    SimplexploreError
        If the sampler cannot explore the problem; the message says why.

    Examples
    --------
    >>> from simplexplore import Problem, lower_bound
    >>> found = forecast_budget(lower_bound(Problem(["a", "b"]), [1.0, 0.0]), 10)
    >>> 0.04 < found.error_probability < 0.1
    True
    """
    problem = bound.problem
    samples = problem.budget if samples is None else samples
    if samples is None:
        raise SettingError("give a number of samples, or a problem whose stop_when has a budget.")
    if not bound.edges:
        return BudgetForecast(samples, 0.0, (0.0, 0.0), bound.allocation, 0)
    plan = _plan(problem.replace(stop_when={"budget": samples}), bound.delta)
    runs = _Runs(plan, bound.means, max(1.0, samples * MIN_BUDGET_RUNS / MAX_STEPS))
    while (n := len(runs.pulls)) < MAX_BUDGET_RUNS and not runs.are_spent:
        runs.make(min(max(n, 1), MIN_BUDGET_RUNS, MAX_BUDGET_RUNS - n))
    right = runs.right
    return BudgetForecast(
        samples=samples,
        error_probability=float(1 - right.mean()),
        error_range=clopper_pearson(int((~right).sum()), len(right)),
        allocation=(runs.counts / runs.pulls[:, None]).mean(axis=0),
        runs=len(right),
    )


def samples_to_go(engine: Engine) -> Forecast | None:
    """Samples until a run ends that is under way, at means that its rewards leave plausible.

    Means are drawn at random about the empirical ones, as wide as these are known; with each draw
    the run goes on from its present state. Of all draws: the median, infinite where too many do not
    end, and the 10% and 90% quantiles; costs are those of the pulls to come. None for more arms
    than are simulated.
    """
    if engine.plan.problem.size > MAX_ARMS:
        return None
    engine.compile()
    state, rng = engine.workspace.state(), np.random.default_rng(SEED)
    longest = MAX_RATIO_TO_GO * engine.pulls + MIN_LENGTH_TO_GO
    began, steps, other = time.thread_time(), 0.0, engine.clone()
    made: list[Array] = []  # pulls by arm
    for words in streams(SEED, range(MAX_DRAWS)):
        other.workspace.restore(state)
        now, missing = time.thread_time(), max(MIN_DRAWS - len(made), 1)
        deadline = now + max(began + MAX_SECONDS_TO_GO - now, 0.0) / missing
        has_ended = other.go_on(*_plausible(engine, rng), words, longest, deadline)
        more = other.run.n - engine.run.n
        steps += float(more.sum())
        made.append(more if has_ended else np.full(len(more), math.inf))
        late = steps > MAX_STEPS_TO_GO or time.thread_time() - began > SECONDS
        if late and len(made) >= MIN_DRAWS:
            break
    rest, spent = np.sum(made, axis=1), np.array(made) @ engine.plan.problem.costs
    low, middle, high = np.quantile(rest, (0.1, 0.5, 0.9), method="inverted_cdf").tolist()
    cost = float(np.quantile(spent, 0.5, method="inverted_cdf"))
    return Forecast(middle, low, high, cost, math.nan, len(made), 1.0)


def _plan(problem: Problem, delta: float, scenario: str | None = None) -> Plan:
    return prepare(problem, defaults.SAMPLER, defaults.THRESHOLD, delta=delta, scenario=scenario)


class _Runs:
    """Simulated runs, numbered from 0.

    Attributes
    ----------
    ease : float
        How many samples each stands for: their noise has that many times less variance.
    pulls : (n,) array
        Of the runs so far.
    counts : (n, K) array
    right : (n,) array
        Whether their answers are.
    seconds : float
        That those took which met no policy for the first time.
    """

    def __init__(
        self, plan: Plan, means: Array, ease: float, table: VertexTable | None = None
    ) -> None:
        problem = plan.problem
        if problem.size > MAX_ARMS:
            raise TooLargeError(f"no more than {MAX_ARMS:,} arms are simulated for a forecast.")
        if ease > 1.0:
            problem = _with_less_noise(problem, means, ease)
        self.ease, self._means = ease, means
        self._noise = problem.rewards.sigmas(problem.size)
        plan = replace(plan, problem=problem)
        self._engine = Engine(plan, Workspace(plan, table))
        self._engine.compile()
        self.steps, self.seconds, self._timed = 0, 0.0, 0
        self.pulls, self.right = np.zeros(0), np.zeros(0, dtype=bool)
        self.counts = np.zeros((0, problem.size))

    def easier(self, plan: Plan) -> _Runs:
        """Others with less noise, which know the policies that these have met."""
        met = self._engine.workspace.table
        table = met if isinstance(met, VertexTable) and not plan.problem.question else None
        return _Runs(plan, self._means, self.ease * EASE_FACTOR, table)

    def make(self, count: int, longest: int = defaults.MAX_STEPS) -> bool:
        """Make so many more; False if one was longer, and then none of them counts."""
        first, began = len(self.pulls), time.thread_time()
        known_edges = self._engine.workspace.known_edges
        seeds = streams(SEED, range(first, first + count))
        made = self._engine.simulate(self._means, self._noise, seeds, longest)
        self.steps += int(np.abs(made.pulls).sum())
        if self._engine.workspace.known_edges == known_edges:
            self.seconds += time.thread_time() - began
            self._timed += count
        if not self._engine.plan.problem.budget and (made.pulls < 0).any():
            return False
        self.pulls = np.append(self.pulls, made.pulls)
        self.counts = np.append(self.counts, made.counts, axis=0)
        self.right = np.append(self.right, made.correct)
        return True

    @property
    def lengths(self) -> Array:
        """Pulls that the runs take whose noise is not less.

        They are `ease` times as many, but for forced pulls, which grow like the root of all.
        """
        if self.ease == 1.0:
            return self.pulls
        rate = module_of(self._engine.workspace.sampler.file).FORCING_RATE
        size = float(self.counts.shape[1])
        forced = rate * size * (np.sqrt(size**2 + self.pulls) - size)
        others = self.ease * (self.pulls - forced)
        # The same relation, solved for the pulls of which so many are not forced.
        root = np.sqrt((rate * size) ** 2 / 4 + others + (1 - rate) * size**2) + rate * size / 2
        return np.asarray(root**2 - size**2)

    @property
    def error(self) -> float:
        """Standard error of the mean number of pulls, relative to it."""
        n = len(self.pulls)
        return float(self.pulls.std(ddof=1) / self.pulls.mean() / math.sqrt(n)) if n > 1 else 1.0

    @property
    def are_slow(self) -> bool:
        """Whether as many as are needed take twice as long as they may, as far as is known."""
        return MIN_RUNS * self.seconds > 2 * SECONDS * self._timed

    @property
    def are_spent(self) -> bool:
        """Whether there are no more steps, or no more time."""
        return self.steps >= MAX_STEPS or self.seconds >= SECONDS


def _known_runs(plan: Plan, means: Array, ease: float) -> _Runs:
    """Runs until their mean is known, or steps or seconds are spent; with less noise if need be."""
    shortest = max(MIN_LENGTH, 20 * plan.problem.size)
    runs, longest, spent = _Runs(plan, means, ease), 2 * shortest, 0.0
    while True:
        n, began = len(runs.pulls), time.thread_time()
        have_ended = runs.make(min(max(n, 1), BATCH, MAX_RUNS - n), longest)
        n, spent = len(runs.pulls), spent + time.thread_time() - began
        is_late = spent > MAX_SECONDS
        if not (n or runs.are_slow or is_late) and longest < MAX_LENGTH:
            longest = min(10 * longest, MAX_LENGTH)
            continue
        if (is_late and not have_ended) or spent > 2 * MAX_SECONDS:
            raise NotConvergedError("runs take too long to be simulated for a forecast.")
        mean = float(runs.pulls.mean()) if n else 0.0
        is_long = mean > MAX_LENGTH or (mean > shortest and runs.are_slow)
        if not have_ended or (n < MIN_RUNS and not is_late and is_long):
            runs, longest = runs.easier(plan), 2 * shortest
            continue
        longest = MAX_RATIO * int(mean)
        are_known = is_late or runs.error < PRECISION or n >= MAX_RUNS or runs.are_spent
        if are_known and n >= (MIN_RUNS if spent < MAX_SECONDS + SECONDS else MIN_LATE_RUNS):
            break
    if runs.ease > 1.0 and 2 * mean < shortest:
        raise TooLargeError("runs long enough for a forecast take too long to be simulated.")
    return runs


def _with_less_noise(problem: Problem, means: Array, ease: float) -> Problem:
    """The same with normal rewards, each of which says as much as so many: runs are shorter.

    Samples needed are in proportion to the variance, but for logarithms; and where they are many,
    their means are normal.
    """
    rewards, less = problem.rewards, math.sqrt(ease)

    def normal(deviations: Array, like: Family) -> Gaussian:
        sigma = tuple((deviations / less).tolist())
        if like.knows_sigma:
            return Gaussian(sigma, domain=like.domain)
        return Gaussian(UNKNOWN, sigma_guess=sigma, domain=like.domain)

    unit = rewards.to_unit(means)
    deviations = np.sqrt(rewards.variance(unit, rewards.sigmas(problem.size))) * rewards.width
    measured = []
    for row in problem.measured:
        law = normal(row.deviations(problem.size), row.noise)
        quiet = replace(row, low=None, high=None, sigma=law.sigma, sigma_guess=law.sigma_guess)
        measured.append(quiet)
    budget = problem.budget and max(1, round(problem.budget / ease))
    return problem.replace(
        rewards=normal(deviations, rewards),
        measured=tuple(measured),
        stop_when={"budget": budget} if budget else problem.stop_when,
    )


def _plausible(engine: Engine, rng: np.random.Generator) -> tuple[Array, Array]:
    """Means drawn at random, and standard deviations (channels, K), as kernels see them."""
    run, problem = engine.run, engine.plan.problem
    rewards, count = problem.rewards, np.maximum(run.n, 1.0)
    ranges = [rewards.to_unit(rewards.range_of_means())]
    ranges += [np.sort(row.signed(row.range_of_means)) for row in problem.measured]
    means, noise = np.array(run.mean), np.ones_like(run.mean)
    for i, law in enumerate((rewards, *(row.noise for row in problem.measured))):
        if not law.knows_sigma:
            noise[i] = np.sqrt(np.where(run.variance[i] > 0, run.variance[i], 1.0))
        elif isinstance(law, Gaussian):
            noise[i] = law.sigmas(problem.size)
        low, high = ranges[i]
        half = 0.5 * min(high - low, 1.0) / count  # of one more at the other end: all may be at one
        inside = np.clip(means[i], low + half, high - half)
        variance = rewards.variance(inside, noise[i]) if i == 0 else noise[i] ** 2
        if isinstance(law, Bounded) and i > 0:
            variance = (inside - low) * (high - inside)
        means[i] += np.sqrt(variance / count) * rng.standard_normal(len(count))
        means[i] = np.clip(means[i], low, high)
    means[0] = rewards.strictly_inside(means[0])
    return means, noise
