"""How many samples it takes to find a policy within epsilon of the best.

For one answer pi this is the program of the exact problem with other comparisons: every vertex
x, not only neighbours, v = pi - x, and the gap v . mu + epsilon (docs/theory/epsilon.md). Its
optimum comes with a certificate. The best answer is the best of these:

- among vertices it is exact: each is solved, or a bound of its own rules it out;
- among all policies a local search finds one (epsilon_search.py), and what no answer beats is
  proven (epsilon_proof.py): for Gaussian rewards to a hundredth, for others loosely.

Where vertices are too many to enumerate, the most rewarding ones are found by pivoting from the
optimum. Without the others what is proven holds all the more; an answer's time is bounded.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError
from simplexplore.geometry.epsilon_answers import Answers

from .allocation import optimal_allocation
from .allocation_set import AllocationSet
from .epsilon_proof import LossSearch, least_of, relaxation
from .epsilon_search import Solved, better_mix, information_of, mix_near
from .result import RelaxedBound

Array = npt.NDArray[np.float64]

# Mixes in equal steps that are solved: the most promising ones.
MAX_LISTED = 12

# How far an allocation may lean inwards to be good against rivals that are not known.
LEANS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7)

# Such rivals are taken together if their gaps differ by no more than this factor.
GAP_FACTOR = 1.05


def best_answer(
    answers: Answers, mu: Array, allowed: AllocationSet, kl: float, complete: bool = True
) -> RelaxedBound:
    """Minimise the characteristic time over vertices, then over mixes.

    `kl` is the information that the confidence asks for; `complete` says whether `answers` knows
    all vertices.
    """
    rewards = answers.polytope.problem.rewards
    good, corners = answers.good(mu), len(answers.vertices)
    if not complete:
        _check_bounded(answers, allowed)
    vertex = _best_of(answers, [i for i in good if i < corners], mu, allowed)
    listed = vertex
    if vertex is None or vertex.time > 0:
        mixes = _promising(answers, [i for i in good if i >= corners], mu)[:MAX_LISTED]
        listed = _best_of(answers, mixes, mu, allowed, vertex)
    if listed is None:
        policy = answers.policies[int(np.argmax(answers.policies[:corners] @ mu))]
        # Means without limits could be anything; with limits a mix not tried might be settled.
        least = math.inf if rewards.closed_form else 0.0
        return _without_samples(allowed, policy, "vertex", math.inf, least, kl)
    starts = [listed] if vertex is None or vertex is listed else [vertex, listed]
    best = min((_improved(answers, mu, allowed, start) for start in starts), key=_time)
    least = 0.0
    if best.allocation is not None:
        if rewards.closed_form:
            proof = LossSearch(answers, mu, allowed, best.policy, best.allocation.w)
            least, mix = proof.least, mix_near(answers, proof.policy, mu, allowed)
            if mix is not None and mix.time < best.time * (1 - 1e-6):
                best = _improved(answers, mu, allowed, mix)
        else:
            least = relaxation(answers, mu, allowed)
    if best.allocation is None or best.information is None:
        return _without_samples(allowed, best.policy, best.kind, 0.0, 0.0, kl)
    time, w, gap = best.time, best.allocation.w, best.allocation.relative_gap
    vertex_time = math.inf if vertex is None else vertex.time
    if not complete:
        assert vertex is not None, "the best vertex is always good enough"
        time, w = _against_all(answers, mu, allowed, best)
        vertex_time, vertex_w = _against_all(answers, mu, allowed, vertex)
        if vertex_time < time:
            best, time, w = vertex, vertex_time, vertex_w
        gap = time / best.time * (1 + gap) - 1
    assert best.allocation is not None
    assert best.information is not None
    least = min(least, time)
    closest = best.information.closest(w)
    binding = closest.hardest(best.allocation.multipliers)
    return RelaxedBound(
        characteristic_time=time,
        allocation=w,
        lower_bound=least * kl,
        relative_gap=gap,
        closest_alternative=best.information.alternative(closest, int(binding[0]), mu),
        binding_edges=(),
        unique=complete and best.allocation.unique,
        answer=best.policy,
        answer_kind=best.kind,
        vertex_characteristic_time=vertex_time,
        listed_time=listed.time if complete else None,
        least_time=least,
        rivals=tuple(answers.vertices[best.compared.rivals[e]].policy for e in binding.tolist()),
        _information=best.information,
    )


def _without_samples(
    allowed: AllocationSet, policy: Array, kind: str, time: float, least: float, kl: float
) -> RelaxedBound:
    """An answer that takes no samples (time 0), or that none settle: arms that matter get none."""
    return RelaxedBound(
        characteristic_time=time,
        allocation=allowed.max_slack,
        lower_bound=least if kl else 0.0,
        relative_gap=0.0,
        closest_alternative=None,
        binding_edges=(),
        unique=False,
        answer=policy,
        answer_kind=kind,
        vertex_characteristic_time=time,
        listed_time=time,
        least_time=least,
        rivals=(),
        _information=None,
    )


def _check_bounded(answers: Answers, allowed: AllocationSet) -> None:
    """Raise `TooLargeError` where nothing bounds the time against rivals that are not known."""
    polytope = answers.polytope
    rewards = polytope.problem.rewards
    if rewards.gaussian_deviations(polytope.size) is None:
        raise TooLargeError(
            f"the feasible policies have too many vertices for {rewards.name} rewards with "
            "epsilon > 0; merge or drop arms, drop constraints, or set epsilon = 0."
        )
    if not np.isin(np.flatnonzero(~allowed.arms), polytope.forced_arms).all():
        raise TooLargeError(
            "the feasible policies have too many vertices for epsilon > 0 where [exploration] "
            "leaves arms without samples; give every arm a share, or set epsilon = 0."
        )


def _against_all(
    answers: Answers, mu: Array, allowed: AllocationSet, best: Solved
) -> tuple[float, Array]:
    """A time, and its allocation, that suffices against rivals that are not known, too.

    How far a rival is from the answer is convex in each of its shares, so no more than the chord
    between the least and the largest one: a linear program for rivals that lose about the same.
    """
    assert best.allocation is not None
    assert best.information is not None
    polytope, pi = answers.polytope, best.policy
    sigma = polytope.problem.rewards.gaussian_deviations(len(mu))
    assert sigma is not None
    last = answers.epsilon + float((pi - answers.vertices[-1].policy) @ mu)
    if last <= 0:
        raise TooLargeError(
            "the feasible policies have too many vertices that are good enough; choose a smaller "
            "epsilon."
        )
    feasible = AllocationSet.feasible(polytope)
    low, high, own = feasible.lower, np.minimum(feasible.upper, 1.0), feasible.as_rows()
    # Gaps are epsilon + mu . (answer - rival): from the last vertex known to the worst of all.
    rows = np.vstack([own.A_ub, mu, -mu])
    value = answers.epsilon + float(pi @ mu)
    worst = value - float(polytope.optimal_vertex(-mu).policy @ mu)
    best_time, best_w = math.inf, best.allocation.w
    for lean in LEANS:
        w = np.maximum((1 - lean) * best.allocation.w + lean * allowed.max_slack, 1e-12)
        known = time = 1.0 / float(best.information.closest(w).value.min())
        price = np.where(
            allowed.arms, (polytope.problem.rewards.width * sigma) ** 2 * allowed.costs / w, 0.0
        )
        slope = price * (low + high - 2 * pi)
        most = float(slope @ polytope.optimal_vertex(slope).policy)
        base, gap = float(price @ (pi - low) ** 2 - slope @ low), last
        while gap < worst and 2 * (base + most) > time * gap**2:
            limits = np.concatenate([own.b_ub, [value - gap, GAP_FACTOR * gap - value]])
            least, _ = least_of(-slope, rows, limits, own.A_eq, own.b_eq, own.arms)
            time = max(time, 2 * (base + min(most, -least)) / gap**2)
            gap *= GAP_FACTOR
        if time < best_time:
            best_time, best_w = time, w
        if time == known:
            break
    return best_time, best_w


def _time(solved: Solved) -> float:
    return solved.time


def _improved(answers: Answers, mu: Array, allowed: AllocationSet, best: Solved) -> Solved:
    """The end of local searches: steps may jam far from it, where others lead on."""
    found = better_mix(answers, mu, allowed, best)
    while found is not None and found.time < best.time * (1 - 1e-6):
        best, found = found, better_mix(answers, mu, allowed, found)
    return best


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
        kind, compared = "vertex" if i < corners else "mix", answers.comparisons(i)
        if len(compared.edges) == 0:
            return Solved(answers.policies[i], kind, compared, None, None)
        information = information_of(answers, compared, mu, allowed)
        if information is not None:
            waiting.append((float(information.edge_times().max()), i, kind, compared, information))
    best = incumbent
    for least, i, kind, compared, information in sorted(waiting, key=lambda one: one[:2]):
        if best is not None and least >= best.time:
            break
        found = optimal_allocation(information, allowed)
        if best is None or found.characteristic_time < best.time:
            best = Solved(answers.policies[i], kind, compared, information, found)
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
