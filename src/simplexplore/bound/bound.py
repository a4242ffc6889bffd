"""The answer if the means were known, and how many samples it takes to find it.

`lower_bound` puts geometry, information and allocation together for one instance:
optimal policy, edges, characteristic time in all scenarios with its certificate, the
unconstrained problem beside it, and the paper's corollaries in their corrected form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from simplexplore.errors import MeansError, NotConvergedError, SettingError
from simplexplore.geometry.answers import Answers, best_vertices
from simplexplore.geometry.edges import Edges
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.families import Gaussian
from simplexplore.problem.problem import EXPLORATION, SCENARIOS, Problem, check_problem

from .allocation import Allocation, optimal_allocation
from .allocation_set import AllocationSet
from .budget import fixed_budget
from .corollaries import corollaries
from .epsilon import best_answer, bracketed_answer
from .floats import floats
from .information import EPS, binary_kl
from .measured import as_if_known, measured_bound
from .measured_result import MeasuredBound
from .result import Bound, RelaxedBound, ScenarioBound, Unconstrained, Unsampled
from .unknown_sigma import information_about, time_with

Array = npt.NDArray[np.float64]

# Nothing is called a bound that is not certified to at least this.
WORST_GAP = 1e-2

# Costs that differ by more may be why no solution is found.
MOST_APART = 1e9

# Rounding may make samples miss a limit by this much, no more.
WORST_MISS = 1e-9

# Arms without samples for which limits are looked for that leave them none.
MAX_EXPLAINED = 10

# Sets of policies narrower than this are lost in rounding.
THIN = 1e-12


def lower_bound(
    problem: Problem,
    means: npt.ArrayLike | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
    budget: int | None = None,
    measured_means: Mapping[str, npt.ArrayLike] | None = None,
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
    budget : int, optional
        A fixed number of samples, to say how sure they can make one; default: the problem's
        `stop_when`.
    measured_means : mapping, optional
        From names of measured limits to the mean measurement of each arm; default: their own
        guesses. With measured limits a `MeasuredBound` comes back.

    Returns
    -------
    Bound
        With a certificate: `relative_gap` bounds the error of its characteristic time.

    Raises
    ------
    MeansError
        If there are no means, or they do not fit the problem.
    InfeasibleError
        If no policy satisfies all constraints; the message names those that conflict.
    NotConvergedError
        If no certificate was found: some numbers are too far apart for floats.

    Examples
    --------
    >>> from simplexplore import Problem
    >>> bound = lower_bound(Problem(["a", "b"]), [1.0, 0.0], delta=0.1)
    >>> bound.policy.tolist(), round(bound.characteristic_time, 6)
    ([1.0, 0.0], 8.0)
    """
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
    if budget is not None:
        problem = problem.replace(stop_when={"budget": budget})
    with floats():
        if problem.measured:
            return _measured(problem, mu, delta, problem.measured_means(measured_means))
        if isinstance(problem.rewards, Gaussian) and problem.rewards.equal_sigma:
            return _equal_sigma(problem, problem.rewards, mu, delta)
        return _bound(problem, mu, delta)


def _measured(problem: Problem, mu: Array, delta: float, means: Array) -> MeasuredBound:
    """The bound with measured limits, beside the one that holds if they were known."""
    known = as_if_known(problem.replace(delta=delta), means)
    bound = measured_bound(problem, _bound(known, mu, delta), means)
    if not problem.has_costs:
        return bound
    free = Polytope(problem.replace(measured=()))
    scenarios = {
        name: _in_samples(
            found, AllocationSet.of(bound._polytope if name == "anytime" else free, name).as_rows()
        )
        for name, found in bound.scenarios.items()
    }
    return replace(bound, scenarios=scenarios)


def _equal_sigma(problem: Problem, rewards: Gaussian, mu: Array, delta: float) -> Bound:
    """With one unknown sigma for all arms: as if the guess were known, but for the times."""
    if problem.has_costs:
        raise SettingError(
            "equal_sigma and [costs] do not go together yet: drop equal_sigma, so that each arm "
            "may have its own sigma, or the costs."
        )
    known = _bound(problem.replace(rewards=rewards.as_if_known()), mu, delta)
    kl = binary_kl(delta)
    return replace(
        known,
        problem=problem,
        scenarios={name: _timed(found, rewards, kl) for name, found in known.scenarios.items()},
        _free=partial(_timed_unconstrained, known, rewards, kl),
        _corollaries=partial(_timed_corollaries, known, rewards),
    )


def _timed_unconstrained(known: Bound, rewards: Gaussian, kl: float) -> Unconstrained:
    return _timed(known.unconstrained, rewards, kl)


def _timed_corollaries(known: Bound, rewards: Gaussian) -> dict[str, float | None]:
    return {
        name: time_with(rewards, x) if x is not None and name.startswith("distance") else x
        for name, x in known.bounds.items()
    }


Timed = TypeVar("Timed", ScenarioBound, Unconstrained)


def _timed(found: Timed, rewards: Gaussian, kl: float) -> Timed:
    """The same with times as they are if one sigma for all arms is unknown.

    Their relative errors are no larger: the logarithm grows more slowly than its argument.
    """
    changes: dict[str, Any] = {}
    if isinstance(found, RelaxedBound):
        for name in ("vertex_characteristic_time", "least_time"):
            changes[name] = time_with(rewards, getattr(found, name))
    time = changes["characteristic_time"] = time_with(rewards, found.characteristic_time)
    least = changes.get("least_time", time)
    changes["lower_bound"] = least * kl if least and kl else 0.0
    if isinstance(found, ScenarioBound):
        changes["relative_gap"] = found.relative_gap + 4 * EPS
        changes["known_sigma_time"] = found.characteristic_time
    return replace(found, **changes)


def _bound(problem: Problem, mu: Array, delta: float) -> Bound:
    polytope = Polytope(problem)
    vertex = polytope.optimal_vertex(mu)
    edges = polytope.edges(vertex)
    gaps = edges.gaps(mu)
    tied = polytope.tied_vertices(vertex, mu) if (gaps == 0).any() else []
    kl = binary_kl(delta)
    sets = {name: AllocationSet.of(polytope, name).as_rows() for name in problem.scenarios}
    scenarios = _scenarios(polytope, sets, edges, mu, kl)
    rewards = problem.rewards
    if not rewards.knows_sigma:
        same = copy(polytope)
        same.problem = problem.replace(rewards=rewards.as_if_known())
        known = _scenarios(same, sets, edges, mu, kl)
        scenarios = {
            name: replace(found, known_sigma_time=known[name].characteristic_time)
            for name, found in scenarios.items()
        }
    budget = None
    if problem.budget is not None:
        own = sets[problem.scenario]
        budget = fixed_budget(edges, gaps, mu, rewards, own, problem.budget)
        if budget.relative_gap > WORST_GAP:
            raise _uncertified(budget.characteristic_time, budget.relative_gap)
    return Bound(
        budget=budget,
        problem=problem,
        means=mu,
        delta=delta,
        policy=vertex.policy,
        value=float(mu @ vertex.policy),
        active=polytope.active(vertex),
        degenerate=polytope.is_degenerate(vertex),
        ties=tuple(other.policy for other in tied),
        scenarios=scenarios,
        _polytope=polytope,
        _vertex=vertex,
        _edges=edges,
        _free=partial(_unconstrained, problem, mu, kl, scenarios),
        _corollaries=partial(corollaries, problem, polytope, vertex, edges, gaps, mu),
    )


def _scenarios(
    polytope: Polytope, sets: Mapping[str, AllocationSet], edges: Edges, mu: Array, kl: float
) -> dict[str, ScenarioBound]:
    """The bounds of the polytope's problem in each scenario, given where samples may go there."""
    problem, gaps = polytope.problem, edges.gaps(mu)
    allowed = {name: shares.in_spend() for name, shares in sets.items()}
    scenarios: dict[str, ScenarioBound]
    if problem.epsilon and len(edges):
        known, complete = best_vertices(polytope, mu)
        answers = Answers(polytope, problem.epsilon, known)
        solve = best_answer if complete else bracketed_answer
        scenarios = {name: solve(answers, mu, allowed[name], kl) for name in allowed}
        for found in scenarios.values():
            if complete and found.relative_gap > WORST_GAP:
                raise _uncertified(found.characteristic_time, found.relative_gap)
    else:
        scenarios = {}
        for name, own in allowed.items():  # without constraints they are the same
            same = [scenarios[other] for other in scenarios if allowed[other].is_same_as(own)]
            found = same[0] if same else _scenario(problem, edges, gaps, mu, own, kl)
            scenarios[name] = found
    if problem.has_costs:
        scenarios = {name: _in_samples(scenarios[name], sets[name]) for name in scenarios}
    if EXPLORATION in scenarios and (problem.epsilon or (gaps != 0).all()):
        scenarios[EXPLORATION] = _explained(scenarios[EXPLORATION], allowed[EXPLORATION], edges)
    return scenarios


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
    information = information_about(
        edges, gaps, mu, problem.rewards, sampled=allowed.arms, costs=allowed.costs
    )
    if information.lost.any():
        return ScenarioBound(
            characteristic_time=math.inf,
            allocation=allowed.deep,
            lower_bound=math.inf if kl else 0.0,
            relative_gap=0.0,
            closest_alternative=None,
            binding_edges=tuple(int(e) for e in np.flatnonzero(information.lost)),
            unique=False,
        )
    try:
        best = _certified(optimal_allocation(information, allowed))
    except (NotConvergedError, FloatingPointError):
        if allowed.is_spent and allowed.costs.max() > MOST_APART * allowed.costs.min():
            raise _too_far_apart(allowed.costs) from None
        if allowed.width < THIN:
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
    binding = np.flatnonzero(closest.value <= closest.value.min() * (1 + 1e-6))
    binding = binding[np.argsort(-best.multipliers[binding], kind="stable")]
    hardest = dict.fromkeys(information.edge[binding].tolist())
    return ScenarioBound(
        characteristic_time=best.characteristic_time,
        allocation=best.w,
        lower_bound=best.characteristic_time * kl,
        relative_gap=best.relative_gap,
        closest_alternative=information.alternative(closest, int(binding[0]), mu),
        binding_edges=tuple(hardest),
        unique=best.unique,
    )


def _in_samples(scenario: ScenarioBound, allowed: AllocationSet) -> ScenarioBound:
    """The same with shares of samples beside those of what is spent."""
    w = scenario.allocation / allowed.costs
    w /= w.sum()
    missed = np.abs(allowed.equal @ w - allowed.total).max(
        initial=-allowed.room(w).min(initial=0.0)
    )
    if missed > WORST_MISS:
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
    limits = [allowed.polytope.keeping_at_zero(a) for a in missed[:MAX_EXPLAINED]]
    limits += [()] * (len(missed) - len(limits))
    found = [Unsampled(arms[a], names) for a, names in zip(missed, limits, strict=True)]
    return replace(scenario, unknowable=tuple(found))


def _certified(allocation: Allocation) -> Allocation:
    if not (allocation.characteristic_time > 0 and allocation.relative_gap <= WORST_GAP):
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
    free = Polytope(problem.replace(constraints=()))
    vertex = free.optimal_vertex(mu)
    if problem.constraints or problem.epsilon:
        edges = free.edges(vertex)
        every = AllocationSet.simplex(free).in_spend()
        result = _scenario(problem, edges, edges.gaps(mu), mu, every, kl)
        if problem.has_costs:
            result = _in_samples(result, every)
    else:
        result = known[SCENARIOS[0]]
    return Unconstrained(
        arm=problem.arms[int(np.argmax(vertex.policy))],
        characteristic_time=result.characteristic_time,
        allocation=result.allocation,
        lower_bound=result.lower_bound,
        spend=result.spend,
        cost_per_sample=result.cost_per_sample,
    )
