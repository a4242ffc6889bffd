"""The answer if the means were known, and how many samples it takes to find it.

`lower_bound` puts geometry, information and allocation together for one instance:
optimal policy, edges, characteristic time in all scenarios with its certificate, the
unconstrained problem beside it, and the paper's corollaries in their corrected form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from simplexplore.errors import MeansError, NotConvergedError, SimplexploreError
from simplexplore.geometry.edges import Edges
from simplexplore.geometry.epsilon_answers import Answers, best_vertices
from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.question_polytope import QuestionPolytope, polytope_of
from simplexplore.geometry.vertex import Vertex
from simplexplore.problem.measured import measured_means as means_of_rows
from simplexplore.problem.problem import EXPLORATION, SCENARIOS, Problem, check_problem

from .allocation import Allocation, optimal_allocation
from .allocation_set import AllocationSet
from .certificate import MAX_MISS
from .corollaries import corollaries
from .epsilon import best_answer
from .float_errors import trap_float_errors
from .information import Information, binary_kl
from .measured import with_known_limits
from .result import Bound, ScenarioBound, Unconstrained, UnidentifiableArm

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Nothing is called a bound that is not certified to at least this.
MAX_GAP = 1e-2

# Costs that differ by more may be why no solution is found.
MAX_COST_RATIO = 1e9

# Arms without samples for which limits are looked for that leave them none.
MAX_EXPLAINED = 10

# Sets of policies narrower than this are lost in rounding.
MIN_WIDTH = 1e-12


def lower_bound(
    problem: Problem,
    means: npt.ArrayLike | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
    measured_means: Mapping[str, npt.ArrayLike] | None = None,
) -> Bound:
    """The same as `simplexplore.lower_bound`, but that measured limits count as known."""
    problem = check_problem(problem)
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
    with trap_float_errors():
        if problem.measured:
            rows = means_of_rows(problem.measured, problem.arms, measured_means)
            return _bound(with_known_limits(problem.replace(delta=delta), rows), mu, delta)
        known = problem.replace(rewards=problem.rewards.with_known_variance())
        return replace(_bound(known, mu, delta), problem=problem)


def _bound(problem: Problem, mu: Array, delta: float) -> Bound:
    polytope = polytope_of(problem)
    vertices = [polytope.optimal_vertex(mu)]
    if isinstance(polytope, QuestionPolytope):
        vertices = polytope.right_vertices(mu)
    found = [_bound_of(problem, polytope, vertex, mu, delta) for vertex in vertices]
    return min(found, key=lambda bound: bound.characteristic_time)


def _bound_of(
    problem: Problem, polytope: Polytope, vertex: Vertex, mu: Array, delta: float
) -> Bound:
    """The bound of the optimal vertex, or of one of several answers that are right."""
    edges = polytope.edges(vertex)
    gaps = edges.gaps(mu)
    tied = polytope.tied_vertices(vertex, mu) if (gaps == 0).any() else []
    kl = binary_kl(delta)
    scenarios, failed = _scenarios(polytope, edges, gaps, mu, kl)
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
        failed=failed,
        _polytope=polytope,
        _vertex=vertex,
        _edges=edges,
        _free=partial(_unconstrained, problem, mu, kl, scenarios),
        _corollaries=partial(corollaries, problem, polytope, vertex, edges, gaps, mu),
        answer=polytope.in_words(vertex) if isinstance(polytope, QuestionPolytope) else None,
    )


def _scenarios(
    polytope: Polytope, edges: Edges, gaps: Array, mu: Array, kl: float
) -> tuple[dict[str, ScenarioBound], dict[str, str]]:
    """The bounds of the problem's scenarios; of others that have none, why."""
    problem = polytope.problem
    found: dict[str, ScenarioBound] = {}
    failed: dict[str, str] = {}
    solved: list[tuple[AllocationSet, ScenarioBound]] = []
    solve: Callable[[AllocationSet, float], ScenarioBound]
    solve = partial(_scenario, problem, edges, gaps, mu)
    if problem.epsilon and len(edges):
        known, complete = best_vertices(polytope, mu)
        answers = Answers(polytope, problem.epsilon, known)
        solve = partial(_within_epsilon, answers, complete, mu)
    for name in problem.scenarios:
        try:
            with trap_float_errors():
                own = AllocationSet.of(polytope, name).with_fixed()
                allowed = (own.as_rows() if problem.epsilon else own).in_spend()
                # Without constraints the scenarios are the same.
                same = [one for other, one in solved if other.is_same_as(allowed)]
                one = same[0] if same else solve(allowed, kl)
                solved.append((allowed, one))
                if problem.has_costs:
                    one = in_samples(one, own)
                if name == EXPLORATION and (problem.epsilon or (gaps != 0).all()):
                    one = _explained(one, allowed, edges)
                found[name] = one
        except SimplexploreError as error:
            if name == problem.scenario:
                raise
            failed[name] = str(error)
    return found, failed


def _within_epsilon(
    answers: Answers, complete: bool, mu: Array, allowed: AllocationSet, kl: float
) -> ScenarioBound:
    """The bound of a scenario in which an answer within epsilon of the best is good enough."""
    found = best_answer(answers, mu, allowed, kl, complete)
    if complete and found.relative_gap > MAX_GAP:
        raise _uncertified(found.characteristic_time, found.relative_gap)
    return found


def _scenario(
    problem: Problem, edges: Edges, gaps: Array, mu: Array, allowed: AllocationSet, kl: float
) -> ScenarioBound:
    if len(edges) == 0 or (gaps == 0).any():
        # One feasible policy: nothing to find out. A tie: no number of samples is enough.
        alternative = mu.copy() if len(edges) else None
        return _without_program(
            allowed, math.inf if len(edges) else 0.0, kl, gaps == 0, alternative
        )
    information = Information(
        edges, gaps, mu, problem.rewards, sampled=allowed.arms, costs=allowed.costs
    )
    if information.lost.any():
        return _without_program(allowed, math.inf, kl, information.lost, None)
    try:
        best = _certified(optimal_allocation(information, allowed))
    except (NotConvergedError, FloatingPointError):
        if allowed.costs.max() > MAX_COST_RATIO * allowed.costs.min():
            raise _too_far_apart(allowed.costs) from None
        if allowed.width < MIN_WIDTH:
            what, one = "constraints leave a set of policies", "policy"
            if allowed.polytope is not None and allowed.polytope.problem is not problem:
                what, one = "limits on exploration leave a set of allocations", "allocation"
            raise NotConvergedError(
                f"the {what} no wider than rounding errors: the {one} "
                f"deepest inside keeps only {max(allowed.width, 0.0):.0e} from them. Where an "
                "equality is meant, write it as one ('==', or equal limits on both sides)."
            ) from None
        raise
    closest = information.closest(best.w)
    binding = closest.hardest(best.multipliers)
    return ScenarioBound(
        characteristic_time=best.characteristic_time,
        allocation=best.w,
        lower_bound=best.characteristic_time * kl,
        relative_gap=best.relative_gap,
        closest_alternative=information.alternative(closest, int(binding[0]), mu),
        binding_edges=tuple(binding.tolist()),
        unique=best.unique,
        certificate=best.certificate,
    )


def _without_program(
    allowed: AllocationSet, time: float, kl: float, binding: Mask, alternative: Array | None
) -> ScenarioBound:
    """A bound of 0 or infinity, whatever the allocation."""
    return ScenarioBound(
        characteristic_time=time,
        allocation=allowed.max_slack,
        lower_bound=time * kl if time and kl else 0.0,
        relative_gap=0.0,
        closest_alternative=alternative,
        binding_edges=tuple(np.flatnonzero(binding).tolist()),
        unique=False,
    )


def in_samples(scenario: ScenarioBound, allowed: AllocationSet) -> ScenarioBound:
    """The same with shares of samples beside those of what is spent."""
    w = scenario.allocation / allowed.costs
    w /= w.sum()
    if allowed.miss(w) > MAX_MISS:
        raise _too_far_apart(allowed.costs)
    return replace(
        scenario,
        allocation=w,
        spend=scenario.allocation,
        cost_per_sample=float(allowed.costs @ w),
    )


def _explained(scenario: ScenarioBound, allowed: AllocationSet, edges: Edges) -> ScenarioBound:
    """The same with the reason why no samples can tell, where there is one."""
    if not math.isinf(scenario.characteristic_time) or allowed.polytope is None:
        return scenario
    chosen = list(scenario.binding_edges) or slice(None)  # with epsilon > 0 there are none
    moved = np.unique(edges.index[chosen][edges.value[chosen] != 0])
    arms = allowed.polytope.problem.arms
    missed = moved[~allowed.arms[moved]].tolist()
    limits = [allowed.polytope.constraints_forcing_zero(a) for a in missed[:MAX_EXPLAINED]]
    limits += [()] * (len(missed) - len(limits))
    found = [UnidentifiableArm(arms[a], names) for a, names in zip(missed, limits, strict=True)]
    return replace(scenario, unidentifiable=tuple(found))


def _certified(allocation: Allocation) -> Allocation:
    if not (allocation.characteristic_time > 0 and allocation.relative_gap <= MAX_GAP):
        raise _uncertified(allocation.characteristic_time, allocation.relative_gap)
    return allocation


def _too_far_apart(costs: Array) -> NotConvergedError:
    return NotConvergedError(
        f"costs from {costs.min():g} to {costs.max():g} are too far apart: floats cannot hold what "
        "is spent on the cheapest arms beside limits on samples. Bring them closer together."
    )


def _uncertified(time: float, gap: float) -> NotConvergedError:
    return NotConvergedError(
        f"the characteristic time could not be certified: the solver reached {time:g} with a "
        f"relative gap of {gap:.1g}. The gaps between policies may differ by too many orders of "
        "magnitude."
    )


def _unconstrained(
    problem: Problem, mu: Array, kl: float, known: Mapping[str, ScenarioBound]
) -> Unconstrained:
    free = Polytope(problem.replace(constraints=(), question=None))
    vertex = free.optimal_vertex(mu)
    result = known.get(SCENARIOS[0])
    if problem.constraints or problem.epsilon or problem.question or result is None:
        edges = free.edges(vertex)
        every = AllocationSet.simplex(free).in_spend()
        result = _scenario(problem, edges, edges.gaps(mu), mu, every, kl)
        if problem.has_costs:
            result = in_samples(result, every)
    return Unconstrained(
        arm=problem.arms[int(np.argmax(vertex.policy))],
        characteristic_time=result.characteristic_time,
        allocation=result.allocation,
        lower_bound=result.lower_bound,
        spend=result.spend,
        cost_per_sample=result.cost_per_sample,
    )
