"""What `lower_bound` finds out, as records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from simplexplore.errors import SettingError
from simplexplore.geometry.edges import Edges
from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.vertex import Vertex
from simplexplore.problem.problem import EXPLORATION, Problem
from simplexplore.tabular import Row, Tabular

from .budget import Budget
from .floats import floats
from .information import Information
from .unknown_sigma import information_about, time_with

Array = npt.NDArray[np.float64]

# Numbers in the directions and neighbours of edges, if plain data hold all of these.
MOST_NUMBERS = 8_000_000

# With more edges than this each is made when it is looked at: few are.
MANY_EDGES = 1000


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

    @overload
    def __getitem__(self, number: int) -> Edge: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Edge, ...]: ...
    def __getitem__(self, number: int | slice) -> Edge | tuple[Edge, ...]:
        if isinstance(number, slice):
            return tuple(self[e] for e in range(*number.indices(len(self))))
        e = range(len(self))[number]
        direction = np.zeros(self._size)
        np.add.at(direction, self._edges.index[e], self._edges.value[e])
        neighbour = self._polytope.neighbour(self._vertex, self._edges, e)
        return Edge(direction, float(self._gaps[e]), neighbour)


@dataclass(frozen=True)
class Unsampled:
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
        T, in units of cost; infinite if optimal policies tie or `unknowable` says why no samples
        can tell, 0 if only one policy is feasible.
    allocation : (K,) array
        Shares of the samples that attain it.
    lower_bound : float
        T * kl(delta, 1 - delta): no method needs fewer samples, or spends less, on average.
    relative_gap : float
        Certified: the exact T is at least characteristic_time / (1 + relative_gap), and at
        most characteristic_time up to rounding.
    closest_alternative : (K,) array or None
        Means, as close as the allocation can tell, under which another policy is better.
    binding_edges : tuple of int
        Edges that decide T, hardest first.
    unique : bool
        Whether no other allocation attains T; if not, this one is the leximin choice.
    unknowable : tuple of Unsampled
        Arms that matter and get no samples, so that the best policy cannot be known.
    spend : (K,) array or None
        Shares of what is spent; None where all samples cost 1.
    cost_per_sample : float
        What a sample costs on average.
    known_sigma_time : float or None
        T if the guess of sigma were known; None where sigma is.
    """

    characteristic_time: float
    allocation: Array
    lower_bound: float
    relative_gap: float
    closest_alternative: Array | None
    binding_edges: tuple[int, ...]
    unique: bool
    unknowable: tuple[Unsampled, ...] = field(default=(), kw_only=True)
    spend: Array | None = field(default=None, kw_only=True)
    cost_per_sample: float = field(default=1.0, kw_only=True)
    known_sigma_time: float | None = field(default=None, kw_only=True)

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
    least_time : float
        Proven: no answer's characteristic time is less.
    rivals : tuple of (K,) arrays
        Vertices whose comparisons with the answer decide its time.
    """

    answer: Array
    answer_kind: str
    vertex_characteristic_time: float
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
        problem has limits on exploration.
    budget : Budget or None
        What a fixed number of samples can do in the problem's scenario, if one was given.
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
    budget: Budget | None
    _polytope: Polytope = field(repr=False)
    _vertex: Vertex = field(repr=False)
    _edges: Edges = field(repr=False)
    _free: Callable[[], Unconstrained] = field(repr=False)
    _corollaries: Callable[[], Mapping[str, float | None]] = field(repr=False)

    @cached_property
    def unconstrained(self) -> Unconstrained:
        """The best-arm problem with the same means and no constraints."""
        with floats():  # now, since simulations and studies do without it
            return self._free()

    @cached_property
    def bounds(self) -> Mapping[str, float | None]:
        """The paper's corollaries, corrected.

        ``distance_lower <= T <= distance_upper`` (end-of-time), ``H <= T`` (Gaussian only,
        else None), and the condition number ``kappa`` of the active constraints.
        """
        with floats():
            return self._corollaries()

    @cached_property
    def edges(self) -> Sequence[Edge]:
        """The rivals of the policy, one per edge of the feasible set; very many on demand."""
        rivals = Rivals(self._polytope, self._vertex, self._edges, self.means)
        return rivals if len(rivals) > MANY_EDGES else tuple(rivals)

    @property
    def _left_out(self) -> int:
        """Edges that plain data leave out where they are very many."""
        return max(0, len(self._edges) - MOST_NUMBERS // (2 * self.problem.size))

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
        return tuple(self.problem.arms[a] for a in self._polytope.forced_arms)

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
            return time_with(
                self.problem.rewards, 1.0 / float(own._information.certified(w).value.min())
            )
        gaps = self._edges.gaps(self.means)
        if len(gaps) == 0:
            return 0.0
        if (gaps == 0).any():
            return math.inf
        costs, rewards = self.problem.costs, self.problem.rewards
        information = information_about(self._edges, gaps, self.means, rewards, costs=costs)
        return time_with(rewards, 1.0 / float(information.certified(w).value.min()))

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
            "value": self.value,
            "active": list(self.active),
            "degenerate": self.degenerate,
            "unique": not self.ties,
            "ties": [policy.tolist() for policy in self.ties],
            "edges": [
                {
                    "direction": edge.direction.tolist(),
                    "gap": edge.gap,
                    "neighbour": edge.neighbour.tolist(),
                }
                for edge in map(self.edges.__getitem__, listed)
            ],
            **({"edges_left_out": self._left_out} if self._left_out else {}),
            "scenarios": {
                name: {
                    "characteristic_time": s.characteristic_time,
                    "allocation": s.allocation.tolist(),
                    "lower_bound": s.lower_bound,
                    "relative_gap": s.relative_gap,
                    "closest_alternative": (
                        None if s.closest_alternative is None else s.closest_alternative.tolist()
                    ),
                    "binding_edges": [listed[e] for e in s.binding_edges if e in listed],
                    "unique": s.unique,
                    **_relaxed_dict(s),
                    **(_cost_dict(s) if has_costs else {}),
                    **({} if knows else {"known_sigma_characteristic_time": s.known_sigma_time}),
                    **({"unknowable": _unknowable(s)} if name == EXPLORATION else {}),
                }
                for name, s in self.scenarios.items()
            },
            "unconstrained": {
                "arm": self.unconstrained.arm,
                "characteristic_time": self.unconstrained.characteristic_time,
                "allocation": self.unconstrained.allocation.tolist(),
                "lower_bound": self.unconstrained.lower_bound,
                **(_cost_dict(self.unconstrained) if has_costs else {}),
            },
            "bounds": dict(self.bounds),
            **({} if self.budget is None else {"budget": self.budget.to_dict()}),
            "redundant": list(self.redundant),
            "forced_to_zero": list(self.forced_to_zero),
        }


def _cost_dict(scenario: ScenarioBound | Unconstrained) -> dict[str, object]:
    """What only problems with costs have."""
    return {
        "cost_per_sample": scenario.cost_per_sample,
        "lower_bound_samples": scenario.lower_bound / scenario.cost_per_sample,
        "spend": None if scenario.spend is None else scenario.spend.tolist(),
    }


def _unknowable(scenario: ScenarioBound) -> list[dict[str, object]]:
    return [{"arm": x.arm, "limits": list(x.limits)} for x in scenario.unknowable]


def _relaxed_dict(scenario: ScenarioBound) -> dict[str, object]:
    """What only problems with epsilon > 0 have."""
    if not isinstance(scenario, RelaxedBound):
        return {}
    return {
        "answer": scenario.answer.tolist(),
        "answer_kind": scenario.answer_kind,
        "vertex_characteristic_time": scenario.vertex_characteristic_time,
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
