"""Closest alternatives with unknown standard deviations.

One comparison asks for

    min { sum_a w_a phi(y_a) : sum_a c_a y_a = g, y >= 0 },

phi(y) = log(1 + y^2) / 2 and y_a the distance of arm a's mean from its alternative, in its standard
deviations. phi is convex up to 1 and concave beyond, and at a minimum at most one y_a exceeds 1: of
two, moving one up and the other down would pay. So the minimum is the least of a convex program,
all y_a <= 1, and for each arm b of a problem in one variable, y_b > 1 and the others below 1:
concave plus convex. `locally` finds its local minima; `no_less_than` bounds it from below by
branching on y_b, where a chord of phi makes the problem convex and its dual a formula. Proofs:
docs/theory/unknown_sigma.md.

All functions take many comparisons at once, one per row; c is 0 where a row has no arm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Function = Callable[[Array], tuple[Array, Array]]

EPS = float(np.finfo(float).eps)

# What rounding may leave of an equation, relatively; values depend on its square.
NOISE = 64 * EPS

# Guesses of a root closer to each other than this, relatively, are the same: for that reason.
RESOLUTION = 1e-10

# Plain steps of Newton's method before one is taken that cannot fail.
QUICK = 8

# Places at which a branch is looked at for local minima.
PLACES = 24

# `no_less_than` is content with a bound this close, and gives up refining after so many rounds.
CLOSE = 1e-12
MAX_ROUNDS = 80


def phi(y: Array) -> Array:
    """log(1 + y^2) / 2."""
    return np.asarray(0.5 * np.log1p(y * y))


@dataclass(frozen=True)
class Convex:
    """Arms that stay below 1: min { sum w phi(y) : c . y = h, 0 <= y <= 1 }."""

    w: Array
    c: Array

    def only(self, rows: Indices) -> Convex:
        return Convex(self.w[rows], self.c[rows])

    def at(self, gamma: Array) -> Array:
        """y that minimises w phi(y) - gamma c y: small roots of y / (1 + y^2) = gamma c / w."""
        q = np.minimum(gamma[:, None] * self.c / self.w, 0.5)
        y = 2 * q / (1 + np.sqrt((1 - 2 * q) * (1 + 2 * q)))
        return np.asarray(y)

    def dual(self, gamma: Array, h: Array) -> Array:
        """No more than the minimum, whatever gamma; equal to it at the best one."""
        y = self.at(gamma)
        return np.asarray((self.w * phi(y)).sum(axis=1) + gamma * (h - (self.c * y).sum(axis=1)))

    def steepness(self, y: Array) -> Array:
        """dy / dgamma, 0 where y can grow no more."""
        one = 1 + y * y
        rest = np.where(y < 1, (1 - y) * (1 + y), np.inf)
        return np.asarray(self.c / self.w * one * one / np.maximum(rest, EPS))

    def covered(self, gamma: Array) -> Array:
        """c . y."""
        return np.asarray((self.c * self.at(gamma)).sum(axis=1))

    def multiplier(self, h: Array, near: Array | None = None) -> Array:
        """gamma with c . y = h, for h between 0 and the sum of c; a guess of it saves time.

        Arms get to 1 one after the other as gamma grows: first between which two of these places it
        lies. Below the upper one, top, c . y is smooth in the angle of gamma = top sin(2 angle),
        and Newton's method takes a few steps.
        """
        if not len(h):
            return h
        full = np.divide(0.5 * self.w, self.c, out=np.zeros(self.c.shape), where=self.c > 0)
        limits = np.column_stack([np.zeros(len(h)), np.sort(full, axis=1)])
        row = np.arange(len(h))
        first, last = np.zeros(len(h), dtype=int), np.full(len(h), limits.shape[1] - 1)
        while (last - first > 1).any():
            middle = (first + last) // 2
            above = self.covered(limits[row, middle]) >= h
            last, first = np.where(above, middle, last), np.where(above, first, middle)
        top = limits[row, last]
        ratio = np.divide(limits[row, first], top, out=np.zeros(len(h)), where=top > 0)
        low, high = 0.5 * np.arcsin(np.minimum(ratio, 1.0)), np.full(len(h), np.pi / 4)
        if near is None:
            near = h / np.maximum((self.c * self.c / self.w).sum(axis=1), np.finfo(float).tiny)
        guess = np.divide(near, top, out=np.ones(len(h)), where=top > 0)
        x = np.clip(0.5 * np.arcsin(np.minimum(guess, 1.0)), low, high)
        # gamma c / w = r sin(2 x) / 2; near y = 1 it would not have the digits that y needs.
        r = np.minimum(2 * top[:, None] * self.c / self.w, 1.0)
        held = full < top[:, None]

        def excess(x: Array) -> tuple[Array, Array]:
            sine, cosine = np.sin(2 * x)[:, None], np.cos(2 * x)[:, None]
            root = np.sqrt((1 - r) * (1 + r) + (r * cosine) ** 2)
            y = np.where(held, 1.0, r * sine / (1 + root))
            turn = np.divide(r * cosine, root, out=np.ones(r.shape), where=root > 0)
            slope = (self.c * np.where(held, 0.0, turn * (1 + y * y))).sum(axis=1)
            return (self.c * y).sum(axis=1) - h, slope

        return np.asarray(top * np.sin(2 * _root(excess, x, low, high, NOISE * h)))


def _root(function: Function, x: Array, low: Array, high: Array, noise: Array) -> Array:
    """Roots of functions that rise across their brackets, given with their slopes.

    Newton's step, no farther than the bracket, where the last one halved the value; else the
    middle.
    """
    for _ in range(QUICK):  # mostly enough, and without all the precautions
        value, slope = function(x)
        if (np.abs(value) <= noise).all():
            return x
        x = np.clip(x - value / np.where(slope > 0, slope, np.inf), low, high)
    before = np.full(len(x), np.inf)
    for _ in range(200):
        value, slope = function(x)
        low, high = np.where(value < 0, x, low), np.where(value < 0, high, x)
        going = (np.abs(value) > noise) & (high - low > RESOLUTION * high)
        if not going.any():
            break
        step = np.clip(x - value / np.where(slope > 0, slope, np.inf), low, high)
        fits = (np.abs(value) <= 0.5 * before) & (step != x)
        before = np.where(fits, np.abs(value), np.inf)
        x = np.where(going, np.where(fits, step, 0.5 * (low + high)), x)
    return np.asarray(x)


@dataclass(frozen=True)
class Branch:
    """Arm b between `low` >= 1 and `high`, the others below 1."""

    others: Convex  # c is 0 for b
    w: Array  # of b
    c: Array
    g: Array
    low: Array
    high: Array

    def only(self, rows: Indices) -> Branch:
        alone = (self.w, self.c, self.g, self.low, self.high)
        return Branch(self.others.only(rows), *(part[rows] for part in alone))

    def rest(self, y: Array) -> Array:
        """What is left to the others."""
        return np.maximum(self.g - self.c * y, 0.0)

    def locally(self) -> tuple[Array, Array]:
        """y_b and the multiplier of the best local minimum that a search over places finds.

        Where y_b's own multiplier gamma = w phi'(y_b) / c makes the others cover more than what is
        left to them, a smaller y_b is better. With y_b = cot(angle) every place is explicit.
        """
        near, far = np.arctan(1 / self.high), np.arctan(1 / self.low)
        steps = np.linspace(0.0, 1.0, PLACES)
        angle = near[:, None] * (far / near)[:, None] ** steps
        angle[:, -1] = far
        each = np.repeat(np.arange(len(near)), PLACES)
        beyond = self.only(each)._excess(angle.ravel()).reshape(angle.shape)
        row, k = np.nonzero((beyond[:, :-1] > 0) & (beyond[:, 1:] <= 0))
        ends = beyond[row, k], beyond[row, k + 1]
        found = self.only(row)._root(angle[row, k], angle[row, k + 1], *ends)
        # Ends, where the function falls towards them.
        first, last = np.flatnonzero(beyond[:, 0] <= 0), np.flatnonzero(beyond[:, -1] > 0)
        outer = self.only(np.concatenate([first, last]))
        at_ends = np.concatenate([self.high[first], self.low[last]])
        gamma = np.concatenate(
            [
                self.only(row)._gamma(found),
                outer.others.multiplier(outer.rest(at_ends)),
            ]
        )
        row = np.concatenate([row, first, last])
        y = np.concatenate([1 / np.tan(found), at_ends])
        chosen = self.only(row)
        value = chosen.w * phi(y) + chosen.others.dual(gamma, chosen.rest(y))
        order = np.lexsort((-value, row))  # of each row the last one is the least
        best_y, best_gamma = self.low.copy(), np.zeros(len(self.g))
        best_y[row[order]], best_gamma[row[order]] = y[order], gamma[order]
        return best_y, best_gamma

    def _gamma(self, angle: Array) -> Array:
        return np.asarray(self.w * np.sin(2 * angle) / (2 * self.c))

    def _excess(self, angle: Array) -> Array:
        return self.c / np.tan(angle) + self.others.covered(self._gamma(angle)) - self.g

    def _root(self, low: Array, high: Array, at_low: Array, at_high: Array) -> Array:
        """Where the excess, positive at `low` and not at `high`, vanishes: from a straight line."""

        def short(x: Array) -> tuple[Array, Array]:
            y = self.others.at(self._gamma(x))
            covered = self.c / np.tan(x) + (self.others.c * y).sum(axis=1)
            rise = (self.others.c * self.others.steepness(y)).sum(axis=1)
            rise *= self.w * np.cos(2 * x) / self.c
            return self.g - covered, self.c / np.sin(x) ** 2 - rise

        start = low + (high - low) * at_low / (at_low - at_high)
        return _root(short, start, low, high, NOISE * self.g)

    def no_less_than(self, known: Array) -> Array:
        """A lower bound on the branch, or `known` where that is less: nothing above it matters.

        A chord of phi between two values of y_b lies below it. With the chord the problem is
        convex, and any multiplier bounds it.
        """
        best = known.copy()
        least = np.full(len(best), np.inf)
        row = np.arange(len(best))
        low, high = self.low, self.high
        for rounds in range(MAX_ROUNDS):
            part = self.only(row)
            rise = part.w * (phi(high) - phi(low)) / (high - low)
            gamma = rise / part.c
            y = (part.g - part.others.covered(gamma)) / part.c
            outside = np.flatnonzero((y < low) | (y > high))
            y = np.clip(y, low, high)
            some = part.only(outside)
            gamma[outside] = some.others.multiplier(some.rest(y[outside]))
            bound = part.w * phi(low) - rise * low + part.others.dual(gamma, part.g)
            tilt = rise - gamma * part.c
            bound += np.minimum(tilt * low, tilt * high)
            value = part.w * phi(y) + part.others.dual(gamma, part.rest(y))
            np.minimum.at(best, row, value)
            going = (bound < best[row] * (1 - CLOSE)) & (high - low > 8 * EPS * high)
            going &= rounds < MAX_ROUNDS - 1
            np.minimum.at(least, row[~going], bound[~going])
            if not going.any():
                break
            row, low, high, y = row[going], low[going], high[going], y[going]
            margin = 0.02 * (high - low)
            inside = (y > low + margin) & (y < high - margin)
            middle = np.where(inside, y, 0.5 * (low + high))
            row = np.concatenate([row, row])
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        return np.asarray(np.minimum(least, best))
