"""How many samples to expect: the mean of `top-two` with `tilt`, without simulating it.

A run without luck comes first: the counts that the sampler would have after t samples if rewards
were their means, and the time when the stopping rule is satisfied. Luck changes that
time, see `_with_luck`. No constant here is fitted to any instance;
benchmarks/expected_samples.md compares with simulations.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.bound.information import Closest, Information
from simplexplore.bound.result import Bound
from simplexplore.bound.unknown_sigma import information_about
from simplexplore.errors import NotConvergedError, TooLargeError
from simplexplore.geometry.edges import Edges
from simplexplore.kernels.records import POLICIES
from simplexplore.problem.families import Gaussian
from simplexplore.samplers import top_two, top_two_within

from .arrays import first_pulls, tilt_levels
from .expected_evidence import ExpectedEvidence
from .expected_student import ExpectedStudent
from .plan import prepare
from .vertex_table import VertexTable

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Times at which evidence is computed differ by this factor; between them it is interpolated.
STEP = 1.2
MOST_STEPS = 400

# Rounds for shares of pulls that need not be exact.
MOST_ROUNDS_OF_EM = 300

# Draws of the arms' luck, each with its opposite; always the same.
DRAWS = 64

# Of more edges than this only the hardest are looked at.
MOST_EDGES = 256

# Policies that the search of the rule is followed to; none, if the best one has more neighbours
# than that: they are taken to be like it.
MOST_POLICIES = 32
MOST_NEIGHBOURS = 64
MOST_ROUNDS = 10

# An edge whose information is this close to the least is as hard as the hardest.
BINDING = 1e-3


def expected_samples(bound: Bound, scenario: str | None = None) -> float | None:
    """Mean number of samples of sampler `top-two` with threshold `tilt`, estimated.

    Parameters
    ----------
    bound : Bound
        From `lower_bound`: problem, means and delta.
    scenario : str, optional
        Default: the problem's.

    Returns
    -------
    float or None
        Infinite if optimal policies tie, 0 if only one is feasible. None where there is no
        estimate: with epsilon > 0 or measured limits, or if floats or memory cannot hold it.
        With costs, times `cost_per_sample` of the scenario it is the mean cost. Bounded rewards
        are taken to be at the two ends of their range, unknown sigmas to be as guessed.

    Examples
    --------
    >>> from simplexplore import Problem, lower_bound
    >>> bound = lower_bound(Problem(["a", "b"]), [1.0, 0.0], delta=0.1)
    >>> round(bound.samples), round(expected_samples(bound))
    (14, 40)
    """
    scenario = scenario or bound.problem.scenario
    if bound.problem.epsilon or bound.problem.measured:
        return None
    time = bound.scenarios[scenario].characteristic_time
    if not 0 < time < math.inf:
        return time
    try:
        with np.errstate(all="ignore"):
            return _expected(_RunWithoutLuck(bound, scenario), bound.delta)
    except (NotConvergedError, TooLargeError):
        return None


def _expected(run: _RunWithoutLuck, delta: float) -> float:
    times, statistics, evidence = [], [], []
    t = max(-math.log(delta), 0.1) * run.time / 4  # too early for the rule
    for _ in range(MOST_STEPS):
        statistic, log = run.evidence(t)
        times.append(t)
        statistics.append(statistic)
        evidence.append(log)
        if run.margin(log) >= 0:
            break
        t *= STEP
    else:
        raise NotConvergedError("the evidence does not grow: floats are too coarse.")
    path = _with_luck(run, times, statistics, np.array(evidence))  # (times, draws, edges)
    margins = run.margin(path)
    stops = [_crossing(times, margin) for margin in margins.T]
    return max(float(np.mean(stops)), run.first * len(run.arms))


def _crossing(times: list[float], margin: Array) -> float:
    """When a margin is first nonnegative, by a line between the times before and after."""
    if not (margin >= 0).any():
        return times[-1]
    k = int(np.argmax(margin >= 0))
    if k == 0 or margin[k - 1] == -math.inf:
        return times[k]
    share = -margin[k - 1] / (margin[k] - margin[k - 1])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))


class _RunWithoutLuck:
    """Counts, evidence and what is missing to stop, if every reward were its mean."""

    def __init__(self, bound: Bound, scenario: str) -> None:
        problem = bound.problem
        own, allowed = bound.scenarios[scenario], AllocationSet.of(bound._polytope, scenario)
        self.size, self.time = problem.size, own.characteristic_time / own.cost_per_sample
        self.is_anytime = not allowed.is_simplex
        self.allocation, self.costs = own.allocation, problem.costs
        self.inside = allowed.inside
        self.arms = np.flatnonzero(self.inside > 0)
        plan = prepare(problem, "top-two", "tilt", delta=bound.delta, scenario=scenario)
        table = VertexTable(bound._polytope, bound._vertex)
        self._rule, self._policy, self._union = tilt_levels(plan, table.polytope, table)
        edges = table.edges(0)
        gaps = edges.gaps(bound.means)
        rewards = problem.rewards
        self.closest = _closest(
            information_about(edges, gaps, bound.means, rewards), own.allocation
        )
        if len(edges) > MOST_EDGES:
            chosen = self.closest.value <= np.sort(self.closest.value)[MOST_EDGES - 1]
            edges, gaps = edges.only(chosen), gaps[chosen]
            self.closest = _picked(self.closest, chosen)
        self.first = first_pulls(rewards)
        self.own = Information(edges, gaps, bound.means, rewards.as_if_known())
        self.edges = len(edges)
        self.hard, self._rarest = self._hardest()
        self._search = None
        if self._rule == POLICIES and self.edges <= MOST_NEIGHBOURS:
            table.explore(limit=max(MOST_POLICIES, table.polytope.dimension + 1))
            self._search = _Search(table, bound.means)
            edges, gaps = self._search.lines, self._search.gaps
        information = Information(edges, gaps, bound.means, rewards.as_if_known())
        self._expected = (
            ExpectedEvidence(information)
            if rewards.knows_sigma
            else ExpectedStudent(information, isinstance(rewards, Gaussian) and rewards.equal_sigma)
        )

    def _hardest(self) -> tuple[npt.NDArray[np.bool_], Indices]:
        """Which edges bind, and the arm of each edge with the least share."""
        own, rate = self.own, self.closest.value
        share = np.where(own.used, self.allocation[own.index], math.inf)
        rarest = np.take_along_axis(own.index, share.argmin(axis=1)[:, None], axis=1)[:, 0]
        return rate <= rate.min() * (1 + BINDING), rarest

    def evidence(self, t: float) -> tuple[Array, Array]:
        """Statistics and logs of evidence after t samples; own edges first."""
        statistic, log = self._expected.at(self.counts(t))
        return statistic[: self.edges], log

    def counts(self, t: float) -> Array:
        """Samples of each arm after t in all, as the sampler spreads them."""
        size, w = self.size, self.allocation
        turns = size * (math.sqrt(size * size + t) - size)  # see samplers/top_two.py
        if self.is_anytime:
            turns *= top_two_within.TURNS
            return np.asarray((t - turns) * w + turns * self.inside)
        # The challenger has the least evidence plus a price on rare arms: edges whose rarest arm
        # is rare end with more evidence than others, and evidence grows with that arm's count.
        rarest = self._rarest[self.hard]
        rare = np.maximum(t * w[rarest], 1.0)
        more = np.ones(size)
        np.maximum.at(more, rarest, 1 + top_two.PRICE * np.log(rare.max() / rare) * self.time / t)
        least = np.zeros(size)
        least[self.arms] = max(self.first, top_two.TURNS * turns / len(self.arms))
        return _shared(t, w * more, least)

    def margin(self, log: Array) -> Array:
        """How much more evidence (..., lines) there is than the rule needs, at its worst."""
        own = log[..., : self.edges]
        if self._rule != POLICIES:
            return np.asarray((own - self._union).min(axis=-1))
        crossed = (own - self._union).min(axis=-1)  # if all edges are ruled out for good
        found = (own - self._policy - math.log(self.edges)).min(axis=-1)
        if self._search is not None:
            found = self._search.margin(log, self._policy, self._union)
        return np.asarray(np.minimum((own - self._policy).min(axis=-1), np.maximum(crossed, found)))


def _closest(information: Information, w: Array) -> Closest:
    """Of each edge the closest alternative, where it has several."""
    found = information.closest(w)
    order = np.lexsort((found.value, information.edge))
    rows = order[np.unique(information.edge[order], return_index=True)[1]]
    return _picked(found, rows)


def _picked(closest: Closest, rows: npt.NDArray[Any]) -> Closest:
    return Closest(**{field.name: getattr(closest, field.name)[rows] for field in fields(closest)})


class _Search:
    """What kernels/search.py would find at some evidence: its vertices, as far as they are listed.

    Attributes
    ----------
    lines : Edges
        Edges of all vertices, each line once, such that they lose; those of vertex 0 first.
    gaps : array
        What they lose.
    """

    def __init__(self, table: VertexTable, means: Array) -> None:
        self._vertices = len(table.vertices)
        every = _joined([table.edges(number) for number in range(self._vertices)])
        degree = [len(table.edges(number)) for number in range(self._vertices)]
        gaps = np.concatenate([table.edges(n).gaps(means) for n in range(self._vertices)])
        sign = np.where(gaps < 0, -1.0, 1.0)
        every = replace(every, value=sign[:, None] * every.value)
        place: dict[bytes, int] = {}
        dense = np.round(every.dense(len(means)), 9) + 0.0  # -0.0 is 0.0
        # Ties between policies that are not the best say nothing; they stand on line 0.
        self._tied = gaps == 0
        self._line = np.zeros(len(gaps), dtype=np.int64)
        apart = np.flatnonzero(~self._tied)
        self._line[apart] = [place.setdefault(dense[e].tobytes(), len(place)) for e in apart]
        _, first = np.unique(self._line[apart], return_index=True)
        chosen = apart[first]
        self.lines = replace(every, index=every.index[chosen], value=every.value[chosen])
        self.gaps = np.abs(gaps[chosen])
        self._improves = gaps < 0
        self._start = np.repeat(np.arange(self._vertices), degree)
        self._following = table.arrays().following[: len(gaps)]
        self._first = np.cumsum([0, *degree[:-1]])
        self._log_degree = np.log(degree)

    def margin(self, log: Array, policy: float, union: float) -> Array:
        """By how much the worst vertex is beaten, or cannot be reached."""
        at = log[..., self._line]
        at[..., self._tied] = -math.inf
        won = np.where(self._improves, at, -math.inf)
        beaten = np.maximum.reduceat(won, self._first, axis=-1) - policy - self._log_degree
        apart = np.where(self._improves, -math.inf, at - union)
        unreachable = np.full(beaten.shape, math.inf)
        unreachable[..., 0] = -math.inf
        for _ in range(MOST_ROUNDS):
            before = unreachable.copy()
            for edge in np.flatnonzero(self._following > 0).tolist():
                y = self._following[edge]
                through = np.maximum(unreachable[..., self._start[edge]], apart[..., edge])
                unreachable[..., y] = np.minimum(unreachable[..., y], through)
            if (before == unreachable).all():
                break
        return np.asarray(np.maximum(beaten, unreachable)[..., 1:].min(axis=-1))


def _joined(parts: list[Edges]) -> Edges:
    """All edges in one."""
    width = max(part.index.shape[1] for part in parts)
    missing = [((0, 0), (0, width - part.index.shape[1])) for part in parts]
    index = [np.pad(p.index, m, "edge") for p, m in zip(parts, missing, strict=True)]
    value = [np.pad(p.value, m) for p, m in zip(parts, missing, strict=True)]
    return Edges(np.vstack(index), np.vstack(value), parts[0].exact)


def _shared(t: float, w: Array, least: Array) -> Array:
    """Counts in proportion to w, but none below its least; t in all."""
    n = least.copy()
    free = w > 0
    while free.any():
        scale = (t - least[~free].sum()) / w[free].sum()
        short = free & (scale * w < least)
        if not short.any():
            n[free] = scale * w[free]
            break
        free &= ~short
    return n


def _with_luck(
    run: _RunWithoutLuck, times: list[float], statistics: list[Array], evidence: Array
) -> Array:
    """Evidence (times, draws, lines) with the luck of each draw.

    The square root of twice a statistic is normal with deviation 1, luck.

    The sampler pulls the edge with the least evidence. An unlucky edge is pulled until it has
    caught up, a lucky one waits, so all but one are ahead by the size of their luck. The one that
    is not is pulled now; it is each edge with the share of pulls that it gets in the optimal
    allocation. Evidence counts for good.
    """
    own, share = run.own, _multipliers(run)
    rng = np.random.default_rng(0)
    draws = _draws(rng, run.size)
    place = (rng.permutation(len(draws)) + 0.5) / len(draws)
    pulled = np.searchsorted(np.cumsum(share)[:-1], place)
    variance = own.rewards.variance(own.mu, own.sigma)
    lucky = np.repeat(evidence[:, None, :], len(draws), axis=1)
    for k, t in enumerate(times):
        part = own.v * np.sqrt(variance / np.where(own.used, run.counts(t)[own.index], 1.0))
        part /= np.sqrt((part * part).sum(axis=1, keepdims=True))
        luck = np.abs((draws[:, own.index] * part).sum(axis=-1))
        luck[np.arange(len(draws)), pulled] = 0.0
        root = np.sqrt(2 * statistics[k])
        lucky[k, :, : run.edges] += 0.5 * (np.maximum(root + luck, 0.0) ** 2 - root * root)
    return np.maximum.accumulate(lucky, axis=0)


def _draws(rng: np.random.Generator, size: int) -> Array:
    """Standard normal numbers, each with its opposite."""
    half = rng.standard_normal((DRAWS, size))
    return np.vstack([half, -half])


def _multipliers(run: _RunWithoutLuck) -> Array:
    """Shares of the pulls that edges get in the optimal allocation.

    An edge that binds would share what is spent on it like `part`; what is spent in all is a
    mixture of these. Which one is found by the EM algorithm.
    """
    w = run.allocation
    spend = run.costs * w / (run.costs @ w)
    hard = np.flatnonzero(run.hard)
    gradient = np.zeros((run.edges, run.size))
    np.add.at(gradient, (np.arange(run.edges)[:, None], run.own.index), run.closest.gradient)
    part = w * gradient[hard] / run.closest.value[hard, None]
    share = np.full(len(hard), 1.0 / len(hard))
    used = part.any(axis=0)
    for _ in range(MOST_ROUNDS_OF_EM):
        share *= part[:, used] @ (spend[used] / (share @ part[:, used]))
    share *= part @ (1 / run.costs)  # pulls that it pays for
    found = np.zeros(run.edges)
    found[hard] = share / share.sum()
    return found
