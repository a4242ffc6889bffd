"""The linear equations of a Newton step, as many as the optimal policy has arms and the set rows.

interior_point.py states the program. When slacks and multipliers of inequalities are eliminated,
the unknowns are the changes dx of the free arms in units of themselves (dw = w dx), dt, and the
multipliers of equalities:

    [ H    -g    E' ] [ dx ]
    [ -g'   k    0  ] [ dt ]   = right-hand sides,
    [ E     0    0  ] [ dn ]

H = sum_e y_e F_e'' + sum_e (y/s)_e F_e' F_e'^T + A' (l/r) A + diag(z/w), and g, k the sums of
(y/s)_e F_e' and (y/s)_e. At a vertex most edges lead from arms of the optimal policy to one other
arm each. In H such a *lone* arm meets arms of the policy, and other lone arms only through rows of
A that name several arms. With an unknown v = sqrt(l/r) A dx for each of these *coupling* rows
(its equation: sqrt(l/r) A dx - v = 0) lone arms do not meet at all: their block D is diagonal, and

    [ C   B ] [ u ]   [ c ]          (C - B inverse(D) B') u = c - B inverse(D) d,
    [ B'  D ] [ x ] = [ d ]   gives   x = inverse(D) (d - B' u).

What is left, the core C - B inverse(D) B', does not grow with the number of arms. Elimination costs
digits where an entry of D is tiny (an arm that little holds in place), so that the solution is
refined by its own residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Blocks of edge matrices are added up in pieces of at most this many numbers.
CHUNK = 4_000_000

# Lone arms are eliminated where that saves so many unknowns; fewer are solved for as quickly.
WORTHWHILE = 30

# Multiplications in a product of matrices up to which OpenBLAS leaves it to one thread.
ONE_THREAD = 2**18

TINY = float(np.finfo(float).tiny)

# Refinements of a solution by its own residuals: mostly two are enough.
MAX_REFINEMENTS = 6


@dataclass(frozen=True)
class State:
    """F_e at an allocation, in units of 1 / unit, with its derivatives on free arms.

    The Hessian of F_e is diag(curvature) + gradient_weight g g' - curvature_weight u u', with g
    the gradient and u the curvature vector.
    """

    time: Array  # F_e
    gradient: Array  # (E, L): -dF_e / dw_a
    curvature: Array  # (E, L)
    gradient_weight: Array
    curvature_vector: Array  # (E, L)
    curvature_weight: Array


@dataclass(frozen=True)
class Weights:
    """Multipliers, and their ratios to slacks, at which the system is set up."""

    edges: Array  # y
    dual_over_slack: Array  # y / s
    rows: Array  # l / r
    arms: Array  # z / w


@dataclass(frozen=True)
class Step:
    """Changes of the free arms and of t, and what they bring about."""

    arms: Array
    time: float
    times: Array  # of F_e, to first order
    use: Array  # of rows
    rows: Array  # multipliers
    equal: Array


class Rows:
    """Rows of a matrix, then rows that are sign * w[arm] each."""

    def __init__(self, dense: Array, arm: Indices, sign: Array) -> None:
        self.dense, self.arm, self.sign = dense, arm, sign

    def among(self, free: Indices) -> Rows:
        """The same over some of the arms, all that have rows of their own among them."""
        return Rows(self.dense[:, free], np.searchsorted(free, self.arm), self.sign)

    def __matmul__(self, x: Array) -> Array:
        return np.concatenate([self.dense @ x, self.sign * x[self.arm]])

    def transposed(self, multipliers: Array) -> Array:
        """The transposed matrix times a vector."""
        several, single = np.split(multipliers, [len(self.dense)])
        return np.asarray(self.dense.T @ several + self._by_arm(self.sign * single))

    def diagonal(self, weights: Array) -> Array:
        """What rows of one arm add to the diagonal of (transposed rows) weights (rows)."""
        return self._by_arm(weights[len(self.dense) :])

    def _by_arm(self, values: Array) -> Array:
        return np.bincount(self.arm, values, minlength=self.dense.shape[1]).astype(float)


class System:
    """The equations of one program.

    Parameters
    ----------
    place : (E, L) array
        Which free arm an entry of an edge belongs to; any, where `moves` is False.
    moves : (E, L) array
    above, equal : arrays
        Rows over the free arms.
    """

    def __init__(self, place: Indices, moves: Mask, above: Rows, equal: Array) -> None:
        self._place, self._equal = place, equal
        self.above = above
        self._size = size = above.dense.shape[1]
        # Of two arms that meet, the one with fewer edges may be alone.
        rank = np.empty(size, dtype=np.int64)
        rank[np.argsort(np.bincount(place[moves], minlength=size), kind="stable")] = np.arange(size)
        ranks = np.where(moves, rank[place], size)
        meets_lower = moves & (ranks > ranks.min(axis=1, keepdims=True))
        lone = np.setdiff1d(np.arange(size), place[meets_lower])
        coupling = np.count_nonzero(above.dense, axis=1) > 1
        if len(lone) - np.count_nonzero(coupling) < WORTHWHILE:
            lone, coupling = lone[:0], np.zeros_like(coupling)
        self._lone, self._shared = lone, np.setdiff1d(np.arange(size), lone)
        self._coupled, self._coupled_rows = np.flatnonzero(coupling), above.dense[coupling]
        self._apart, self._apart_rows = np.flatnonzero(~coupling), above.dense[~coupling]
        # Arms of the other kind come after the last.
        self._as_shared = np.full(size, len(self._shared))
        self._as_shared[self._shared] = np.arange(len(self._shared))
        self._as_lone = np.full(size, len(self._lone))
        self._as_lone[self._lone] = np.arange(len(self._lone))

    def information_per_arm(self, state: State, y: Array) -> Array:
        """Information that weights on edges ask for, per arm: C_a / w_a^2."""
        return self._sum_over_edges(y[:, None] * state.gradient)

    def _sum_over_edges(self, values: Array) -> Array:
        sums = np.bincount(self._place.ravel(), values.ravel(), minlength=self._size)
        return np.asarray(sums, dtype=float)

    # ------------------------------------------------------------------ setting up

    def factor(self, w: Array, state: State, weights: Weights) -> None:
        """Set up the equations at an allocation of the free arms, and eliminate the lone ones.

        Arms are in units of themselves; the unknowns of coupling rows in units that make
        their own coefficient -1.
        """
        shared, lone = self._shared, self._lone
        within, across, own = self._hessian(state, weights)
        apart, held = self._apart_rows, weights.rows[self._apart]
        within += apart[:, shared].T @ (held[:, None] * apart[:, shared])
        own += held @ apart[:, lone] ** 2
        arms = weights.arms + self.above.diagonal(weights.rows)
        within[np.diag_indices(len(shared))] += arms[shared]
        own += arms[lone]
        coupled = np.sqrt(weights.rows[self._coupled])[:, None] * self._coupled_rows
        border = (
            np.vstack(
                [self.information_per_arm(state, weights.dual_over_slack), self._equal, coupled]
            )
            * w
        )
        count, total = len(shared), len(shared) + len(border)
        core = np.zeros((total, total))
        core[:count, :count] = w[shared, None] * within * w[shared]
        core[:count, count:] = border[:, shared].T
        core[count:, :count] = border[:, shared]
        core[count, count] = weights.dual_over_slack.sum()
        tail = np.arange(total - len(coupled), total)
        core[tail, tail] = -1.0
        self._meets = np.vstack([w[shared, None] * across * w[lone], border[:, lone]])
        self._own = own * w[lone] ** 2
        self._core = core - _product(self._meets / self._own, self._meets.T)
        # Pivots are chosen by what equations say, not by their units.
        self._units = 1.0 / np.sqrt(np.maximum(np.abs(self._core).max(axis=1), TINY))
        self._w, self._state, self._weights, self._scaled_rows = w, state, weights, coupled

    def _hessian(self, state: State, weights: Weights) -> tuple[Array, Array, Array]:
        """Lagrangian's Hessian plus what eliminating the edges' slacks adds.

        Among shared arms, between them and lone ones, and of each lone arm with itself.
        """
        gradient_weight = weights.dual_over_slack + weights.edges * state.gradient_weight
        curved = weights.edges * state.curvature_weight
        within = np.zeros((len(self._shared), len(self._shared)))
        across = np.zeros((len(self._shared), len(self._lone)))
        width = self._place.shape[1]
        chunk = max(1, CHUNK // max(1, width * width))
        for i in range(0, len(gradient_weight), chunk):
            part = slice(i, i + chunk)
            g, u, place = state.gradient[part], state.curvature_vector[part], self._place[part]
            blocks = gradient_weight[part, None, None] * (g[:, :, None] * g[:, None, :])
            blocks -= curved[part, None, None] * (u[:, :, None] * u[:, None, :])
            rows = np.broadcast_to(self._as_shared[place][:, :, None], blocks.shape)
            shared = np.broadcast_to(self._as_shared[place][:, None, :], blocks.shape)
            lone = np.broadcast_to(self._as_lone[place][:, None, :], blocks.shape)
            within += _scattered(rows, shared, blocks, within.shape)
            across += _scattered(rows, lone, blocks, across.shape)
        curvature = self._sum_over_edges(weights.edges[:, None] * state.curvature)
        own = self._sum_over_edges(
            gradient_weight[:, None] * state.gradient**2
            - curved[:, None] * state.curvature_vector**2
        )
        within[np.diag_indices(len(within))] += curvature[self._shared]
        return within, across, (curvature + own)[self._lone]

    # ------------------------------------------------------------------ solving

    def solve(self, edges: Array, arms: Array, time: float, equal: Array) -> Step:
        """The step for given right-hand sides.

        Those of arms and of t contain what `edges` pulls, besides `arms` and `time`.
        """
        size, weights = self._size, self._weights
        asked = self._w * (self.information_per_arm(self._state, edges) + arms)
        right = np.concatenate([asked, [edges.sum() + time], equal, np.zeros(len(self._coupled))])
        solved = self._refined(right) if len(self._lone) else self._solved(right)
        change, dt, end = self._w * solved[:size], float(solved[size]), size + 1 + len(equal)
        times = -(self._state.gradient * change[self._place]).sum(axis=1)
        use = self.above @ change
        # Where rows bind, the product would magnify errors of a step that hardly moves them.
        rows = weights.rows * use
        rows[self._coupled] = np.sqrt(weights.rows[self._coupled]) * solved[end:]
        return Step(
            arms=change,
            time=dt,
            times=times,
            use=use,
            rows=rows,
            equal=solved[size + 1 : end],
        )

    def _refined(self, right: Array) -> Array:
        """The solution, refined as long as that helps."""
        solved = self._solved(right)
        off = right - self._applied(solved)
        for _ in range(MAX_REFINEMENTS):
            better = solved + self._solved(off)
            left = right - self._applied(better)
            if not np.abs(left).max() < 0.5 * np.abs(off).max():
                break
            solved, off = better, left
        return solved

    def _solved(self, right: Array) -> Array:
        shared, lone, size, count = self._shared, self._lone, self._size, len(self._shared)
        few = np.concatenate([right[shared], right[size:]])
        units = self._units
        few = units * (few - self._meets @ (right[lone] / self._own))
        few = units * np.linalg.solve(units[:, None] * self._core * units, few)
        solved = np.empty(len(right))
        solved[shared], solved[size:] = few[:count], few[count:]
        solved[lone] = (right[lone] - few @ self._meets) / self._own
        return solved

    def _applied(self, x: Array) -> Array:
        """The left-hand sides, from the equations as they were before anything was eliminated."""
        state, weights, w = self._state, self._weights, self._w
        end = self._size + 1 + len(self._equal)
        arms, t, equal, rows = np.split(x, [self._size, self._size + 1, end])
        arms = w * arms
        entries = arms[self._place]
        slope = (state.gradient * entries).sum(axis=1)
        turned = (state.curvature_vector * entries).sum(axis=1)
        pushed = weights.dual_over_slack * (slope + t)
        along = pushed + weights.edges * state.gradient_weight * slope
        forces = along[:, None] * state.gradient
        forces -= (weights.edges * state.curvature_weight * turned)[
            :, None
        ] * state.curvature_vector
        forces += weights.edges[:, None] * state.curvature * entries
        apart, held, coupled = self._apart_rows, weights.rows[self._apart], self._scaled_rows
        total = self._sum_over_edges(forces)
        total += (weights.arms + self.above.diagonal(weights.rows)) * arms
        total += apart.T @ (held * (apart @ arms)) + self._equal.T @ equal + coupled.T @ rows
        return np.concatenate(
            [w * total, [pushed.sum()], self._equal @ arms, coupled @ arms - rows]
        )


def _product(left: Array, right: Array) -> Array:
    """A matrix product, a few rows at a time, so that one thread makes it.

    Threads that wait for their part of small products keep a processor busy, and what they round
    depends on how many they are.
    """
    height = max(1, ONE_THREAD // max(1, right.size))
    parts = [left[i : i + height] @ right for i in range(0, len(left), height)]
    return np.concatenate(parts) if parts else left @ right


def _scattered(rows: Indices, columns: Indices, values: Array, shape: tuple[int, int]) -> Array:
    """A matrix of sums; what lies one beyond its last row or column is left out."""
    height, width = shape
    where = (rows * (width + 1) + columns).ravel()
    sums = np.bincount(where, values.ravel(), minlength=(height + 1) * (width + 1))
    return np.asarray(sums.reshape(height + 1, width + 1)[:height, :width], dtype=float)
