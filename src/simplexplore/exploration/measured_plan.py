"""The easiest answer where limits are measured, and shares of samples for it: a plan.

A run's own search, at guessed means. Of an answer with some shares it finds the alternative that is
closest (kernels/measured_search.py, mode DISTANCE); answer and shares then move to where all
alternatives found so far are farthest, until the search finds none that is closer
(docs/theory/measured.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.kernels.records import MeasuredLimits, RunState

from .workspace import Workspace

Array = npt.NDArray[np.float64]

# Margins below this, in standard deviations, are none.
NO_MARGIN = 1e-12

# Alternatives that are closer than those known by more than this part count, too; and so many do.
CLOSER = 3e-5
MAX_ALTERNATIVES = 60

# What a search may lose, of segments and of triangles.
LOSS, LOSS_OF_TRIANGLES = 0.0002, 0.003

# Shares of arms in play are no less while they are sought, and distances.
MIN_SHARE = 1e-5
TINY = 1e-9

# How far answer and shares move at once, the answer in units of its least gap: less where a step
# fails.
REACHES = (1.0, 0.1, 0.01)

# How much longer a search takes for triangles.
TRIANGLES = 16


class Alternatives:
    """Alternatives found so far; each is one or more gaps between means, by noise of their own.

    A gap is ``first + slope . answer`` and its variance ``sum(variance * (moves * answer - at)^2
    * costs / spend)``; what lies behind several gaps is as far as all of them together. The first
    alternatives are that rows exceed their limits; then come policies that would be better.

    Parameters
    ----------
    limits : MeasuredLimits
    run : RunState
        Its means and variances count.
    competitors : tuple of (K,) arrays
        The policies.
    """

    def __init__(
        self, limits: MeasuredLimits, run: RunState, competitors: tuple[Array, ...] = ()
    ) -> None:
        self.limits, self.run, self.competitors = limits, run, competitors
        rows, mean, variance = limits.rows, run.mean, run.variance
        tops, still = limits.limit + limits.tolerance, np.zeros((rows, limits.size))
        gaps = [(tops, -mean[1:], variance[1:], np.ones(rows), still, np.arange(rows))]
        for number, x in enumerate(competitors, rows):
            first = np.append(limits.epsilon - mean[0] @ x, mean[1:] @ x - limits.limit)
            slope, moves = np.vstack([mean[:1], still]), np.eye(1 + rows)[0]
            at, numbers = np.tile(x, (1 + rows, 1)), np.full(1 + rows, number)
            gaps.append((first, slope, variance, moves, at, numbers))
        self._first, self._slope, self._variance, self._moves, self._at, self._number = (
            np.concatenate(parts) for parts in zip(*gaps, strict=True)
        )

    def with_competitor(self, x: Array) -> Alternatives:
        """Those, and one more policy."""
        return Alternatives(self.limits, self.run, (*self.competitors, x))

    def reach(self, answer: Array) -> float:
        """How far an answer may move, about, without a gap that is no more."""
        gap, rise = self._first + self._slope @ answer, np.abs(self._slope).max(axis=1)
        counts = (gap > 0) & (rise > 0)
        return float(min(1.0, (gap[counts] / rise[counts]).min(initial=1.0)))

    def distances(self, answer: Array, spend: Array) -> Array:
        """How far each is."""
        gap = np.maximum(self._first + self._slope @ answer, 0.0)
        each = self._variance * self.limits.costs / np.where(spend > 0, spend, 1.0)
        z = self._moves[:, None] * answer - self._at  # 0 for arms that no policy uses
        spread = np.maximum((each * z * z).sum(axis=1), 1e-12 * each.sum(axis=1))
        return np.asarray(np.bincount(self._number, 0.5 * gap * gap / spread))


@dataclass(frozen=True)
class Solved:
    """An answer with shares for it.

    Attributes
    ----------
    answer, spend : (K,) arrays
        The answer, and shares of what is spent.
    distance : float
        Of the closest alternative that was found: information about it for what is spent.
    lower : float
        Proven: no alternative is closer.
    known : Alternatives
        Those that were found.
    """

    answer: Array
    spend: Array
    distance: float
    lower: float
    known: Alternatives


class Planner:
    """Looks for the easiest answer to an instance with measured limits.

    Parameters
    ----------
    workspace : Workspace
        Of a run in which samples need not keep the limits; its means and variances are those
        guessed.
    policy : (K,) array
        The best one that keeps the measured limits.
    """

    def __init__(self, workspace: Workspace, policy: Array) -> None:
        limits = workspace.config.measured
        loss = LOSS if limits.corners < 3 else LOSS_OF_TRIANGLES
        self.limits = limits = limits._replace(loss=loss)
        workspace.config = workspace.config._replace(measured=limits)
        self._workspace, self._best, self.run = workspace, policy, workspace.run
        self._free = limits.useful_arms
        known = workspace.polytope
        self._policies = known.linear_set
        self._size = limits.cells.size * limits.size * (TRIANGLES if limits.corners > 2 else 1)

    def _centre(self) -> list[Array]:
        """The answer with the largest margin to limits and rivals, if there is one with any.

        Margins are in standard deviations, of a policy's means.
        """
        from scipy.optimize import linprog

        limits, run = self.limits, self.run
        above, limit, equal, total, low, high = self._policies
        unit = np.sqrt(run.variance.max(axis=1))
        best = float(run.mean[0] @ self._best) - limits.epsilon
        rows = np.vstack([run.mean[1:], -run.mean[:1]])
        right = np.append(limits.limit + limits.tolerance, -best)
        found = linprog(
            np.append(np.zeros(limits.size), -1.0),
            A_ub=np.block([[above, np.zeros((len(above), 1))], [rows, np.roll(unit, -1)[:, None]]]),
            b_ub=np.append(limit, right),
            A_eq=np.column_stack([equal, np.zeros(len(equal))]),
            b_eq=total,
            bounds=[*zip(low, np.minimum(high, 1.0), strict=True), (0.0, None)],
        )
        if found.x is None or found.status or found.x[-1] <= NO_MARGIN:
            return []
        return [np.asarray(found.x[:-1])]

    def best(self, allowed: AllocationSet, first: Sequence[Array] = ()) -> Solved | None:
        """The best answer found; None where no number of samples is enough.

        Parameters
        ----------
        allowed : AllocationSet
            What may be spent.
        first : sequence of (K,) arrays
            Answers to start from, too.
        """
        best: Solved | None = None
        for start in [*first, *self._centre()]:
            found = self._improved(allowed, start)
            if found and (best is None or found.distance > best.distance):
                best = found
        return best

    def unsolved(self, spend: Array) -> Solved:
        """Where no number of samples is enough: nothing is known of the best policy."""
        return Solved(self._best, spend, 0.0, 0.0, Alternatives(self.limits, self.run))

    def _improved(self, allowed: AllocationSet, answer: Array) -> Solved | None:
        """Move answer and shares away from alternatives until there are no closer ones."""
        known, best = Alternatives(self.limits, self.run), None
        spend: Array = np.zeros(self.limits.size)
        spend[self._free] = np.maximum(allowed.max_slack[self._free], MIN_SHARE)
        spend /= spend.sum()
        for _ in range(MAX_ALTERNATIVES):
            known, far, least = self._closest(known, answer, spend)
            if far > (best.distance if best else 0.0):
                best = Solved(answer, spend, far, least, known)
            if best is None:
                return None
            answer, spend, most = self._moved(known, allowed, best.answer, best.spend)
            if best.distance >= most * (1 - CLOSER):
                break
        return best and replace(best, known=known)

    def _closest(
        self, known: Alternatives, answer: Array, spend: Array
    ) -> tuple[Alternatives, float, float]:
        """All known, the distance of the closest, and what that is proven to be no less than.

        The search for it may find a new one.
        """
        far = float(known.distances(answer, spend).min())
        if not far > 0:
            return known, 0.0, 0.0
        # As if there were so many samples that the closest one known is 1 away.
        self._workspace.arrays[2].measured.n[:] = spend / self.limits.costs / far
        self.run.answer[:], self.run.closest[:] = answer, -1.0
        least = far * min(float(self._workspace.call("nearest", edges=self._size)), 1.0)
        if self.run.closest[self._free[0]] >= 0:
            more = known.with_competitor(self.run.closest.copy())
            there = float(more.distances(answer, spend)[-1])
            known, far = (more if there < far * (1 - CLOSER) else known), min(far, there)
        return known, far, least

    def distance(self, answer: Array, spend: Array) -> float:
        """Of the closest alternative to an answer, for what is spent."""
        return self._closest(Alternatives(self.limits, self.run), answer, spend)[1]

    def _moved(
        self,
        known: Alternatives,
        allowed: AllocationSet,
        answer: Array,
        spend: Array,
    ) -> tuple[Array, Array, float]:
        """Answer and shares for which known alternatives are farthest."""
        from scipy.linalg import block_diag
        from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

        free, k = self._free, len(self._free)
        above, limit, equal, total, low, high = self._policies
        # Shares, the answer and a logarithm, in steps that matter about as much.
        at = np.concatenate([np.clip(spend[free], MIN_SHARE, 1.0), answer[free], [0.0]])
        steps = np.append(np.repeat([1.0, known.reach(answer)], k), 1.0)
        least = np.concatenate([np.maximum(allowed.lower[free], MIN_SHARE), low[free], [-np.inf]])
        most = np.concatenate([np.minimum(allowed.upper[free], 1.0), high[free], [np.inf]])
        unit = float(known.distances(answer, spend).min())

        def parts(y: Array) -> tuple[Array, Array]:
            moved = at + steps * y
            pi, u = answer.copy(), np.zeros(len(answer))
            u[free], pi[free] = moved[:k], moved[k:-1]
            return pi, u

        def rises(y: Array) -> Array:
            return np.asarray(np.log(np.maximum(known.distances(*parts(y)) / unit, TINY)) - y[-1])

        nothing = np.zeros((0, 1))
        sums = block_diag(allowed.A_eq[:, free], equal[:, free], nothing)
        used = block_diag(allowed.A_ub[:, free], above[:, free], nothing)
        left = np.append(allowed.b_eq, total) - sums @ at
        room = np.append(allowed.b_ub, limit) - used @ at
        constraints: list[Any] = [
            NonlinearConstraint(rises, 0.0, np.inf),
            LinearConstraint(sums * steps, left, left),
        ]
        if len(used):
            constraints.append(LinearConstraint(used * steps, -np.inf, room))
        ends = [(end - at) / steps for end in (least, most)]
        problem: dict[str, Any] = {
            "fun": lambda y: -y[-1],
            "x0": np.zeros(2 * k + 1),
            "constraints": constraints,
        }
        for reach in REACHES:  # farther away distances are not what they are here
            near = (np.append(np.clip(end[:-1], -reach, reach), end[-1]) for end in ends)
            problem["bounds"] = [*zip(*near, strict=True)]
            found = minimize(method="SLSQP", options={"maxiter": 200, "ftol": 1e-9}, **problem)
            pi, u = parts(found.x)
            pi, u = np.maximum(pi, 0.0), np.maximum(u, 0.0)
            pi, u = pi / pi.sum(), u / u.sum()
            far = float(known.distances(pi, u).min())
            if far > unit:
                return pi, u, far
        return answer, spend, unit
