"""The paper's lemma, theorems and corollaries on random problems, beside slow computations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

import simplexplore as sx

from .criteria import SEED
from .independent import gaussian_time, information, projected, rows_of, vertices
from .part import OURS, Finding, Part, Table
from .verdicts import CORRECTED, NOT_REPRODUCED, OPEN, REPRODUCED, holds
from .work import Work

Array = npt.NDArray[np.float64]

KINDS: Any = ("caps", "groups", "budgets", "ratios", "equalities", "dense")
SCENARIOS = ("end-of-time", "anytime")

# Two computations agree; and optimal values of allocations do, whose optimum is flat.
EXACT, FLAT = 1e-6, 1e-8

# Differences below this are not told apart: slow solvers have them.
DIGITS = 1e-8

# Allocations tried on each problem; relative sizes of the steps in which means are moved.
ALLOCATIONS = 3
STEPS = (1e-1, 1e-3)

# How far means are from a tie of three arms, and how many times farther the third is.
TIES, RATIOS = (1e-1, 1e-2, 1e-3), (1.0, 10.0)


@dataclass(frozen=True)
class Case:
    """A random problem, and what is known of it without simplexplore's geometry."""

    problem: sx.Problem
    means: Array
    bound: sx.Bound
    points: Array
    best: Array
    rivals: Array

    @property
    def time(self) -> float:
        """T, as simplexplore has it."""
        return self.bound.characteristic_time


def cases(count: int, rewards: Any, seed: int, constraints: Any = (1, 3)) -> Iterator[Case]:
    """So many random problems, both scenarios in turn."""
    for k in range(count):
        one = sx.random_instances(
            1, arms=(3, 5), constraints=constraints, kinds=KINDS, hardness=None, rewards=rewards,
            scenario=SCENARIOS[k % 2], seed=seed + k,
        )[0]  # fmt: skip
        points = vertices(one.problem)
        best = int((points @ one.means).argmax())
        bound = sx.lower_bound(one.problem)
        yield Case(one.problem, one.means, bound, points, points[best], np.delete(points, best, 0))


# ---------------------------------------------------------------------- one statement each


def projection_lemma(case: Case, rng: np.random.Generator) -> float:
    """Lemma 1: the least over neighbours is the least over all policies."""
    worst = 0.0
    for _ in range(ALLOCATIONS):
        w = rng.dirichlet(np.ones(case.problem.size))
        slow = information(case.problem, case.means, case.best, case.rivals, w)
        worst = max(worst, abs(slow * case.bound.time_of(w) - 1))
    return worst


def closed_form(case: Case, rng: np.random.Generator) -> float:
    """Theorem 2: the printed projection beside the solution of least norm."""
    w = rng.dirichlet(np.ones(case.problem.size))
    worst = 0.0
    for edge in case.bound.edges:
        v = case.best - edge.neighbour
        gamma = case.means @ v / (v**2 / w).sum()
        least, closest = projected(case.problem.rewards, case.means, w, v)
        printed = (case.means @ v) ** 2 / (v**2 / w).sum() / 2
        scale = np.abs(closest - case.means).max()
        worst = max(worst, abs(printed / least - 1))
        worst = max(worst, float(np.abs(case.means - gamma * v / w - closest).max() / scale))
    return worst


def continuity(case: Case, rng: np.random.Generator) -> tuple[float, float]:
    """Theorem 1: how far T and D move for a step, as parts of what the step allows.

    A step that changes the gap of a move by a part r changes its information by (1 +- r)^2. So do
    T, and the T that the new optimal allocation has under the old means (hemicontinuity).
    """
    worst_time = worst_allocation = 0.0
    moves = case.best - case.rivals
    step = rng.normal(size=case.problem.size)
    for size in STEPS:
        gaps = moves @ case.means
        # As large as leaves the best policy where it is.
        r = size / 2
        moved = case.means + r * step / float(np.abs(moves @ step / gaps).max())
        other = sx.lower_bound(case.problem, moved)
        up, down = (1 + r) ** 2, (1 - r) ** 2
        factor = other.characteristic_time / case.time
        worst_time = max(worst_time, math.log(factor * (1 - 1e-9)) / -math.log(down))
        worst_time = max(worst_time, -math.log(factor * (1 + 1e-9)) / math.log(up))
        w = np.maximum(other.allocation, 1e-300)
        excess = case.bound.time_of(w) / case.time
        worst_allocation = max(
            worst_allocation, math.log(excess * (1 - 1e-9)) / math.log(up / down)
        )
    return worst_time, worst_allocation


def concavity(case: Case, rng: np.random.Generator) -> float:
    """D at the middle of two allocations less the mean of D there, as a part of it."""
    one, other = rng.dirichlet(np.ones(case.problem.size), 2)
    ends = 1 / case.bound.time_of(one) + 1 / case.bound.time_of(other)
    return 2 / case.bound.time_of((one + other) / 2) / ends - 1


def optimal_allocations(bound: sx.Bound, problem: sx.Problem) -> list[Array]:
    """Allocations that attain T: the one found, and what moving share between two arms leaves."""
    a, b, e, _ = rows_of(problem)
    if problem.scenario == "end-of-time":
        a, b, e = a[: problem.size], b[: problem.size], np.ones((1, problem.size))
    found = [bound.allocation]
    for i, j in permutations(range(problem.size), 2):
        step = np.eye(problem.size)[i] - np.eye(problem.size)[j]
        uses = a @ step
        free = np.where(uses > 0, (b - a @ bound.allocation) / np.where(uses > 0, uses, 1), np.inf)
        size = float(free.min()) / 2
        if size > 1e-3 and np.abs(e @ step).max() < 1e-12:
            moved = bound.allocation + size * step
            if abs(bound.time_of(moved) / bound.characteristic_time - 1) < FLAT:
                found.append(moved)
    return found


def corollary_2a(case: Case) -> float:
    """Each edge from a column of the inverse of the active rows: the largest angle between them.

    Of a vertex with as many active rows as arms; others are left out (NaN).
    """
    a, b, e, _ = rows_of(case.problem)
    active = a[np.abs(a @ case.best - b) < 1e-9]
    if len(active) + len(e) != case.problem.size:
        return math.nan
    columns = np.linalg.inv(np.vstack([e, active]))[:, len(e) :].T
    worst = 0.0
    for column in columns:
        ways = [edge.direction for edge in case.bound.edges]
        cosines = [-column @ d / np.linalg.norm(column) / np.linalg.norm(d) for d in ways]
        worst = max(worst, 1 - max(cosines))
    return worst if len(columns) == len(case.bound.edges) else math.inf


def best_arm_time(rewards: Any, means: Array) -> float:
    """T of finding the best arm after Garivier and Kaufmann (2016): a root of one function."""

    def d(x: float, y: float) -> float:
        if isinstance(rewards, sx.Gaussian):
            return (x - y) ** 2 / 2
        return x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y))

    def middle(x: float, a: float) -> float:
        return float((best + x * a) / (1 + x))

    def informed(x: float, a: float) -> float:
        m = middle(x, a)
        return d(best, m) + x * d(a, m)

    best, *others = np.sort(means)[::-1].tolist()

    def share(y: float, a: float) -> float:
        far = 1.0
        while informed(far, a) < y and far < 1e15:
            far *= 2
        return float(brentq(lambda x: informed(x, a) - y, 0.0, far, xtol=1e-15, rtol=1e-14))

    def balance(y: float) -> float:
        shares = [share(y, a) for a in others]
        ratios = (
            d(best, middle(x, a)) / d(a, middle(x, a)) for x, a in zip(shares, others, strict=True)
        )
        return sum(ratios) - 1

    most = d(best, max(others))
    y = brentq(balance, most * 1e-9, most * (1 - 1e-4), xtol=1e-16, rtol=1e-13)
    return (1 + sum(share(y, a) for a in others)) / y


def near_a_tie() -> dict[str, Any]:
    """Three arms that come ever closer to a tie, from two sides."""
    sides = []
    for ratio in RATIOS:
        bounds = [sx.lower_bound(sx.Problem(3), [1, 1 - h, 1 - ratio * h]) for h in TIES]
        sides.append(
            {
                "T h^2": [b.characteristic_time * h**2 for b, h in zip(bounds, TIES, strict=True)],
                "allocation": bounds[-1].allocation.tolist(),
            }
        )
    tie = sx.lower_bound(sx.Problem(3), [1, 1, 1])
    return {"sides": sides, "infinite": math.isinf(tie.characteristic_time)}


# ---------------------------------------------------------------------- the part


@dataclass(frozen=True)
class Theorems(Part):
    """Statements on so many random Gaussian problems, and half as many Bernoulli problems."""

    problems: int = 1000

    name = "theorems"
    title = "Lemma 1, Theorems 1 and 2, Corollaries 1 and 2 on random problems"
    source = "Section 3 and Appendix B"
    note = (
        "Problems of 3 to 5 arms with 1 to 3 constraints of six kinds, half of them in each "
        "scenario. Beside each number of simplexplore stands one that uses none of its geometry "
        "or solvers: all vertices by trying all choices of rows, projections by singular values or "
        "bisection, T by sequential quadratic programming over all rivals."
    )

    def compute(self, work: Work) -> dict[str, Any]:
        problems = work.count(self.problems)
        rng = np.random.default_rng(SEED)
        found: dict[str, Any] = {
            "problems": problems,
            **dict.fromkeys(("lemma", "bernoulli", "form", "T", "angle", "best arm"), DIGITS),
            "time": 0.0, "allocation": 0.0, "concave": 0.0, "convex": 0.0,
            "printed": 0, "corrected": 0, "H": 0, "inverses": 0, "outside": 0,
            "flat": 0, "segments": 0,
        }  # fmt: skip

        def larger(name: str, value: float) -> None:
            found[name] = max(found[name], float(value))

        for case in cases(problems, None, SEED):
            larger("lemma", projection_lemma(case, rng))
            larger("form", closed_form(case, rng))
            slow = gaussian_time(case.problem, case.means, case.points, case.best - case.rivals)
            larger("T", abs(slow / case.time - 1))
            self._corollaries(case, found)
            angle = corollary_2a(case)
            if not math.isnan(angle):
                found["inverses"] += 1
                larger("angle", angle)
            closest = case.bound.scenarios[case.problem.scenario].closest_alternative
            low, high = case.means.min() - 1e-9, case.means.max() + 1e-9
            found["outside"] += bool((closest < low).any() or (closest > high).any())
            self._properties(case, rng, found, larger)
        for case in cases(problems // 2, sx.Bernoulli(), 2 * SEED):
            larger("bernoulli", projection_lemma(case, rng))
            self._properties(case, rng, found, larger)
        for rewards in (sx.Gaussian(), sx.Bernoulli()):
            for case in cases(problems // 4, rewards, 3 * SEED, constraints=0):
                larger("best arm", abs(best_arm_time(rewards, case.means) / case.time - 1))
        return found | {"near a tie": near_a_tie()}

    def _corollaries(self, case: Case, found: dict[str, Any]) -> None:
        """Corollary 1 as printed and corrected; Corollary 2(b)."""
        moves = case.best - np.array([edge.neighbour for edge in case.bound.edges])
        squares = (moves @ case.means) ** 2 / (moves**2).sum(axis=1)
        size = case.problem.size
        found["printed"] += not 2 / squares.max() <= case.time <= 2 * size / squares.max()
        # Uniform sampling must be allowed.
        if case.problem.scenario == "end-of-time":
            lower, upper = 2 / squares.min(), 2 * size / squares.min()
            own = case.bound.bounds
            agree = abs((own["distance_upper"] or 0.0) / upper - 1) < EXACT
            right = lower * (1 - 1e-9) <= case.time <= upper * (1 + 1e-9)
            found["corrected"] += not (agree and right)
        losses = case.means.max() - case.means
        found["H"] += not 2 / (losses @ losses) <= case.time * (1 + 1e-9)

    def _properties(self, case: Case, rng: Any, found: dict[str, Any], larger: Any) -> None:
        """Theorem 1."""
        if isinstance(case.problem.rewards, sx.Gaussian):
            time, allocation = continuity(case, rng)
            larger("time", time)
            larger("allocation", allocation)
        larger("concave", -concavity(case, rng))
        optimal = optimal_allocations(case.bound, case.problem)
        found["flat"] += len(optimal) > 1
        for one, other in combinations(optimal, 2):
            found["segments"] += 1
            larger("convex", case.bound.time_of((one + other) / 2) / case.time - 1)

    def judge(self, found: dict[str, Any]) -> list[Finding]:
        n = found["problems"]
        half = n // 2
        tie = found["near a tie"]
        one, other = (np.array(side["allocation"]) for side in tie["sides"])
        steady = all(np.ptp(side["T h^2"]) < 0.2 * side["T h^2"][-1] for side in tie["sides"])
        apart = float(np.abs(one - other).max())

        def at_most(name: str) -> str:
            return f"{found[name]:.0e}"

        return [
            Finding(
                "Lemma 1: D is the least projection onto the planes of neighbours.",
                holds(max(found["lemma"], found["bernoulli"]) < EXACT),
                f"The least over all policies agrees to {at_most('lemma')} on Gaussian problems "
                f"and to {at_most('bernoulli')} on Bernoulli problems ({ALLOCATIONS} allocations "
                "each).",
                "Lemma 1",
            ),
            Finding(
                "Theorem 2: closed forms of the projection and of T for Gaussian arms.",
                holds(max(found["form"], found["T"]) < EXACT),
                f"The projection agrees to {at_most('form')} with the solution of least norm, T to "
                f"{at_most('T')} with sequential quadratic programming.",
                "Theorem 2",
            ),
            Finding(
                "Theorem 2: the closest λ is in the range of means D.",
                CORRECTED if found["outside"] else REPRODUCED,
                f"Not always: under constraints the closest λ leaves [min μ, max μ] on "
                f"{found['outside']} of {n} problems. The closed form, and with it T, holds if D "
                "is wide enough to hold it.",
                "Theorem 2",
            ),
            Finding(
                "Theorem 1: T is continuous in μ.",
                holds(found["time"] <= 1),
                "Means moved so far that no gap changes by more than a part r change T by at most "
                f"(1 ± r)², on all problems, r from {STEPS[-1] / 2:g} to {STEPS[0] / 2:g} (at most "
                f"{100 * found['time']:.0f}% of what that allows, in logarithms).",
                "Theorem 1",
            ),
            Finding(
                "Theorem 1: w* is upper hemicontinuous.",
                holds(found["allocation"] <= 1),
                "Optimal allocations of the moved means need at most ((1 + r) / (1 − r))² times T "
                "under the old ones.",
                "Theorem 1",
            ),
            Finding(
                "Theorem 1: the set w* of optimal allocations is convex.",
                holds(found["concave"] < FLAT and found["convex"] < 2 * FLAT)
                if found["segments"]
                else OPEN,
                f"D is concave between any two allocations tried. {found['flat']} of {n + half} "
                f"problems have more than one optimal allocation; the middle of two of them is "
                f"optimal in all {found['segments']} pairs.",
                "Theorem 1",
            ),
            Finding(
                "Without a unique optimum nothing of Theorem 1 holds.",
                holds(steady and apart > 0.05 and tie["infinite"]),
                "Three arms with means 1, 1 − h and 1 − c h: T grows like "
                f"{tie['sides'][0]['T h^2'][-1]:.3g}/h² without bound, and for small h the "
                f"allocation tends to {_shares(one)} with c = {RATIOS[0]:g}, to {_shares(other)} "
                f"with c = {RATIOS[1]:g}.",
                OURS,
            ),
            Finding(
                "Corollary 1 holds on all problems.",
                CORRECTED if found["printed"] and not found["corrected"] else NOT_REPRODUCED,
                f"As printed it fails on {found['printed']} of {n}; with a maximum over neighbours "
                f"at both ends, and where uniform sampling is allowed, on {found['corrected']}.",
                "Corollary 1",
            ),
            Finding(
                "Corollary 2(a): neighbours are columns of the inverse of the active constraints.",
                holds(found["angle"] < EXACT),
                f"On all {found['inverses']} problems whose best policy has as many active "
                "constraints as arms.",
                "Corollary 2",
            ),
            Finding(
                "T ≥ H, Corollary 2(b) without the condition number.",
                holds(found["H"] == 0),
                f"On {n - found['H']} of {n} problems.",
                OURS,
            ),
            Finding(
                "Without constraints T is that of finding the best arm.",
                holds(found["best arm"] < EXACT),
                f"It agrees to {at_most('best arm')} with the roots of Garivier and Kaufmann "
                f"(2016) on {half} problems, Gaussian and Bernoulli.",
                "Appendix B, reduction to best arms",
            ),
        ]

    def tables(self, found: dict[str, Any]) -> list[Table]:
        rows = [[name, value] for name, value in found.items() if not isinstance(value, dict)]
        return [Table("theorems", ("what", "largest or count"), rows)]


def _shares(allocation: Array) -> str:
    return "[" + ", ".join(f"{share:.3f}" for share in allocation) + "]"
