"""How many samples it takes to find a policy within epsilon of the best.

For one answer pi this is the program of the exact problem with other comparisons: every vertex
x, not only neighbours, v = pi - x, and the gap v . mu + epsilon (docs/theory/epsilon.md). Its
optimum comes with a certificate. The best answer is the best of these:

- among vertices it is exact: each is solved, or a bound of its own rules it out;
- among all policies the problem is not convex. A local search finds an answer, whose time is
  certified; a relaxation bounds what any answer could do. The two are a bracket.

Where vertices are too many to enumerate, the most rewarding ones are found by pivoting from the
optimum; one of them is the answer, and its time is bracketed (`bracketed_answer`).

The relaxation. Let G(x) be what x loses against the best vertex. If delta . (x - y) >=
2 epsilon + G(x) + G(y) for two vertices x and y, then for every answer pi, mu + delta makes x or
mu - delta makes y more than epsilon better than pi: the two conditions add up to that. So no
answer's information exceeds the larger of the two shifts' divergences, whatever the allocation.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError
from simplexplore.geometry.answers import Answers
from simplexplore.geometry.edges import Edges
from simplexplore.problem.families import Gaussian

from .allocation import optimal_allocation
from .allocation_set import AllocationSet
from .epsilon_search import Solved, all_sampled, better_mix, information_of
from .information import Information
from .result import RelaxedBound

Array = npt.NDArray[np.float64]

# Mixes in equal steps from which a search may start: the most promising ones.
STARTS = 3

# How far an allocation may lean inwards to be good against rivals that are not known.
LEANS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7)

# Pairs of vertices in the relaxation: the hardest ones alone. Fewer only loosen it.
MAX_PAIRS = 400


def best_answer(answers: Answers, mu: Array, allowed: AllocationSet, kl: float) -> RelaxedBound:
    """Minimise the characteristic time over vertices, then over mixes.

    `kl` is the information that the confidence asks for.
    """
    good = answers.good(mu)
    corners = set(range(len(answers.vertices)))
    vertex = _best_of(answers, [i for i in good if i in corners], mu, allowed)
    best = vertex
    if vertex is None or vertex.time > 0:
        mixes = _promising(answers, [i for i in good if i not in corners], mu)
        starts = len(mixes) if vertex is None else STARTS
        best = _best_of(answers, mixes[:starts], mu, allowed, vertex)
        if best is None:
            return _nothing(answers, mu, allowed, kl)
        for start in (best,) if vertex is best or vertex is None else (vertex, best):
            found = better_mix(answers, mu, allowed, start)
            if found is not None and found.time < best.time * (1 - 1e-6):
                best = found
    assert best is not None
    least = 0.0 if best.time == 0 else min(best.time, _relaxation(answers, mu, allowed))
    if best.allocation is None or best.information is None:
        return RelaxedBound(
            characteristic_time=0.0,
            allocation=allowed.deep,
            lower_bound=0.0,
            relative_gap=0.0,
            closest_alternative=None,
            binding_edges=(),
            unique=False,
            answer=best.policy,
            answer_kind=best.kind,
            vertex_characteristic_time=0.0,
            least_time=0.0,
            rivals=(),
            _information=None,
        )
    closest = best.information.closest(best.allocation.w)
    binding = np.flatnonzero(closest.value <= closest.value.min() * (1 + 1e-6))
    binding = binding[np.argsort(-best.allocation.multipliers[binding], kind="stable")]
    return RelaxedBound(
        characteristic_time=best.time,
        allocation=best.allocation.w,
        lower_bound=least * kl,
        relative_gap=best.allocation.relative_gap,
        closest_alternative=best.information.alternative(closest, int(binding[0]), mu),
        binding_edges=(),
        unique=best.allocation.unique,
        answer=best.policy,
        answer_kind=best.kind,
        vertex_characteristic_time=math.inf if vertex is None else vertex.time,
        least_time=least,
        rivals=tuple(
            answers.vertices[best.compared.rivals[e]].policy
            for e in dict.fromkeys(best.information.edge[binding].tolist())
        ),
        _information=best.information,
    )


def _nothing(answers: Answers, mu: Array, allowed: AllocationSet, kl: float) -> RelaxedBound:
    """No samples settle any answer: arms that matter get none."""
    policies = answers.policies[: len(answers.vertices)]
    # Means without limits could be anything; with limits a mix not tried might be settled.
    rewards = answers.polytope.problem.rewards
    least = math.inf if rewards.closed_form else 0.0
    return RelaxedBound(
        characteristic_time=math.inf,
        allocation=allowed.deep,
        lower_bound=least if kl else 0.0,
        relative_gap=0.0,
        closest_alternative=None,
        binding_edges=(),
        unique=False,
        answer=policies[int(np.argmax(policies @ mu))],
        answer_kind="vertex",
        vertex_characteristic_time=math.inf,
        least_time=least,
        rivals=(),
        _information=None,
    )


def bracketed_answer(
    answers: Answers, mu: Array, allowed: AllocationSet, kl: float
) -> RelaxedBound:
    """The same where only the most rewarding vertices are known: a bracket for one vertex.

    Without the other rivals its time is too small. With them, an allocation that leans towards
    the inside has a time that can be bounded: they lose at least as much as the last vertex
    known, and lie no farther away than the simplex allows.
    """
    rewards = answers.polytope.problem.rewards
    sigma = rewards.gaussian_deviations(len(mu))
    if sigma is None:
        raise TooLargeError(
            f"the feasible policies have too many vertices for {rewards.name} rewards with "
            "epsilon > 0; merge or drop arms, drop constraints, or set epsilon = 0."
        )
    if not all_sampled(answers, allowed):
        raise TooLargeError(
            "the feasible policies have too many vertices for epsilon > 0 where [exploration] "
            "leaves arms without samples; give every arm a share, or set epsilon = 0."
        )
    good = [i for i in answers.good(mu) if i < len(answers.vertices)]
    best = _best_of(answers, good, mu, allowed)
    assert best is not None, "the best vertex is always good enough"
    assert best.information is not None
    assert best.allocation is not None
    scale = 1.0 / rewards.width
    loss = float((best.policy - answers.vertices[-1].policy) @ mu)
    gap = scale * (answers.epsilon + loss)
    time, w = math.inf, best.allocation.w
    for lean in LEANS:
        leaning = (1 - lean) * best.allocation.w + lean * allowed.deep
        price = np.divide(
            sigma**2 * allowed.costs, leaning, out=np.full(len(mu), math.inf), where=leaning > 0
        )
        used = best.policy > 0
        farthest = float(best.policy[used] ** 2 @ price[used] + price[allowed.arms].max())
        known = 1.0 / float(best.information.closest(np.maximum(leaning, 1e-12)).value.min())
        reached = max(known, 2 * farthest / gap**2) if gap > 0 else math.inf
        if reached < time:
            time, w = reached, leaning
    if math.isinf(time):
        raise TooLargeError(
            "the feasible policies have too many vertices that are good enough; choose a smaller "
            "epsilon."
        )
    closest = best.information.closest(w)
    hardest = int(np.argmin(closest.value))
    least = min(time, _relaxation(answers, mu, allowed))
    return RelaxedBound(
        characteristic_time=time,
        allocation=w,
        lower_bound=least * kl,
        relative_gap=time / best.time * (1 + best.allocation.relative_gap) - 1,
        closest_alternative=best.information.alternative(closest, hardest, mu),
        binding_edges=(),
        unique=False,
        answer=best.policy,
        answer_kind=best.kind,
        vertex_characteristic_time=time,
        least_time=least,
        rivals=(answers.vertices[best.compared.rivals[best.information.edge[hardest]]].policy,),
        _information=best.information,
    )


def _best_of(
    answers: Answers,
    numbers: list[int],
    mu: Array,
    allowed: AllocationSet,
    incumbent: Solved | None = None,
) -> Solved | None:
    """The fastest of the numbered answers, the most promising first; exact among them.

    None where no samples settle any of them.
    """
    corners = len(answers.vertices)
    waiting = []
    for i in numbers:
        compared = answers.comparisons(i)
        if len(compared.edges) == 0:
            return Solved(answers.policies[i], _kind(i, corners), compared, None, None)
        information = information_of(answers, compared, mu, allowed)
        if information is not None:
            waiting.append((float(information.edge_times().max()), i, compared, information))
    best = incumbent
    for least, i, compared, information in sorted(waiting, key=lambda entry: entry[:2]):
        if best is not None and least >= best.time:
            break
        found = optimal_allocation(information, allowed)
        if best is None or found.characteristic_time < best.time:
            best = Solved(answers.policies[i], _kind(i, corners), compared, information, found)
    return best


def _promising(answers: Answers, numbers: list[int], mu: Array) -> list[int]:
    """Answers by the time of their hardest comparison alone, as if rewards were Gaussian."""
    rewards = answers.polytope.problem.rewards
    spread = np.sqrt(rewards.variance(rewards.to_unit(mu), rewards.sigmas(len(mu))))
    vertices = answers.policies[: len(answers.vertices)]
    gaps = answers.epsilon + (answers.policies[numbers] @ mu)[:, None] - vertices @ mu
    change = np.abs(answers.policies[numbers][:, None] - vertices)
    times = (change @ spread) / np.maximum(gaps, 1e-300)
    return [numbers[i] for i in np.argsort(times.max(axis=1), kind="stable")]


def _kind(number: int, corners: int) -> str:
    return "vertex" if number < corners else "mix"


def _relaxation(answers: Answers, mu: Array, allowed: AllocationSet) -> float:
    """A time that no answer beats."""
    if not all_sampled(answers, allowed):
        return 0.0
    rewards = answers.polytope.problem.rewards
    corners = answers.policies[: len(answers.vertices)]
    values = corners @ mu
    pairs = np.array(list(itertools.combinations(range(len(corners)), 2)))
    scale = 1.0 / rewards.width
    loss = values.max() - values
    gaps = scale * (2 * answers.epsilon + loss[pairs[:, 0]] + loss[pairs[:, 1]])
    center = rewards.to_unit(mu)
    sigma = rewards.sigmas(len(mu))
    spread = np.sqrt(rewards.variance(center, sigma))
    if not (spread > 0).all():
        return 0.0

    # Shifts that would be best for Gaussian rewards of the same variances. Any others would do:
    # what they prove is computed with the true divergences.
    def surrogate(chosen: npt.NDArray[np.intp]) -> Information:
        change = corners[pairs[chosen, 0]] - corners[pairs[chosen, 1]]
        change = np.where(np.abs(change) > 1e-12, change, 0.0)
        arms = np.tile(np.arange(len(mu)), (len(chosen), 1))
        edges = Edges(arms, change, lambda _: {})
        family = Gaussian(tuple(spread.tolist()))
        return Information(edges, gaps[chosen], center, family, costs=allowed.costs)

    hardest = np.argsort(-surrogate(np.arange(len(pairs))).edge_times(), kind="stable")
    information = surrogate(hardest[:MAX_PAIRS])
    found = optimal_allocation(information, allowed)
    closest = information.closest(found.w)
    shift = np.where(information.used, closest.alternative - information.mu, 0.0)
    low, high = rewards.to_unit(np.array(rewards.domain or rewards.range_of_means()))
    # Pairs that would need means which do not exist prove nothing.
    exist = (np.abs(shift) <= np.minimum(center - low, high - center)).all(axis=1)
    if not exist.any():
        return 0.0
    shift = shift[exist]
    gain = np.maximum(
        *(
            rewards.divergence(np.broadcast_to(center, shift.shape), center + s * shift, sigma)
            for s in (1.0, -1.0)
        )
    )
    gain /= allowed.costs
    return (1 - 1e-9) / _most(_weights(gain, allowed) @ gain, allowed)


def _most(asked: Array, allowed: AllocationSet) -> float:
    """The most information that an allowed allocation gets per unit spent."""
    polytope, costs = allowed.polytope, allowed.costs
    if polytope is None or len(allowed.limit) == 0:
        return float(asked.max())
    if (costs == 1).all():
        return float(asked @ polytope.optimal_vertex(asked).policy)
    # A ratio of linear functions is largest at a vertex (Dinkelbach): go from one to a better one.
    most = 0.0
    while True:
        w = polytope.optimal_vertex(costs * (asked - most)).policy
        found = float(costs * asked @ w / (costs @ w))
        if found <= most * (1 + 1e-12):
            return max(found, most)
        most = found


def _weights(gain: Array, allowed: AllocationSet) -> Array:
    """Weights of rows whose mean leaves the best allocation least; any would be valid."""
    from scipy.optimize import linprog

    count, size = gain.shape
    unit = gain.max()
    rows = np.column_stack([-gain / unit, np.ones(count)])
    limits = np.column_stack([allowed.above, np.zeros(len(allowed.limit))])
    found = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.vstack([rows, limits]),
        b_ub=np.append(np.zeros(count), allowed.limit),
        A_eq=np.column_stack([allowed.equal, np.zeros(len(allowed.total))]),
        b_eq=allowed.total,
        bounds=[(0.0, 1.0)] * size + [(None, None)],
    )
    weights = np.ones(count)
    if found.status == 0:
        weights = np.maximum(-found.ineqlin.marginals[:count], 0.0)
    return np.asarray(weights / weights.sum())
