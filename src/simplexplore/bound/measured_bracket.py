"""What no answer can beat where limits are measured, by branch and bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.polytope import Polytope

from .allocation_set import AllocationSet
from .measured_information import MeasuredInformation
from .measured_search import ROUGH, Solved, certified, climb

Array = npt.NDArray[np.float64]

# How far answers are told to be from the best at most: each is tried, one after the other.
BRACKETS = (30.0, 8.0, 3.0, 1.0, 0.4, 0.2, 0.1, 0.05, 0.025, 0.01, 0.005, 0.002, 0.001)

# Answers that are looked at in order to prove them.
MOST_NODES = 48

# Sets of answers narrower than this are their neighbours' boundary.
THIN = 1e-9


class Bracket:
    """What no answer can beat, by branch and bound.

    Take any answer p, its best shares of samples and the weighted alternatives that prove them
    best. Alternatives that are s times as far, in rewards or in the limit that is exceeded, make
    not only p wrong but a neighbourhood of it: the answers that are on the wrong side of a
    hyperplane for each of them. If s is such that their information is still below a goal, that
    neighbourhood is settled, and what remains is on the right side of the first hyperplane, or of
    the second, and so on: each a smaller set of answers, treated in the same way.
    """

    def __init__(
        self, information: MeasuredInformation, known: Polytope, allowed: AllocationSet
    ) -> None:
        self.information, self.known, self.allowed = information, known, allowed
        self.nodes = 0
        self.w = allowed.deep

    def improved(self, best: Solved, opt: float) -> tuple[float, Solved]:
        """Prove that no answer's information is more than 1 + gap times that of the best one.

        Returns the least gap that was proven, and the best answer: another one if it is met.
        """
        proven = np.inf
        self.w = best.w
        for gap in BRACKETS:
            start = best
            done, best = self._settle(best, gap, opt)
            if best is not start:  # the goal rose meanwhile, and what was proven holds less
                proven = (1.0 + proven) * start.least / best.least - 1.0
            if not done:
                break
            proven = min(gap, proven)
        return proven, best

    def _settle(self, best: Solved, gap: float, opt: float) -> tuple[bool, Solved]:
        information = self.information
        # An answer that is not good under the instance itself has no information at all.
        regions = [
            [
                *(
                    (-row, -x)
                    for row, x in zip(information.rows, information.tolerance, strict=True)
                ),
                (information.mu, opt - information.epsilon),
            ]
        ]
        while regions:
            region = regions.pop()
            centre = self._centre(region)
            if centre is None:
                continue
            self.nodes += 1
            if self.nodes > MOST_NODES:
                return False, best
            if not information.least(centre, self.w) > 0:  # lost in rounding
                return False, best
            _, w = climb(
                information, self.known, self.allowed, centre, self.w, fixed=True, effort=ROUGH
            )
            found = certified(information, self.allowed, centre, w, 0.1 * gap, rough=True)
            if found.least > best.least * (1.0 + 1e-9):
                pi, w = climb(information, self.known, self.allowed, centre, w)
                better = certified(information, self.allowed, pi, w)
                best = better if better.least > best.least else best
            goal = best.least * (1.0 + gap)
            if found.most >= goal:
                return False, best
            regions += self._rest(region, found, goal)
        return True, best

    def _rest(
        self, region: list[tuple[Array, float]], found: Solved, goal: float
    ) -> Iterable[list[tuple[Array, float]]]:
        """Parts of a set of answers that are not settled."""
        fixed = np.where((found.alternatives.row >= 0)[:, None], 0.0, found.alternatives.limits)
        moving = found.alternatives.gain - fixed
        scale = np.sqrt(goal / found.most)
        if self.allowed.is_simplex:
            room = goal - found.weights @ fixed
            scale = np.sqrt((room / np.maximum(found.weights @ moving, 1e-300)).min())
        before: list[tuple[Array, float]] = []
        for normal, offset in self._sides(found, float(scale)):
            yield [*region, *before, (normal, offset)]
            before.append((-normal, -offset))

    def _sides(self, found: Solved, scale: float) -> Iterable[tuple[Array, float]]:
        """For each alternative, times `scale`, the answers that it does not make wrong."""
        information, close = self.information, found.alternatives
        for i, x, shift in zip(close.row, close.rivals, close.shift, strict=True):
            if i >= 0:
                yield -(information.rows[i] + scale * shift), -information.tolerance[i]
            else:
                mu = information.mu + scale * shift
                yield mu, float(mu @ x) - information.epsilon

    def _centre(self, region: list[tuple[Array, float]]) -> Array | None:
        """A policy deep inside; None where there is none."""
        from scipy.optimize import linprog

        above, limit = self.known.inequalities()
        equal, sums = self.known.equalities()
        low, high = self.known.limits()
        rows = np.vstack([above, *(-normal for normal, _ in region)])
        right = np.append(limit, [-offset for _, offset in region])
        # Only what moves within the simplex counts.
        level = rows.mean(axis=1, keepdims=True)
        length = np.maximum(np.linalg.norm(rows - level, axis=1), 1e-300)
        found: Any = linprog(
            np.append(np.zeros(len(low)), -1.0),
            A_ub=np.column_stack([rows / length[:, None], np.ones(len(rows))]),
            b_ub=right / length,
            A_eq=np.column_stack([equal, np.zeros(len(equal))]),
            b_eq=sums,
            bounds=[*zip(low, np.minimum(high, 1.0), strict=True), (None, 1.0)],
        )
        if found.status != 0 or found.x[-1] < THIN:
            return None
        return np.asarray(found.x[:-1] / found.x[:-1].sum())
