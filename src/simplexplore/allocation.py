"""The best way to spread samples, with a certificate.

The characteristic time (paper, Eq. 5) is T = min over w in Pi of max over edges of F_e(w),
F_e = 1 / D_e convex. It is solved by a primal-dual interior-point method for

    minimise t   subject to   F_e(w) <= t,   A w <= b,   E w = f,

with w >= 0 implied by F_e wherever it matters. Its allocation, made feasible to the last digit,
bounds T from above; its multipliers bound T from below (`_lower_certificate`). The distance
of the two is the certificate, whatever the solver did.

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
MAX_STEPS = 100

# Steps without progress after which rounding has the last word.
PATIENCE = 6

# Multiplicative steps before the first Newton step.
WARM_UP = 10

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
    w = _made_feasible(w, first, allowed.inside)
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


def _made_feasible(w: Array, level: _Level, inside: Array) -> Array:
    """Mend the last digits: meet equalities again, then lean inwards until rows hold."""
    w = w.copy()
    free = level.free
    equal = level.equal[:, free]
    weighted = equal * w[free]
    shift = np.linalg.solve(weighted @ equal.T, level.total - level.equal @ w)
    w[free] *= 1.0 + equal.T @ shift
    excess = level.above @ w - level.limit
    room = level.limit - level.above @ inside
    lean = max(0.0, float((excess / (excess + room)).max(initial=0.0, where=excess > 0)))
    return (1.0 - lean) * w + lean * inside


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
    """Solve one level by a primal-dual predictor-corrector method.

    What makes it fast is the step in w. Stationarity says w_a^2 P_a = C_a, where both the
    information C_a (of the multipliers on edges) and the price P_a (of those on rows) are
    linear in the multipliers: after a step in them, w = sqrt(C / P) is right where the
    linear step in w would be far off. Where C or P is too small to say, the linear step
    stands. Other families follow the same rule with C frozen at the last w.
    """
    newton = _Newton(information, level)
    free, above, equal = level.free, newton.above, newton.equal
    w = start.copy()
    unit = float(information.closest(w).value[level.edges].min())
    state = newton.at(w, unit)
    count = len(level.edges) + len(level.limit)
    y = np.full(len(level.edges), 1.0 / len(level.edges))
    for _ in range(WARM_UP):
        # Each step multiplies an edge's weight by its time and answers with the best w on
        # the simplex; rows are left to the method itself.
        y *= state.time
        y /= y.sum()
        asked = np.sqrt(w[free] ** 2 * newton.pull(state, y))
        asked += 1e-6 * asked.max()
        w[free] = asked * (start[free].sum() / asked.sum())
        state = newton.at(w, unit)
    y = 0.9 * y + 0.1 / len(y)
    t = 1.5 * float(state.time.max())
    s = t - state.time
    r = np.maximum(level.limit - level.above @ w, 1e-3)
    l = (y @ s) / len(s) / r  # noqa: E741
    n = np.linalg.lstsq(equal.T, newton.pull(state, y) - above.T @ l, rcond=None)[0]
    best: tuple[float, _Point] | None = None
    idle = 0
    for _ in range(MAX_STEPS):
        edges_off = state.time + s - t
        rows_off = level.above @ w + r - level.limit
        equal_off = level.equal @ w - level.total
        slope = (above.T @ l + equal.T @ n - newton.pull(state, y)) * w[free]
        gap = float(s @ y + r @ l)
        distance = max(
            gap / t,
            float(np.abs(edges_off).max()) / t,
            float(np.abs(slope).max()) / t,
            float(np.abs(rows_off).max(initial=0.0)),
            float(np.abs(equal_off).max()),
            abs(1.0 - float(y.sum())),
        )
        if best is None or distance < best[0]:
            best, idle = (distance, _Point(w, s, r, y, l, n, unit)), 0
        idle += 1
        if distance < TARGET_GAP or (gap < TARGET_GAP * t and idle > PATIENCE):
            break
        off = edges_off, rows_off, equal_off, slope, 1.0 - float(y.sum())
        newton.factor(state, w, s, r, y, l)
        zero = np.zeros(1)
        _, _, _, dy, dl, ds, dr = newton.direction(state, w, s, r, y, l, off, zero, zero)
        primal = min(_longest(s, ds, 1.0), _longest(r, dr, 1.0))
        dual = min(_longest(y, dy, 1.0), _longest(l, dl, 1.0))
        reached = float((s + primal * ds) @ (y + dual * dy) + (r + primal * dr) @ (l + dual * dl))
        mu = gap / count
        # Gaps far below the target only lose digits elsewhere.
        target = max(min(0.8, (reached / gap) ** 2) * mu, 0.3 * TARGET_GAP * t / count)
        dw, dt, dn, dy, dl, ds, dr = newton.direction(
            state,
            w,
            s,
            r,
            y,
            l,
            off,
            target - np.clip(ds * dy, -5 * mu, 5 * mu),
            target - np.clip(dr * dl, -5 * mu, 5 * mu),
        )
        primal = min(_longest(s, ds, 0.98), _longest(r, dr, 0.98), _longest(w[free], dw, 0.9))
        dual = min(_longest(y, dy, 0.98), _longest(l, dl, 0.98))
        s, r, t = s + primal * ds, r + primal * dr, t + primal * dt
        y, l, n = y + dual * dy, l + dual * dl, n + dual * dn  # noqa: E741
        linear = w[free] + primal * dw
        asked = w[free] ** 2 * newton.pull(state, y)
        price = above.T @ l + equal.T @ n
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = asked / (price * linear * linear)
            safe = (price > 1e-6 * price.max()) & (ratio > 0.04) & (ratio < 25.0)
            w = w.copy()
            w[free] = np.where(safe, np.sqrt(asked / price), linear)
        state = newton.at(w, unit)
    assert best is not None
    return best[1]


def _longest(x: Array, dx: Array, fraction: float) -> float:
    """Largest step in (0, 1] that keeps x + step dx >= (1 - fraction) x."""
    falling = dx < 0
    return float((-fraction * x[falling] / dx[falling]).min(initial=1.0))


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

    def pull(self, state: _State, y: Array) -> Array:
        """Information that the multipliers on edges ask for, per arm: C_a / w_a^2."""
        return self._sum_over_edges(y[:, None] * state.gradient)

    def factor(
        self,
        state: _State,
        w: Array,
        s: Array,
        r: Array,
        y: Array,
        l: Array,  # noqa: E741
    ) -> None:
        """Set up the system left when slacks and multipliers of inequalities are eliminated.

        Unknowns are the free arms (in units of themselves), t and the equalities.
        """
        size, rows = self.count, len(self.equal)
        weight = w[self.level.free]
        matrix = np.zeros((size + 1 + rows, size + 1 + rows))
        matrix[:size, :size] = self._hessian(state, y, y / s)
        matrix[:size, :size] += self.above.T @ ((l / r)[:, None] * self.above)
        matrix[:size, size] = matrix[size, :size] = self.pull(state, y / s)
        matrix[size, size] = (y / s).sum()
        matrix[:size, size + 1 :] = self.equal.T
        matrix[size + 1 :, :size] = self.equal
        self.scale = np.concatenate([weight, np.ones(1 + rows)])
        self.matrix = self.scale[:, None] * matrix * self.scale

    def direction(
        self,
        state: _State,
        w: Array,
        s: Array,
        r: Array,
        y: Array,
        l: Array,  # noqa: E741
        off: tuple[Array, Array, Array, Array, float],
        edge_target: Array,
        row_target: Array,
    ) -> tuple[Array, float, Array, Array, Array, Array, Array]:
        """Newton's direction towards products of slack and multiplier equal to the targets."""
        edges_off, rows_off, equal_off, slope, y_off = off
        size = self.count
        pull_edges = (edge_target + y * (edges_off - s)) / s
        pull_rows = (row_target + l * (rows_off - r)) / r
        right = np.concatenate(
            [
                self.pull(state, pull_edges) - self.above.T @ pull_rows,
                [pull_edges.sum() - y_off],
                -equal_off,
            ]
        )
        right[:size] -= slope / w[self.level.free]
        solved = self.scale * np.linalg.solve(self.matrix, self.scale * right)
        dw, dt, dn = solved[:size], float(solved[size]), solved[size + 1 :]
        change = -(state.gradient * dw[self.place]).sum(axis=1)  # of F_e
        change_rows = self.above @ dw
        return (
            dw,
            dt,
            dn,
            pull_edges + y / s * (change - dt),
            pull_rows + l / r * change_rows,
            dt - change - edges_off,
            -change_rows - rows_off,
        )

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
