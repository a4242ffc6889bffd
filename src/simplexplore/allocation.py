"""The best way to spread samples, with a certificate.

The characteristic time (paper, Eq. 5) is T = min over w in Pi of max over edges of F_e(w),
F_e = 1 / D_e convex. It is solved by a primal-dual interior-point method for

    minimise t   subject to   F_e(w) <= t,   A w <= b,   E w = f,

with w >= 0 implied by F_e wherever it matters. Iterates stay strictly feasible, so each of
them bounds T from above; its multipliers bound T from below (`_certify`). The distance of
the two is the certificate, whatever the solver did.

In the anytime scenario the optimal allocations may form a set. We return the leximin
member: the least informative edge first, then the second least given that, and so on. It
does not depend on how constraints are written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .information import Information

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Certified relative gap to aim at, well inside the promised 1e-8.
TARGET_GAP = 1e-10
MAX_STEPS = 150

# Part of the promised slack that a step must keep.
CURVATURE = 0.2

# Equalities that differ by less than this on the free arms repeat each other.
RANK_TOLERANCE = 1e-9

# Blocks of edge matrices are added up in pieces of at most this many numbers.
CHUNK = 4_000_000


@dataclass(frozen=True)
class AllocationSet:
    """{w >= 0 : A w <= b, E w = f} with a policy strictly inside, for the arms in play."""

    above: Array  # A
    limit: Array  # b
    equal: Array  # E
    total: Array  # f
    inside: Array
    arms: Mask  # arms that may be positive

    @classmethod
    def simplex(cls, arms: Mask) -> AllocationSet:
        """All allocations over some arms."""
        size = len(arms)
        return cls(
            above=np.zeros((0, size)),
            limit=np.zeros(0),
            equal=np.ones((1, size)),
            total=np.ones(1),
            inside=arms / arms.sum(),
            arms=arms,
        )


@dataclass(frozen=True)
class Allocation:
    """An optimal allocation.

    Attributes
    ----------
    characteristic_time : float
        max over edges of 1 / D_e(w): no less than T.
    relative_gap : float
        T is at least characteristic_time / (1 + relative_gap).
    w : (K,) array
    multipliers : (E,) array
        Weights of the edges in the optimum; they sum to one.
    unique : bool
        Whether w is the only optimal allocation.
    """

    characteristic_time: float
    relative_gap: float
    w: Array
    multipliers: Array
    unique: bool


def optimal_allocation(information: Information, allowed: AllocationSet) -> Allocation:
    """Minimise the largest 1 / D_e(w) over the allowed allocations."""
    first = _Level.first(information, allowed)
    point = _interior_point(information, first, allowed.inside)
    lower = _lower_certificate(information, allowed, first, point)
    w, unique = _leximin(information, first, point)
    time = float(1.0 / information.closest(w).value.min())
    gap = max(time / lower - 1.0, 0.0) if lower > 0 else np.inf
    return Allocation(
        characteristic_time=time,
        relative_gap=gap + information.rounding(),
        w=w,
        multipliers=point.y / point.y.sum(),
        unique=unique,
    )


@dataclass(frozen=True)
class _Level:
    """One convex program: which edges count, which arms move, within which rows.

    Rows range over all arms; `equal` is independent on the free ones.
    """

    edges: Indices
    free: Indices
    above: Array
    limit: Array
    equal: Array
    total: Array

    @classmethod
    def first(cls, information: Information, allowed: AllocationSet) -> _Level:
        # Arms that no edge moves need a row of their own to stay nonnegative; the others
        # are kept off zero by their edges.
        bare = np.flatnonzero(allowed.arms & ~information.covered())
        signs = np.zeros((len(bare), information.size))
        signs[np.arange(len(bare)), bare] = -1.0
        return cls(
            edges=np.arange(len(information.gaps)),
            free=np.flatnonzero(allowed.arms),
            above=np.vstack([allowed.above, signs]),
            limit=np.concatenate([allowed.limit, np.zeros(len(bare))]),
            equal=allowed.equal,
            total=allowed.total,
        )

    def following(self, information: Information, point: _Point) -> _Level:
        """The program that is left when what this one determines is held fast.

        Edges with a positive multiplier have the same value, hence the same weights on
        their arms, in every optimal allocation (D_e is strictly concave across rays);
        rows with a positive multiplier bind in all of them. At the solution each product
        of slack and multiplier is tiny, so the larger factor tells which one is positive.
        """
        binding = self.edges[point.y > point.s]
        pinned = information.index[binding][information.used[binding]]
        free = np.setdiff1d(self.free, pinned)
        moving = np.zeros(information.size, dtype=bool)
        moving[free] = True
        touched = (moving[information.index] & information.used).any(axis=1)
        tight = point.l > point.r
        equal = np.vstack([self.equal, self.above[tight]])
        # An orthonormal basis of the equalities as seen by the free arms.
        left, sizes, _ = np.linalg.svd(equal[:, free], full_matrices=False)
        independent = left[:, sizes > RANK_TOLERANCE].T
        return _Level(
            edges=np.intersect1d(self.edges, np.flatnonzero(touched)),
            free=free,
            above=self.above[~tight],
            limit=self.limit[~tight],
            equal=independent @ equal,
            total=independent @ equal @ point.w,
        )


@dataclass(frozen=True)
class _Point:
    """An allocation with slacks s (edges), r (rows) and multipliers y, l, n (equalities).

    Times, and with them slacks and multipliers, are in units of 1 / unit.
    """

    w: Array
    s: Array
    r: Array
    y: Array
    l: Array  # noqa: E741 - the letter of the formulas
    n: Array
    unit: float


def _leximin(information: Information, level: _Level, point: _Point) -> tuple[Array, bool]:
    """The canonical optimal allocation, and whether there is no other."""
    unique = True
    worst = 1.0 / information.closest(point.w).value.min()
    while True:
        following = level.following(information, point)
        settled = len(following.free) == len(level.free)
        if settled or len(following.free) <= len(following.equal):
            return point.w, unique
        unique = False
        if len(following.edges) == 0:
            return point.w, unique
        better = _interior_point(information, following, point.w)
        # A badly conditioned level must not cost samples.
        if 1.0 / information.closest(better.w).value.min() > worst * (1 + TARGET_GAP):
            return point.w, unique
        level, point = following, better


def _lower_certificate(
    information: Information, allowed: AllocationSet, level: _Level, point: _Point
) -> float:
    """A lower bound on T from any multipliers, by weak duality.

    For any weights p on edges and any alternative lam^e across each edge,
    1/T <= max over w in Pi of sum_a w_a G_a with G_a = sum_e p_e d(mu_a, lam^e_a), and that
    linear program is at most l.b + n.f + n_0 for every l >= 0, every n, and
    n_0 = max over arms of (G - A'l - E'n). Nothing here relies on convergence.
    """
    closest = information.closest(point.w)
    weight = point.unit * point.y / (closest.value * closest.value)
    scale = weight.sum()
    gain = np.bincount(
        information.index.ravel(),
        ((weight / scale)[:, None] * closest.gradient).ravel(),
        minlength=information.size,
    )
    price = (level.above.T @ point.l + level.equal.T @ point.n) / scale
    best = (gain - price)[allowed.arms].max()
    best += (level.limit @ point.l + level.total @ point.n) / scale
    return 1.0 / float(best) if best > 0 else 0.0


def _interior_point(information: Information, level: _Level, start: Array) -> _Point:
    """Solve one level from a strictly feasible allocation.

    Every iterate is strictly feasible: a step is halved until the curvature of F_e leaves
    a good part of the slack that its linear model promised.
    """
    problem = _Newton(information, level)
    w = start.copy()
    unit = float(information.closest(w).value[level.edges].min())  # F in units of 1 / unit
    state = problem.at(w, unit)
    t = 2.0
    s = t - state.time
    r = level.limit - level.above @ w
    y = (1.0 / s) / (1.0 / s).sum()
    mu = float(y @ s) / len(s)
    l = mu / r  # noqa: E741
    n = np.zeros(len(level.equal))
    reduction = 0.2
    best: tuple[float, _Point] | None = None
    for _ in range(MAX_STEPS):
        gap = float(s @ y + r @ l)
        mu = gap / (len(s) + len(r))
        residual = problem.residual(state, y, l, n)
        distance = max(gap, float(np.abs(residual * w[level.free]).max()), abs(1 - y.sum())) / t
        if best is None or distance < best[0]:
            best = distance, _Point(w, s, r, y, l, n, unit)
        if distance < TARGET_GAP / 10:
            break
        dw, dt, dn, dy, dl = problem.step(state, w, t, s, r, y, l, n, reduction * mu)
        ds = dt - problem.jacobian_times(state, dw)
        dr = -level.above[:, level.free] @ dw
        primal = min(_longest(s, ds, 0.99), _longest(r, dr, 0.99), _longest(w[level.free], dw, 0.9))
        dual = min(_longest(y, dy, 0.99), _longest(l, dl, 0.99))
        while True:
            trial = w.copy()
            trial[level.free] += primal * dw
            state = problem.at(trial, unit)
            room = t + primal * dt - state.time
            if (room >= CURVATURE * (s + primal * ds)).all() or primal < 1e-12:
                break
            primal *= 0.5
        w, t, s = trial, t + primal * dt, room
        r = level.limit - level.above @ w
        y, l, n = y + dual * dy, l + dual * dl, n + dual * dn  # noqa: E741
        slowest = min(primal, dual)
        reduction = 0.5 if slowest < 0.3 else 0.2 if slowest < 0.9 else 0.02
    assert best is not None
    return best[1]


def _longest(x: Array, dx: Array, fraction: float) -> float:
    """Largest step in (0, 1] that keeps x + step dx >= (1 - fraction) x."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(dx < 0, -fraction * x / dx, 1.0)
    return float(min(1.0, ratio.min(initial=1.0)))


@dataclass(frozen=True)
class _State:
    """F_e at an allocation, in units of 1 / unit, with its derivatives on free arms."""

    time: Array  # F_e
    gradient: Array  # (E, L): -dF_e / dw_a
    curvature: Array  # (E, L): diagonal part of the Hessian of F_e
    bend: Array  # (E, L): u, with - bend_scale u u' in the Hessian
    bend_scale: Array


class _Newton:
    """The linear algebra of one level."""

    def __init__(self, information: Information, level: _Level) -> None:
        self.information = information
        self.level = level
        place = np.full(information.size, -1)
        place[level.free] = np.arange(len(level.free))
        self.place = place[information.index[level.edges]]
        self.moves = information.used[level.edges] & (self.place >= 0)
        self.place = np.where(self.moves, self.place, 0)
        self.count = len(level.free)
        self.above = level.above[:, level.free]
        self.equal = level.equal[:, level.free]

    def at(self, w: Array, unit: float) -> _State:
        information, chosen = self.information, self.level.edges
        closest = information.closest(w)
        time = unit / closest.value[chosen]
        square = time * time / unit
        slope, compliance = closest.slope[chosen], closest.compliance[chosen]
        v = information.v[chosen]
        if information.closed_form:  # the two rank-one parts cancel
            bend, bend_scale = np.zeros_like(v), np.zeros(len(v))
        else:
            stiffness = (v * v * compliance).sum(axis=1)
            bend = np.where(self.moves, slope * v * compliance, 0.0)
            bend_scale = np.where(stiffness > 0, square / np.where(stiffness > 0, stiffness, 1), 0)
        return _State(
            time=time,
            gradient=np.where(self.moves, square[:, None] * closest.gradient[chosen], 0.0),
            curvature=np.where(self.moves, square[:, None] * slope**2 * compliance, 0.0),
            bend=bend,
            bend_scale=bend_scale,
        )

    def _sum_over_edges(self, values: Array) -> Array:
        return np.bincount(self.place.ravel(), values.ravel(), minlength=self.count)

    def jacobian_times(self, state: _State, dw: Array) -> Array:
        return -np.asarray((state.gradient * dw[self.place]).sum(axis=1))

    def residual(self, state: _State, y: Array, l: Array, n: Array) -> Array:  # noqa: E741
        """Derivative of the Lagrangian by the free arms."""
        pull = self._sum_over_edges(y[:, None] * state.gradient)
        return np.asarray(self.above.T @ l + self.equal.T @ n - pull)

    def step(
        self,
        state: _State,
        w: Array,
        t: float,
        s: Array,
        r: Array,
        y: Array,
        l: Array,  # noqa: E741
        n: Array,
        target: float,
    ) -> tuple[Array, float, Array, Array, Array]:
        """Newton's direction for complementarity products equal to the target.

        Slacks and multipliers of inequalities are eliminated; what remains is one
        symmetric system in (free arms, t, equalities), with arms in units of themselves.
        """
        size, rows = self.count, len(self.equal)
        weight = w[self.level.free]
        stiff_edges, stiff_rows = y / s, l / r
        matrix = np.zeros((size + 1 + rows, size + 1 + rows))
        matrix[:size, :size] = self._hessian(state, y, stiff_edges)
        matrix[:size, :size] += self.above.T @ (stiff_rows[:, None] * self.above)
        to_t = self._sum_over_edges(stiff_edges[:, None] * state.gradient)
        matrix[:size, size] = matrix[size, :size] = to_t
        matrix[size, size] = stiff_edges.sum()
        matrix[:size, size + 1 :] = self.equal.T
        matrix[size + 1 :, :size] = self.equal
        pull_edges, pull_rows = target / s - y, target / r - l
        right = np.zeros(size + 1 + rows)
        right[:size] = (
            self._sum_over_edges(pull_edges[:, None] * state.gradient)
            - self.above.T @ pull_rows
            - self.residual(state, y, l, n)
        )
        right[size] = pull_edges.sum() - (1.0 - y.sum())
        right[size + 1 :] = self.level.total - self.level.equal @ w
        scale = np.concatenate([weight, np.ones(1 + rows)])
        solved = scale * np.linalg.solve(scale[:, None] * matrix * scale, scale * right)
        dw, dt, dn = solved[:size], float(solved[size]), solved[size + 1 :]
        dy = pull_edges + stiff_edges * (self.jacobian_times(state, dw) - dt)
        dl = pull_rows + stiff_rows * (self.above @ dw)
        return dw, dt, dn, dy, dl

    def _hessian(self, state: _State, y: Array, stiff_edges: Array) -> Array:
        """Lagrangian's Hessian plus what eliminating the edges' slacks adds."""
        size, width = self.count, self.place.shape[1]
        steep = stiff_edges.copy()
        if not self.information.closed_form:
            steep += 2.0 * y / state.time
        total = np.zeros(size * size)
        chunk = max(1, CHUNK // max(1, width * width))
        for i in range(0, len(y), chunk):
            part = slice(i, i + chunk)
            g, u = state.gradient[part], state.bend[part]
            blocks = steep[part, None, None] * (g[:, :, None] * g[:, None, :])
            blocks -= (y * state.bend_scale)[part, None, None] * (u[:, :, None] * u[:, None, :])
            place = self.place[part]
            where = place[:, :, None] * size + place[:, None, :]
            total += np.bincount(where.ravel(), blocks.ravel(), minlength=size * size)
        matrix = total.reshape(size, size)
        matrix[np.diag_indices(size)] += self._sum_over_edges(y[:, None] * state.curvature)
        return matrix
