"""What `lower_bound` finds out, as records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError, SettingError
from simplexplore.geometry.edges import Edges
from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.vertex import Vertex
from simplexplore.problem.problem import EXPLORATION, Problem
from simplexplore.tabular import Row, Tabular

from .certificate import Certificate
from .float_errors import trap_float_errors
from .information import Information

Array = npt.NDArray[np.float64]

# Numbers in the directions and neighbours of edges, if plain data hold all of these.
MAX_NUMBERS = 2_000_000

TIE = (
    "several policies are equally good, up to rounding: no number of samples can tell which is best"
)

# With more edges than this each is made when it is looked at: few are.
MANY_EDGES = 100


@dataclass(frozen=True)
class Edge:
    """One rival of the optimal policy.

    Attributes
    ----------
    direction : (K,) array
        From the policy towards the adjacent vertex; its positive part sums to 1.
    gap : float
        Loss per unit moved, -means @ direction.
    neighbour : (K,) array
        The adjacent vertex.
    """

    direction: Array
    gap: float
    neighbour: Array


class Rivals(Sequence[Edge]):
    """Edges of a policy, made when they are looked at: dense directions of all may fill memory."""

    def __init__(self, polytope: Polytope, vertex: Vertex, edges: Edges, means: Array) -> None:
        self._polytope, self._vertex, self._edges = polytope, vertex, edges
        self._size, self._gaps = len(means), edges.gaps(means)

    def __len__(self) -> int:
        return len(self._edges)

    def __getitem__(self, number: Any) -> Any:  # an edge, or a tuple of them for a slice
        if isinstance(number, slice):
            return tuple(self[e] for e in range(*number.indices(len(self))))
        e = range(len(self))[number]
        direction = np.zeros(self._size)
        np.add.at(direction, self._edges.index[e], self._edges.value[e])
        neighbour = self._polytope.adjacent_vertex(self._vertex, self._edges, e).policy
        return Edge(direction, float(self._gaps[e]), neighbour)


@dataclass(frozen=True)
class UnidentifiableArm:
    """An arm that limits on exploration leave without samples.

    Attributes
    ----------
    arm : str
    limits : tuple of str
        Names of limits that together leave it none; empty after the first ten arms.
    """

    arm: str
    limits: tuple[str, ...]


@dataclass(frozen=True)
class ScenarioBound:
    """How hard the problem is in one scenario.

    Attributes
    ----------
    characteristic_time : float
        T, in units of cost; infinite if optimal policies tie or `unidentifiable` says why no
        samples can tell, 0 if only one policy is feasible.
    allocation : (K,) array
        Shares of the samples that attain it.
    lower_bound : float
        T * kl(delta, 1 - delta): on average every method that is wrong with probability at most
        delta needs so many samples, or spends so much.
    relative_gap : float
        Certified: the exact T is at least characteristic_time / (1 + relative_gap), and at
        most characteristic_time up to rounding.
    closest_alternative : (K,) array or None
        Means, as close as the allocation can tell, under which another policy is better.
    binding_edges : tuple of int
        Edges that decide T, hardest first.
    unique : bool
        Whether no other allocation attains T; if not, this one is the leximin choice, or any with
        more than 50 arms.
    unidentifiable : tuple of UnidentifiableArm
        Arms that matter and get no samples, so that the best policy cannot be known.
    spend : (K,) array or None
        Shares of what is spent; None where all samples cost 1.
    cost_per_sample : float
        What a sample costs on average.
    certificate : Certificate or None
        Proof of `characteristic_time`; None where that is 0 or infinite, and with epsilon > 0.
    """

    characteristic_time: float
    allocation: Array
    lower_bound: float
    relative_gap: float
    closest_alternative: Array | None
    binding_edges: tuple[int, ...]
    unique: bool
    unidentifiable: tuple[UnidentifiableArm, ...] = field(default=(), kw_only=True)
    spend: Array | None = field(default=None, kw_only=True)
    cost_per_sample: float = field(default=1.0, kw_only=True)
    certificate: Certificate | None = field(default=None, kw_only=True, repr=False)

    @property
    def lower_bound_samples(self) -> float:
        """Samples that `lower_bound` pays for, spread like `allocation`."""
        return self.lower_bound / self.cost_per_sample


@dataclass(frozen=True)
class RelaxedBound(ScenarioBound):
    """How hard it is to find a policy within epsilon of the best.

    `characteristic_time` and `allocation` are those of `answer`. With several right answers
    T * kl is what large samples need (delta towards 0), and `lower_bound` is that of
    `least_time`: of every answer, mixes included. Where the vertices are too many to compare
    with all, `relative_gap` is large: the exact time of the answer is a bracket.

    Attributes
    ----------
    answer : (K,) array
        The policy within epsilon of the best that takes fewest samples, of those found.
    answer_kind : {"vertex", "mix"}
    vertex_characteristic_time : float
        The least among vertices, exactly: what the paper's answers can attain.
    listed_time : float or None
        The least found among the answers that runs choose from: all vertices and mixes of them in
        equal steps. None where the vertices are too many for runs.
    least_time : float
        Proven: no answer's characteristic time is less. For Gaussian rewards within 1% of
        `characteristic_time`, as a rule.
    rivals : tuple of (K,) arrays
        Vertices whose comparisons with the answer decide its time.
    """

    answer: Array
    answer_kind: str
    vertex_characteristic_time: float
    listed_time: float | None
    least_time: float
    rivals: tuple[Array, ...]
    _information: Information | None = field(repr=False)


@dataclass(frozen=True)
class Unconstrained:
    """The best-arm problem with the same means and no constraints."""

    arm: str
    characteristic_time: float
    allocation: Array
    lower_bound: float
    spend: Array | None = None
    cost_per_sample: float = 1.0


@dataclass(frozen=True)
class Bound(Tabular):
    """What `lower_bound` finds out about an instance.

    Attributes
    ----------
    problem : Problem
    means : ndarray, shape (K,)
        The means that the bound is about.
    delta : float
        The probability of a wrong answer that the bound is about.
    policy : ndarray, shape (K,)
        The optimal policy.
    value : float
        Its mean reward.
    active : tuple of str
        Constraints that hold with equality at the policy.
    degenerate : bool
        Whether more of them are active than the dimension of the feasible set needs.
    ties : tuple of (K,) arrays
        Other optimal policies; empty if the optimum is unique.
    scenarios : mapping
        A `ScenarioBound` for "end-of-time", for "anytime", and for "exploration" if the
        problem has limits on exploration; without those that have failed.
    failed : mapping
        From other scenarios than the problem's to why they have no bound.
    answer : str or None
        What is right at these means, in the words of a question besides the best mix. `policy` has
        equal shares of the arms that it names then, or none.
    """

    problem: Problem
    means: Array
    delta: float
    policy: Array
    value: float
    active: tuple[str, ...]
    degenerate: bool
    ties: tuple[Array, ...]
    scenarios: Mapping[str, ScenarioBound]
    failed: Mapping[str, str]
    _polytope: Polytope = field(repr=False)
    _vertex: Vertex = field(repr=False)
    _edges: Edges = field(repr=False)
    _free: Callable[[], Unconstrained] = field(repr=False)
    _corollaries: Callable[[], Mapping[str, float | None]] = field(repr=False)
    answer: str | None = None

    @cached_property
    def unconstrained(self) -> Unconstrained:
        """The best-arm problem with the same means and no constraints."""
        with trap_float_errors():  # now, since simulations and studies do without it
            return self._free()

    @cached_property
    def bounds(self) -> Mapping[str, float | None]:
        """The paper's corollaries, corrected.

        ``distance_lower <= T <= distance_upper`` (end-of-time), ``H <= T`` (Gaussian only,
        else None), and the condition number ``kappa`` of the active constraints.
        """
        with trap_float_errors():
            return self._corollaries()

    @cached_property
    def edges(self) -> Sequence[Edge]:
        """The rivals of the policy, one per edge of the feasible set; very many on demand."""
        rivals = Rivals(self._polytope, self._vertex, self._edges, self.means)
        return rivals if len(rivals) > MANY_EDGES else tuple(rivals)

    @property
    def _left_out(self) -> int:
        """Edges that plain data leave out where they are very many."""
        return max(0, len(self._edges) - MAX_NUMBERS // (2 * self.problem.size))

    def _listed(self) -> list[int]:
        """Edges in plain data: all, or of very many those that bind and those of least gap."""
        if not self._left_out:
            return list(range(len(self._edges)))
        last = np.ones(len(self._edges), dtype=bool)
        last[[e for scenario in self.scenarios.values() for e in scenario.binding_edges]] = False
        order = np.lexsort((self._edges.gaps(self.means), last))
        return sorted(order[: len(order) - self._left_out].tolist())

    @property
    def forced_to_zero(self) -> tuple[str, ...]:
        """Arms that no feasible policy uses."""
        return tuple(
            self.problem.arms[a]
            for a in self._polytope.forced_arms
            if a != self._polytope.known_arm
        )

    @property
    def redundant(self) -> tuple[str, ...]:
        """Constraints that could be dropped without changing the feasible set."""
        return self._polytope.redundant

    @property
    def _own(self) -> ScenarioBound:
        return self.scenarios[self.problem.scenario]

    @property
    def characteristic_time(self) -> float:
        """T in the problem's scenario."""
        return self._own.characteristic_time

    @property
    def allocation(self) -> Array:
        """Optimal shares of the samples in the problem's scenario."""
        return self._own.allocation

    @property
    def samples(self) -> float:
        """Least expected number of samples in the problem's scenario.

        With costs, those that the least expected cost pays for.
        """
        return self._own.lower_bound_samples

    @property
    def cost(self) -> float:
        """Least expected cost in the problem's scenario; `samples`, where each costs 1."""
        return self._own.lower_bound

    @property
    def relative_gap(self) -> float:
        """Certified relative error of the characteristic time."""
        return self._own.relative_gap

    def time_of(self, allocation: npt.ArrayLike) -> float:
        """Characteristic time, in units of cost, of this allocation instead of an optimal one.

        Parameters
        ----------
        allocation : sequence of float
            Share of the samples of each arm, or counts: only proportions matter. All positive.

        Returns
        -------
        float

        Examples
        --------
        >>> from simplexplore import Problem, lower_bound
        >>> bound = lower_bound(Problem(2), [1.0, 0.0])
        >>> bound.time_of([1, 1]), round(bound.time_of([1, 3]), 2)
        (8.0, 10.67)
        """
        w = shares(allocation, self.problem.size)
        if self.problem.has_costs:
            w = self.problem.costs * w / (self.problem.costs @ w)
        own = self._own
        if isinstance(own, RelaxedBound):
            if own._information is None:
                return 0.0
            return 1.0 / float(own._information.closest(w).value.min())
        gaps = self._edges.gaps(self.means)
        if len(gaps) == 0:
            return 0.0
        if (gaps == 0).any():
            return math.inf
        costs, rewards = self.problem.costs, self.problem.rewards.with_known_variance()
        information = Information(self._edges, gaps, self.means, rewards, costs=costs)
        return 1.0 / float(information.closest(w).value.min())

    def rows(self) -> list[Row]:
        """One row per arm: mean, share of the best policy, shares of the samples."""
        return [
            {
                "arm": arm,
                "mean": float(self.means[a]),
                "policy": float(self.policy[a]),
                **{name: float(s.allocation[a]) for name, s in self.scenarios.items()},
            }
            for a, arm in enumerate(self.problem.arms)
        ]

    def __repr__(self) -> str:
        return (
            f"<Bound: {self.problem.scenario}, at least {self.samples:.6g} samples with delta "
            f"{self.delta:g}, characteristic time {self.characteristic_time:.6g}>"
        )

    def to_dict(self) -> dict[str, object]:
        """The bound as plain data, under the names of the command's JSON output.

        Returns
        -------
        dict
        """
        epsilon, has_costs = self.problem.epsilon, self.problem.has_costs
        asked = self.problem.question
        rewards = self.problem.rewards
        listed = {e: number for number, e in enumerate(self._listed())}
        knows, guess = rewards.knows_sigma, rewards.sigmas(self.problem.size)
        return {
            "arms": list(self.problem.arms),
            "family": self.problem.rewards.name,
            **({} if knows else {"sigma": "unknown", "sigma_guess": guess.tolist()}),
            "delta": self.delta,
            **({"epsilon": epsilon} if epsilon else {}),
            "means": self.means.tolist(),
            **({"costs": self.problem.costs.tolist()} if has_costs else {}),
            "policy": self.policy.tolist(),
            "value": None if self.answer else self.value,
            **({"question": asked.to_dict(), "answer": self.answer} if asked else {}),
            "active": list(self.active),
            "degenerate": self.degenerate,
            "unique": not self.ties,
            "ties": [policy.tolist() for policy in self.ties],
            "edges": [
                {
                    "direction": edge.direction.tolist(),
                    "gap": edge.gap,
                    "neighbour": None if asked else edge.neighbour.tolist(),
                }
                for edge in map(self.edges.__getitem__, listed)
            ],
            **({"edges_left_out": self._left_out} if self._left_out else {}),
            "scenarios": {
                name: self._scenario_dict(name, listed) for name in self.problem.scenarios
            },
            "unconstrained": _or_error(self._unconstrained_dict),
            "bounds": _or_error(lambda: dict(self.bounds)),
            "redundant": list(self.redundant),
            "forced_to_zero": list(self.forced_to_zero),
        }

    def _scenario_dict(self, name: str, listed: Mapping[int, int]) -> dict[str, object]:
        """A scenario; `listed` are the numbers of edges in plain data."""
        if name in self.failed:
            return {"error": self.failed[name]}
        s = self.scenarios[name]
        alternative = s.closest_alternative
        return {
            "characteristic_time": s.characteristic_time,
            "allocation": s.allocation.tolist(),
            **_least(s, tie=bool(self.ties)),
            "relative_gap": s.relative_gap,
            "closest_alternative": None if alternative is None else alternative.tolist(),
            "binding_edges": [listed[e] for e in s.binding_edges if e in listed],
            "unique": s.unique,
            **_relaxed_dict(s),
            **(_cost_dict(s) if self.problem.has_costs else {}),
            **({"unknowable": _unidentifiable(s)} if name == EXPLORATION else {}),
        }

    def _unconstrained_dict(self) -> dict[str, object]:
        free = self.unconstrained
        return {
            "arm": free.arm,
            "characteristic_time": free.characteristic_time,
            "allocation": free.allocation.tolist(),
            **_least(free, tie=True),
            **(_cost_dict(free) if self.problem.has_costs else {}),
        }


def _or_error(content: Callable[[], dict[str, object]]) -> dict[str, object]:
    """Plain data, or why there are none."""
    try:
        return content()
    except NotConvergedError as error:
        return {"error": str(error)}


def _least(bound: ScenarioBound | Unconstrained, *, tie: bool) -> dict[str, object]:
    """The lower bound; none where policies tie, and a note that says so."""
    if tie and math.isinf(bound.lower_bound):
        return {"lower_bound": None, "note": TIE}
    return {"lower_bound": bound.lower_bound}


def _cost_dict(scenario: ScenarioBound | Unconstrained) -> dict[str, object]:
    """What only problems with costs have."""
    least = scenario.lower_bound / scenario.cost_per_sample
    return {
        "cost_per_sample": scenario.cost_per_sample,
        "lower_bound_samples": least if math.isfinite(least) else None,
        "spend": None if scenario.spend is None else scenario.spend.tolist(),
    }


def _unidentifiable(scenario: ScenarioBound) -> list[dict[str, object]]:
    return [{"arm": x.arm, "limits": list(x.limits)} for x in scenario.unidentifiable]


def _relaxed_dict(scenario: ScenarioBound) -> dict[str, object]:
    """What only problems with epsilon > 0 have."""
    if not isinstance(scenario, RelaxedBound):
        return {}
    return {
        "answer": scenario.answer.tolist(),
        "answer_kind": scenario.answer_kind,
        "vertex_characteristic_time": scenario.vertex_characteristic_time,
        "listed_characteristic_time": scenario.listed_time,
        "least_characteristic_time": scenario.least_time,
        "rivals": [policy.tolist() for policy in scenario.rivals],
    }


def shares(allocation: npt.ArrayLike, size: int) -> Array:
    """Shares of samples out of positive numbers, one per arm."""
    try:
        w = np.asarray(allocation, dtype=float).reshape(size)
    except (TypeError, ValueError):
        raise SettingError(
            f"an allocation has one number for each of the {size} arms; got {allocation!r}."
        ) from None
    if not (np.isfinite(w).all() and (w > 0).all()):
        raise SettingError(f"shares of samples must be positive; got {allocation!r}.")
    return np.asarray(w / w.sum())
