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
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import lapack

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Lone arms are eliminated where that saves so many unknowns; fewer are solved for as quickly.
WORTHWHILE = 30

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
        within, across, own = self._hessian(w, state, weights)
        apart, held = self._apart_rows * w, weights.rows[self._apart]
        within += apart[:, shared].T @ (held[:, None] * apart[:, shared])
        arms = (weights.arms + self.above.diagonal(weights.rows)) * w * w
        within[np.diag_indices(len(shared))] += arms[shared]
        coupled = np.sqrt(weights.rows[self._coupled])[:, None] * self._coupled_rows
        asked = self.information_per_arm(state, weights.dual_over_slack)
        border = np.vstack([asked, self._equal, coupled]) * w
        count, total = len(shared), len(shared) + len(border)
        core = np.zeros((total, total))
        core[:count, :count] = within
        core[:count, count:] = border[:, shared].T
        core[count:, :count] = border[:, shared]
        core[count, count] = weights.dual_over_slack.sum()
        tail = np.arange(total - len(coupled), total)
        core[tail, tail] = -1.0
        self._core, self._own = core, own + held @ apart[:, lone] ** 2 + arms[lone]
        self._meets = np.vstack([across, border[:, lone]])
        left = core - (self._meets / self._own) @ self._meets.T
        # Pivots are chosen by what equations say, not by their units.
        self._units = units = 1.0 / np.sqrt(np.maximum(np.abs(left).max(axis=1), TINY))
        *self._factors, singular = lapack.dgetrf(units[:, None] * left * units)
        if singular:
            raise np.linalg.LinAlgError
        self._few = np.append(shared, np.arange(self._size, self._size + len(border)))
        self._w, self._state, self._weights = w, state, weights

    def _hessian(self, w: Array, state: State, weights: Weights) -> tuple[Array, Array, Array]:
        """Lagrangian's Hessian plus what eliminating the edges' slacks adds.

        Among shared arms, between them and lone ones, and of each lone arm with itself.
        """
        gradient_weight = weights.dual_over_slack + weights.edges * state.gradient_weight
        curved, moved = weights.edges * state.curvature_weight, w[self._place]
        whole = self._products(state.gradient * moved, gradient_weight)
        if curved.any():
            whole = whole - self._products(state.curvature_vector * moved, curved)
        curvature = weights.edges[:, None] * state.curvature * moved * moved
        own = whole.diagonal() + self._sum_over_edges(curvature)
        rows = whole[self._shared]
        within, across = rows[:, self._shared].toarray(), rows[:, self._lone].toarray()
        within[np.diag_indices(len(within))] = own[self._shared]
        return within, across, own[self._lone]

    def _products(self, vectors: Array, weights: Array) -> Any:
        """The weighted sum of each edge's vector times itself, as a sparse matrix."""
        count, width = self._place.shape
        place, ends = self._place.ravel(), np.arange(count + 1) * width
        left, right = (
            sparse.csr_array((x.ravel(), place, ends), (count, self._size))
            for x in (vectors, weights[:, None] * vectors)
        )
        return left.T.tocsr() @ right

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
        few, lone = self._few, self._lone
        reduced = self._units * (right[few] - self._meets @ (right[lone] / self._own))
        solved = np.empty(len(right))
        solved[few] = self._units * lapack.dgetrs(*self._factors, reduced)[0]
        solved[lone] = (right[lone] - solved[few] @ self._meets) / self._own
        return solved

    def _applied(self, x: Array) -> Array:
        """The left-hand sides, from the equations as they were before anything was eliminated."""
        few, lone = x[self._few], x[self._lone]
        found = np.empty(len(x))
        found[self._few] = self._core @ few + self._meets @ lone
        found[self._lone] = few @ self._meets + self._own * lone
        return found
