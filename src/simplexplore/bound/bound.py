"""The answer if the means were known, and how many samples it takes to find it.

`lower_bound` puts geometry, information and allocation together for one instance:
optimal policy, edges, characteristic time in both scenarios with its certificate, the
unconstrained problem beside it, and the paper's corollaries in their corrected form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.errors import MeansError, NotConvergedError, SettingError
from simplexplore.geometry.answers import Answers, best_vertices
from simplexplore.geometry.edges import Edges
from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.standard_form import Vertex
from simplexplore.problem.problem import SCENARIOS, Problem

from .allocation import Allocation, optimal_allocation
from .allocation_set import AllocationSet
from .epsilon import BestAnswer, best_answer, bracketed_answer
from .information import Information

Array = npt.NDArray[np.float64]

# Nothing is called a bound that is not certified to at least this.
WORST_GAP = 1e-2

# Sets of policies narrower than this are lost in rounding.
THIN = 1e-12


def binary_kl(delta: float) -> float:
    """kl(delta, 1 - delta): what one bit of confidence costs in information.

    Zero for delta >= 1/2, where a guess is good enough.

    Examples
    --------
    >>> round(binary_kl(0.1), 6)
    1.75778
    """
    if delta >= 0.5:
        return 0.0
    return (1 - 2 * delta) * math.log((1 - delta) / delta)


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


@dataclass(frozen=True)
class ScenarioBound:
    """How hard the problem is in one scenario.

    Attributes
    ----------
    characteristic_time : float
        T; infinite if optimal policies tie, 0 if only one policy is feasible.
    allocation : (K,) array
        Shares of the samples that attain it.
    lower_bound : float
        T * kl(delta, 1 - delta): no method needs fewer samples on average.
    relative_gap : float
        Certified: the exact T is at least characteristic_time / (1 + relative_gap), and at
        most characteristic_time up to rounding.
    closest_alternative : (K,) array or None
        Means, as close as the allocation can tell, under which another policy is better.
    binding_edges : tuple of int
        Edges that decide T, hardest first.
    unique : bool
        Whether no other allocation attains T; if not, this one is the leximin choice.
    """

    characteristic_time: float
    allocation: Array
    lower_bound: float
    relative_gap: float
    closest_alternative: Array | None
    binding_edges: tuple[int, ...]
    unique: bool


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


@dataclass(frozen=True)
class Bound:
    """Everything `lower_bound` knows about an instance.

    Attributes
    ----------
    policy, value
        The optimal policy and its mean reward.
    active : tuple of str
        What holds with equality at the policy.
    degenerate : bool
        Whether more is active than the dimension of the feasible set needs.
    ties : tuple of (K,) arrays
        Other optimal policies; empty if the optimum is unique.
    scenarios : mapping
        A `ScenarioBound` for "end-of-time" and for "anytime".
    bounds : mapping
        ``distance_lower <= T <= distance_upper`` (end-of-time), ``H <= T`` (Gaussian only,
        else None), and the condition number ``kappa`` of the active constraints.
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
    unconstrained: Unconstrained
    bounds: Mapping[str, float | None]
    _polytope: Polytope = field(repr=False)
    _vertex: Vertex = field(repr=False)
    _edges: Edges = field(repr=False)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The rivals of the policy, one per edge of the feasible set."""
        directions = self._edges.dense(len(self.means))
        return tuple(
            Edge(directions[e], float(gap), self._polytope.neighbour(self._vertex, self._edges, e))
            for e, gap in enumerate(self._edges.gaps(self.means))
        )

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
        """Least expected number of samples in the problem's scenario."""
        return self._own.lower_bound

    @property
    def relative_gap(self) -> float:
        """Certified relative error of the characteristic time."""
        return self._own.relative_gap

    def time_of(self, allocation: npt.ArrayLike) -> float:
        """Characteristic time if samples follow this allocation instead of an optimal one.

        Parameters
        ----------
        allocation : sequence of float
            Share of the samples of each arm, or counts: only proportions matter. All positive.

        Examples
        --------
        >>> from simplexplore import Problem
        >>> bound = lower_bound(Problem(2), [1.0, 0.0])
        >>> bound.time_of([1, 1]), round(bound.time_of([1, 3]), 2)
        (8.0, 10.67)
        """
        w = _shares(allocation, self.problem.size)
        own = self._own
        if isinstance(own, RelaxedBound):
            return 1.0 / float(own._information.closest(w).value.min()) if own._information else 0.0
        gaps = self._edges.gaps(self.means)
        if len(gaps) == 0:
            return 0.0
        if (gaps == 0).any():
            return math.inf
        information = Information(self._edges, gaps, self.means, self.problem.rewards)
        return 1.0 / float(information.closest(w).value.min())

    def to_dict(self) -> dict[str, object]:
        """Plain Python numbers under the names of the command's JSON output."""
        epsilon = self.problem.epsilon
        return {
            "arms": list(self.problem.arms),
            "family": self.problem.rewards.name,
            "delta": self.delta,
            **({"epsilon": epsilon} if epsilon else {}),
            "means": self.means.tolist(),
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
                for edge in self.edges
            ],
            "scenarios": {
                name: {
                    "characteristic_time": s.characteristic_time,
                    "allocation": s.allocation.tolist(),
                    "lower_bound": s.lower_bound,
                    "relative_gap": s.relative_gap,
                    "closest_alternative": (
                        None if s.closest_alternative is None else s.closest_alternative.tolist()
                    ),
                    "binding_edges": list(s.binding_edges),
                    "unique": s.unique,
                    **_relaxed_dict(s),
                }
                for name, s in self.scenarios.items()
            },
            "unconstrained": {
                "arm": self.unconstrained.arm,
                "characteristic_time": self.unconstrained.characteristic_time,
                "allocation": self.unconstrained.allocation.tolist(),
                "lower_bound": self.unconstrained.lower_bound,
            },
            "bounds": dict(self.bounds),
            "redundant": list(self.redundant),
            "forced_to_zero": list(self.forced_to_zero),
        }


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


def lower_bound(
    problem: Problem,
    means: npt.ArrayLike | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
) -> Bound:
    """Optimal policy, characteristic time and the least number of samples.

    Parameters
    ----------
    problem : Problem
    means : sequence of float, optional
        The true (or guessed) mean of each arm; default: the problem's own guess.
    delta : float, optional
        Error probability; default: the problem's.
    epsilon : float, optional
        How much less than the best is good enough; default: the problem's. With epsilon > 0
        the scenarios are `RelaxedBound`, and all vertices are compared, not only neighbours.

    Examples
    --------
    >>> from simplexplore import Problem
    >>> bound = lower_bound(Problem(["a", "b"]), [1.0, 0.0], delta=0.1)
    >>> bound.policy.tolist(), round(bound.characteristic_time, 6)
    ([1.0, 0.0], 8.0)
    """
    if means is None:
        means = problem.means
    if means is None:
        raise MeansError(
            "no means given: a bound needs a guess of each arm's mean; add 'means = [...]' to the "
            "problem or pass them."
        )
    mu = problem.check_means(means)
    delta = problem.delta if delta is None else problem.replace(delta=delta).delta
    if epsilon is not None:
        problem = problem.replace(epsilon=epsilon)
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            return _bound(problem, mu, delta)
    except ArithmeticError as error:
        raise NotConvergedError(
            f"floats cannot hold what the bound needs ({error}): some numbers of the problem are "
            "too large, too small or too far apart; choose units in which means and noise are "
            "near 1."
        ) from error


def _bound(problem: Problem, mu: Array, delta: float) -> Bound:
    polytope = Polytope(problem)
    vertex = polytope.optimal_vertex(mu)
    edges = polytope.edges(vertex)
    gaps = edges.gaps(mu)
    tied = polytope.tied_vertices(vertex, mu) if (gaps == 0).any() else []
    kl = binary_kl(delta)
    allowed = {name: AllocationSet.of(polytope, name) for name in SCENARIOS}
    scenarios: dict[str, ScenarioBound]
    if problem.epsilon and len(edges):
        known, complete = best_vertices(polytope, mu)
        answers = Answers(polytope, problem.epsilon, known)
        solve = best_answer if complete else bracketed_answer
        best = {name: solve(answers, mu, allowed[name]) for name in SCENARIOS}
        for found in best.values():
            if complete and found.relative_gap > WORST_GAP:
                raise _uncertified(found.time, found.relative_gap)
        scenarios = {name: _relaxed(found, kl) for name, found in best.items()}
    else:
        scenarios = {
            name: _scenario(problem, edges, gaps, mu, allowed[name], kl) for name in SCENARIOS
        }
    return Bound(
        problem=problem,
        means=mu,
        delta=delta,
        policy=vertex.policy,
        value=float(mu @ vertex.policy),
        active=polytope.active(vertex),
        degenerate=polytope.is_degenerate(vertex),
        ties=tuple(other.policy for other in tied),
        scenarios=scenarios,
        unconstrained=_unconstrained(problem, mu, kl),
        bounds=_corollaries(problem, polytope, vertex, edges, gaps, mu),
        _polytope=polytope,
        _vertex=vertex,
        _edges=edges,
    )


def _shares(allocation: npt.ArrayLike, size: int) -> Array:
    try:
        w = np.asarray(allocation, dtype=float).reshape(size)
    except (TypeError, ValueError):
        raise SettingError(
            f"an allocation has one number for each of the {size} arms; got {allocation!r}."
        ) from None
    if not (np.isfinite(w).all() and (w > 0).all()):
        raise SettingError(f"shares of samples must be positive; got {allocation!r}.")
    return np.asarray(w / w.sum())


def _scenario(
    problem: Problem, edges: Edges, gaps: Array, mu: Array, allowed: AllocationSet, kl: float
) -> ScenarioBound:
    if len(edges) == 0 or (gaps == 0).any():
        # One feasible policy: nothing to find out. A tie: no number of samples is enough.
        time = math.inf if len(edges) else 0.0
        return ScenarioBound(
            characteristic_time=time,
            allocation=allowed.deep,
            lower_bound=time * kl if time and kl else 0.0,
            relative_gap=0.0,
            closest_alternative=mu.copy() if len(edges) else None,
            binding_edges=tuple(int(e) for e in np.flatnonzero(gaps == 0)),
            unique=False,
        )
    information = Information(edges, gaps, mu, problem.rewards)
    try:
        best = _certified(optimal_allocation(information, allowed))
    except (NotConvergedError, FloatingPointError):
        if allowed.width < THIN:
            raise NotConvergedError(
                "the constraints leave a set of policies no wider than rounding errors: the policy "
                f"deepest inside keeps only {max(allowed.width, 0.0):.0e} from them. Where an "
                "equality is meant, write it as one ('==', or equal limits on both sides)."
            ) from None
        raise
    closest = information.closest(best.w)
    binding = np.flatnonzero(closest.value <= closest.value.min() * (1 + 1e-6))
    binding = binding[np.argsort(-best.multipliers[binding], kind="stable")]
    return ScenarioBound(
        characteristic_time=best.characteristic_time,
        allocation=best.w,
        lower_bound=best.characteristic_time * kl,
        relative_gap=best.relative_gap,
        closest_alternative=information.alternative(closest, int(binding[0]), mu),
        binding_edges=tuple(int(e) for e in binding),
        unique=best.unique,
    )


def _relaxed(best: BestAnswer, kl: float) -> RelaxedBound:
    return RelaxedBound(
        characteristic_time=best.time,
        allocation=best.allocation,
        lower_bound=best.least_time * kl,
        relative_gap=best.relative_gap,
        closest_alternative=best.closest_alternative,
        binding_edges=(),
        unique=best.unique,
        answer=best.policy,
        answer_kind=best.kind,
        vertex_characteristic_time=best.vertex_time,
        least_time=best.least_time,
        rivals=best.rivals,
        _information=best.information,
    )


def _certified(allocation: Allocation) -> Allocation:
    if not (allocation.characteristic_time > 0 and allocation.relative_gap <= WORST_GAP):
        raise _uncertified(allocation.characteristic_time, allocation.relative_gap)
    return allocation


def _uncertified(time: float, gap: float) -> NotConvergedError:
    return NotConvergedError(
        f"the characteristic time could not be certified: the solver reached {time:g} with a "
        f"relative gap of {gap:.1g}. The gaps between policies may differ by too many orders of "
        "magnitude."
    )


def _unconstrained(problem: Problem, mu: Array, kl: float) -> Unconstrained:
    free = Polytope(problem.replace(constraints=()))
    vertex = free.optimal_vertex(mu)
    edges = free.edges(vertex)
    result = _scenario(problem, edges, edges.gaps(mu), mu, AllocationSet.simplex(free), kl)
    return Unconstrained(
        arm=problem.arms[int(np.argmax(vertex.policy))],
        characteristic_time=result.characteristic_time,
        allocation=result.allocation,
        lower_bound=result.lower_bound,
    )


def _corollaries(
    problem: Problem,
    polytope: Polytope,
    vertex: Vertex,
    edges: Edges,
    gaps: Array,
    mu: Array,
) -> dict[str, float | None]:
    """Corollaries 1 and 2 of the paper, corrected.

    Corollary 1: each edge alone bounds T from below and uniform sampling bounds it from
    above, so both ends are maxima over edges (the printed upper end is a minimum, which
    fails). Corollary 2(b): Cauchy-Schwarz gives T >= H without the condition number, which
    depends on how rows are scaled; we report it for rows of length one.
    """
    kappa = _condition_number(polytope, vertex)
    if len(edges) == 0:
        return {"distance_lower": 0.0, "distance_upper": 0.0, "kappa": kappa, "H": None}
    if (gaps == 0).any():
        return {"distance_lower": math.inf, "distance_upper": math.inf, "kappa": kappa, "H": None}
    information = Information(edges, gaps, mu, problem.rewards)
    uniform = np.full(problem.size, 1.0 / problem.size)
    hardness: float | None = None
    if problem.rewards.name == "gaussian":
        losses = (mu.max() - mu) / problem.rewards.sigmas(problem.size)
        hardness = float(2.0 / (losses @ losses)) if losses.any() else None
    return {
        "distance_lower": float(information.edge_times().max()),
        "distance_upper": float(1.0 / information.closest(uniform).value.min()),
        "kappa": kappa,
        "H": hardness,
    }


def _condition_number(polytope: Polytope, vertex: Vertex) -> float:
    """Ratio of extreme singular values of the active rows, each of length one."""
    problem = polytope.problem
    active = set(polytope.active(vertex))
    rows = np.array(
        [np.ones(problem.size)] + [c.coefficients for c in problem.constraints if c.name in active]
    )
    rows /= np.abs(rows).max(axis=1, keepdims=True)  # squares of what is left do not overflow
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # Rows of arms at zero are unit vectors: the Gram matrix is the identity on those arms plus
    # that of the few other rows. So it is the identity across what these rows span there, and
    # only the arms in use and this span, q, are left to look at.
    used = np.array(sorted(vertex.shares))
    at_zero = np.delete(np.arange(problem.size), used)
    q = np.linalg.qr(rows[:, at_zero].T)[0]
    seen = np.hstack([rows[:, used], rows[:, at_zero] @ q])
    gram = seen.T @ seen + np.diag(np.r_[np.zeros(len(used)), np.ones(q.shape[1])])
    sizes = np.linalg.eigvalsh(gram)
    if q.shape[1] < len(at_zero):
        sizes = np.append(sizes, 1.0)
    return float(np.sqrt(sizes.max() / sizes.min()))
