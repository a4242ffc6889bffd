"""How many samples it takes to find a policy within epsilon of the best.

For one answer pi this is the program of the exact problem with other comparisons: every vertex
x, not only neighbours, v = pi - x, and the gap v . mu + epsilon (THEORY 5). Its optimum comes
with a certificate. The best answer is the best of these:

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
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError, TooLargeError
from simplexplore.geometry.answers import Answers, Comparisons, comparisons
from simplexplore.geometry.edges import Edges
from simplexplore.problem.families import Gaussian
from simplexplore.problem.rational import rational

from .allocation import Allocation, optimal_allocation
from .allocation_set import AllocationSet
from .information import Information

Array = npt.NDArray[np.float64]

# Mixes in equal steps from which a search may start: the most promising ones.
STARTS = 3

# Shares of a mix are rounded to this step, so that it is an exact policy.
ROUNDING = 10**6

# The search mixes vertices that lose least; each of its steps looks at every comparison.
MAX_MIXED = 40
MAX_SEARCHED = 150

# How far an allocation may lean inwards to be good against rivals that are not known.
LEANS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7)

# It leaves out vertices this close to the mix: they never decide.
NEAR = 0.02

# Pairs of vertices in the relaxation: the hardest ones alone. Fewer only loosen it.
MAX_PAIRS = 400


@dataclass(frozen=True)
class BestAnswer:
    """The answer that takes fewest samples, as far as is known.

    Attributes
    ----------
    policy : (K,) array
    kind : {"vertex", "mix"}
    time : float
        Its characteristic time, certified to `relative_gap`; 0 if it is always good enough.
    least_time : float
        No answer's characteristic time is less.
    vertex_time : float
        Least characteristic time of a vertex, certified likewise.
    allocation : (K,) array
    relative_gap : float
    rivals : tuple of (K,) arrays
        Vertices that decide the time, hardest first.
    closest_alternative : (K,) array or None
    unique : bool
        Whether no other allocation attains the time of this answer.
    information : Information or None
        Of the answer's comparisons; None if there are none.
    """

    policy: Array
    kind: str
    time: float
    least_time: float
    vertex_time: float
    allocation: Array
    relative_gap: float
    rivals: tuple[Array, ...]
    closest_alternative: Array | None
    unique: bool
    information: Information | None


@dataclass(frozen=True)
class _Solved:
    policy: Array
    kind: str
    compared: Comparisons
    information: Information | None
    allocation: Allocation | None

    @property
    def time(self) -> float:
        return self.allocation.characteristic_time if self.allocation else 0.0


def best_answer(answers: Answers, mu: Array, allowed: AllocationSet) -> BestAnswer:
    """Minimise the characteristic time over vertices, then over mixes."""
    good = answers.good(mu)
    corners = set(range(len(answers.vertices)))
    vertex = _best_of(answers, [i for i in good if i in corners], mu, allowed)
    best = vertex
    if vertex.time > 0:
        mixes = _promising(answers, [i for i in good if i not in corners], mu)
        lattice = _best_of(answers, mixes[:STARTS], mu, allowed, vertex)
        best = lattice
        for start in (vertex,) if vertex is lattice else (vertex, lattice):
            found = _search(answers, mu, allowed, start)
            if found is not None and found.time < best.time * (1 - 1e-6):
                best = found
    least = 0.0 if best.time == 0 else min(best.time, _relaxation(answers, mu, allowed))
    if best.allocation is None or best.information is None:
        return BestAnswer(
            best.policy, best.kind, 0.0, 0.0, 0.0, allowed.deep, 0.0, (), None, False, None
        )
    closest = best.information.closest(best.allocation.w)
    binding = np.flatnonzero(closest.value <= closest.value.min() * (1 + 1e-6))
    binding = binding[np.argsort(-best.allocation.multipliers[binding], kind="stable")]
    return BestAnswer(
        policy=best.policy,
        kind=best.kind,
        time=best.time,
        least_time=least,
        vertex_time=vertex.time,
        allocation=best.allocation.w,
        relative_gap=best.allocation.relative_gap,
        rivals=tuple(answers.vertices[best.compared.rivals[e]].policy for e in binding),
        closest_alternative=best.information.alternative(closest, int(binding[0]), mu),
        unique=best.allocation.unique,
        information=best.information,
    )


def bracketed_answer(answers: Answers, mu: Array, allowed: AllocationSet) -> BestAnswer:
    """The same where only the most rewarding vertices are known: a bracket for one vertex.

    Without the other rivals its time is too small. With them, an allocation that leans towards
    the inside has a time that can be bounded: they lose at least as much as the last vertex
    known, and lie no farther away than the simplex allows.
    """
    rewards = answers.polytope.problem.rewards
    if rewards.name == "poisson":
        raise TooLargeError(
            "the feasible policies have too many vertices for poisson rewards with epsilon > 0; "
            "merge or drop arms, drop constraints, or set epsilon = 0."
        )
    good = [i for i in answers.good(mu) if i < len(answers.vertices)]
    best = _best_of(answers, good, mu, allowed)
    assert best.information is not None
    assert best.allocation is not None
    # Rewards in [0, 1] tell means apart at least as well as with standard deviation 1/2 (Pinsker).
    sigma = rewards.sigmas(len(mu)) if rewards.name == "gaussian" else np.full(len(mu), 0.5)
    scale = float(rewards.to_unit(1.0) - rewards.to_unit(0.0))
    loss = float((best.policy - answers.vertices[-1].policy) @ mu)
    gap = scale * (answers.epsilon + loss)
    time, w = math.inf, best.allocation.w
    for lean in LEANS:
        leaning = (1 - lean) * best.allocation.w + lean * allowed.deep
        price = np.divide(sigma**2, leaning, out=np.full(len(mu), math.inf), where=leaning > 0)
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
    return BestAnswer(
        policy=best.policy,
        kind=best.kind,
        time=time,
        least_time=min(time, _relaxation(answers, mu, allowed)),
        vertex_time=time,
        allocation=w,
        relative_gap=time / best.time * (1 + best.allocation.relative_gap) - 1,
        rivals=(answers.vertices[best.compared.rivals[hardest]].policy,),
        closest_alternative=best.information.alternative(closest, hardest, mu),
        unique=False,
        information=best.information,
    )


def _information(answers: Answers, compared: Comparisons, mu: Array) -> Information | None:
    """Information of an answer's comparisons; None where some gap is not positive."""
    edges, epsilon = compared.edges, answers.epsilon
    gaps = epsilon - (edges.value * mu[edges.index]).sum(axis=1)
    for e in np.flatnonzero(gaps < 1e-9 * (epsilon + np.abs(mu).max())):
        exact = [rational(float(mu[a])) * x for a, x in edges.exact(int(e)).items()]
        gaps[e] = float(rational(epsilon) - sum(exact, Fraction(0)))
    if not (gaps > 0).all():
        return None
    return Information(edges, gaps, mu, answers.polytope.problem.rewards)


def _best_of(
    answers: Answers,
    numbers: list[int],
    mu: Array,
    allowed: AllocationSet,
    incumbent: _Solved | None = None,
) -> _Solved:
    """The fastest of the numbered answers, the most promising first; exact among them."""
    corners = len(answers.vertices)
    waiting = []
    for i in numbers:
        compared = answers.comparisons(i)
        if len(compared.edges) == 0:
            return _Solved(answers.policies[i], _kind(i, corners), compared, None, None)
        information = _information(answers, compared, mu)
        if information is not None:
            waiting.append((float(information.edge_times().max()), i, compared, information))
    best = incumbent
    for least, i, compared, information in sorted(waiting, key=lambda entry: entry[:2]):
        if best is not None and least >= best.time:
            break
        found = optimal_allocation(information, allowed)
        if best is None or found.characteristic_time < best.time:
            best = _Solved(answers.policies[i], _kind(i, corners), compared, information, found)
    assert best is not None, "the best vertex is always good enough"
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


def _search(answers: Answers, mu: Array, allowed: AllocationSet, start: _Solved) -> _Solved | None:
    """A mix and an allocation that are better together than all near them, by SLSQP."""
    from scipy.optimize import minimize, nnls

    if start.allocation is None or len(answers.vertices) > MAX_SEARCHED:
        return None
    rewards = answers.polytope.problem.rewards
    corners = answers.policies[: len(answers.vertices)]
    mixed = np.argsort(-(corners @ mu), kind="stable")[:MAX_MIXED]
    shares, off = nnls(corners[mixed].T, start.policy)
    if off > 1e-9:  # it mixes other vertices
        return None
    size, count = len(mu), len(mixed)
    low, high = rewards.domain or rewards.range_of_means()
    reach = high - low
    arms = np.tile(np.arange(size), (len(corners), 1))

    def at(z: Array) -> tuple[Array, Array]:
        """Information against each vertex, and its derivatives by shares and allocation."""
        pi, w = z[:count] @ corners[mixed], z[count : count + size]
        change = np.where(np.abs(corners - pi) > 1e-9, corners - pi, 0.0)
        gaps = answers.epsilon - change @ mu
        gains = np.maximum(change, 0.0).sum(axis=1)
        rows = np.flatnonzero(gains > max(NEAR, 1.001 * answers.epsilon / reach))
        value, slope = np.full(len(corners), math.inf), np.zeros((len(corners), len(z)))
        if (gaps[rows] <= 0).any():
            return np.where(gaps <= 0, gaps, math.inf), slope
        edges = Edges(arms[rows], change[rows], lambda _: {})
        closest = Information(edges, gaps[rows], mu, rewards).closest(w)
        value[rows] = closest.value
        with np.errstate(divide="ignore", invalid="ignore"):
            gamma = np.where(closest.slope != 0, closest.slope * w / change[rows], 0.0).max(axis=1)
        slope[rows, :count] = (gamma[:, None] * closest.alternative) @ corners[mixed].T
        slope[rows, count : count + size] = closest.gradient
        return value, slope

    w = 0.99 * start.allocation.w + 0.01 * allowed.deep
    z = np.concatenate([shares / shares.sum(), w, [1.0]])
    unit = float(at(z)[0].min())
    cap = 1e3

    def slack(z: Array) -> Array:
        return np.asarray(np.minimum(at(z)[0] / unit, cap) - z[-1])

    def slack_slope(z: Array) -> Array:
        value, slope = at(z)
        slope = np.where((value / unit < cap)[:, None], slope / unit, 0.0)
        slope[:, -1] = -1.0
        return slope

    rows = np.zeros((1 + len(allowed.equal), len(z)))
    rows[0, :count] = 1.0
    rows[1:, count : count + size] = allowed.equal
    totals = np.concatenate([[1.0], allowed.total])
    constraints: list[Any] = [
        {"type": "ineq", "fun": slack, "jac": slack_slope},
        {"type": "eq", "fun": lambda z: rows @ z - totals, "jac": lambda _: rows},
    ]
    if len(allowed.limit):
        above = np.zeros((len(allowed.limit), len(z)))
        above[:, count : count + size] = -allowed.above
        constraints.append(
            {"type": "ineq", "fun": lambda z: above @ z + allowed.limit, "jac": lambda _: above}
        )
    upward = np.zeros(len(z))
    upward[-1] = -1.0
    shares_within, w_within = [(0.0, 1.0)] * count, [(1e-6 * x, 1.0) for x in allowed.deep]
    settings: dict[str, Any] = {
        "fun": lambda z: -z[-1],
        "x0": z,
        "jac": lambda _: upward,
        "bounds": [*shares_within, *w_within, (0.0, None)],
        "constraints": constraints,
        "options": {"maxiter": 60, "ftol": 1e-9},
    }
    try:
        with np.errstate(all="ignore"):
            found = minimize(method="SLSQP", **settings)
    except NotConvergedError:
        return None  # a step led where nothing can be computed; the start is an answer already
    return _rounded_mix(answers, np.asarray(found.x[:count]), mixed, mu, allowed)


def _rounded_mix(
    answers: Answers,
    shares: Array,
    mixed: npt.NDArray[np.intp],
    mu: Array,
    allowed: AllocationSet,
) -> _Solved | None:
    """The certified time of a mix whose shares are rounded; None if it is not good enough."""
    if not np.isfinite(shares).all() or shares.clip(0).sum() <= 0:
        return None
    steps = np.floor(shares.clip(0) / shares.clip(0).sum() * ROUNDING + 0.5).astype(int)
    steps[np.argmax(steps)] += ROUNDING - steps.sum()
    whole = steps.astype(object) @ answers.corners[mixed]
    denominator = answers.denominator * ROUNDING
    change = answers.corners * ROUNDING - whole
    compared = comparisons(answers.polytope, answers.epsilon, change, denominator)
    policy = (whole / denominator).astype(float)
    kind = "vertex" if np.count_nonzero(steps) == 1 else "mix"
    if len(compared.edges) == 0:
        return _Solved(policy, kind, compared, None, None)
    information = _information(answers, compared, mu)
    if information is None:
        return None
    return _Solved(policy, kind, compared, information, optimal_allocation(information, allowed))


def _relaxation(answers: Answers, mu: Array, allowed: AllocationSet) -> float:
    """A time that no answer beats."""
    rewards = answers.polytope.problem.rewards
    corners = answers.policies[: len(answers.vertices)]
    values = corners @ mu
    pairs = np.array(list(itertools.combinations(range(len(corners)), 2)))
    scale = float(rewards.to_unit(1.0) - rewards.to_unit(0.0))
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
        return Information(edges, gaps[chosen], center, Gaussian(tuple(spread.tolist())))

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
    asked = _weights(gain, allowed) @ gain
    if len(allowed.limit):
        most = float(asked @ answers.polytope.optimal_vertex(asked).policy)
    else:
        most = float(asked.max())
    return (1 - 1e-9) / most


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
