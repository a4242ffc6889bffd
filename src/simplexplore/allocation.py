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

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .information import Information

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Certified relative gap to aim at, well inside the promised 1e-8.
TARGET_GAP = 1e-10
GOOD_GAP = 1e-9
MAX_STEPS = 100
VERBOSE = False

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
    point = _solve(information, first, allowed.inside)
    lower = _lower_certificate(information, first, point)
    w, unique = _leximin(information, first, point)
    time = _time(information, first, w)
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
        return cls(
            edges=np.arange(len(information.gaps)),
            free=np.flatnonzero(allowed.arms),
            above=allowed.above,
            limit=allowed.limit,
            equal=allowed.equal,
            total=allowed.total,
        )

    def following(self, information: Information, point: _Point) -> _Level:
        """The program that is left when what this one determines is held fast.

        Edges with a positive multiplier have the same value, hence the same weights on
        their arms, in every optimal allocation (D_e is strictly concave across rays);
        rows with a positive multiplier bind in all of them, and so does w >= 0. At the solution each product
        of slack and multiplier is tiny, so the larger factor tells which one is positive.
        """
        binding = self.edges[point.y > point.s]
        pinned = information.index[binding][information.used[binding]]
        unused = self.free[point.z > point.w[self.free]]
        free = np.setdiff1d(self.free, np.concatenate([pinned, unused]))
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
    """An allocation with slacks s (edges), r (rows) and multipliers y, l, n, z.

    y belongs to edges, l to rows, n to equalities and z to w >= 0 on the free arms.

    Times, and with them slacks and multipliers, are in units of 1 / unit.
    """

    w: Array
    s: Array
    r: Array
    y: Array
    l: Array  # noqa: E741 - the letter of the formulas
    n: Array
    z: Array
    unit: float


def _solve(information: Information, level: _Level, inside: Array) -> _Point:
    """One level: the fast method, then the sure one where a gap is left."""
    point = _interior_point(information, level, inside)
    point = replace(point, w=_made_feasible(point.w, level, inside))
    gap = _gap(information, level, point)
    thin = (level.limit - level.above @ inside).min(initial=1.0) <= 0 or inside[
        level.free
    ].min() <= 0
    if gap <= GOOD_GAP or thin:
        return point
    far = 0.01 if gap < 0.1 else 1.0
    other = _refine(information, level, (1.0 - far) * point.w + far * inside, far)
    return min(point, other, key=lambda p: _gap(information, level, p))


def _leximin(information: Information, level: _Level, point: _Point) -> tuple[Array, bool]:
    """The canonical optimal allocation, and whether there is no other."""
    unique = True
    first = level
    worst = _time(information, first, point.w)
    while True:
        following = level.following(information, point)
        settled = len(following.free) == len(level.free)
        if settled or len(following.free) <= len(following.equal):
            return point.w, unique
        unique = False
        if len(following.edges) == 0:
            return point.w, unique
        better = _solve(information, following, point.w)
        # A badly conditioned level must not cost samples.
        if _time(information, first, better.w) > worst * (1 + TARGET_GAP):
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
    broken = excess > 0
    lean = float((excess[broken] / (excess[broken] + room[broken])).max(initial=0.0))
    return (1.0 - lean) * w + lean * inside


def _time(information: Information, level: _Level, w: Array) -> float:
    """Largest time among the edges of a level."""
    return 1.0 / float(information.closest(w).value[level.edges].min())


def _lower_certificate(information: Information, level: _Level, point: _Point) -> float:
    """A lower bound on the least time of a level from any multipliers, by weak duality.

    For any weights p on edges and any alternative lam^e across each edge,
    1/T <= max over w in Pi of sum_a w_a G_a with G_a = sum_e p_e d(mu_a, lam^e_a), and that
    linear program is at most l.b + n.f + n_0 for every l >= 0, every n, and
    n_0 = max over arms of (G - A'l - E'n). Nothing here relies on convergence. Arms that
    a level holds fast add what they add, and the rest share the mass that is left.
    """
    closest = information.closest(point.w)
    value = closest.value[level.edges]
    weight = point.unit * point.y / (value * value)
    scale = float(weight.sum())
    gain = np.bincount(
        information.index[level.edges].ravel(),
        ((weight / scale)[:, None] * closest.gradient[level.edges]).ravel(),
        minlength=information.size,
    )
    price = (level.above.T @ point.l + level.equal.T @ point.n) / scale
    free = level.free
    fixed = point.w.copy()
    fixed[free] = 0.0
    best = point.w[free].sum() * (gain - price)[free].max() + (gain - price) @ fixed
    best += (level.limit @ point.l + level.total @ point.n) / scale
    return 1.0 / float(best) if best > 0 else 0.0


def _gap(information: Information, level: _Level, point: _Point) -> float:
    if not point.w[level.free].min() > 0:  # a solver gone astray; NaN is caught as well
        return np.inf
    lower = _lower_certificate(information, level, point)
    return _time(information, level, point.w) / lower - 1.0 if lower > 0 else np.inf


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
    mu = float(y @ s) / len(s)
    # Multipliers of w >= 0, for arms that edges do not keep off zero by themselves: those
    # that no edge moves, and all arms if means are bounded (an alternative can then only
    # move so far, and an arm may be worth no sample at all).
    bounded = ~(information.covered()[free] & information.closed_form)
    level_price = float(newton.pull(state, y) @ w[free])
    l, z = mu / r, np.where(bounded, 0.1 * level_price, 0.0)  # noqa: E741
    n = np.linalg.lstsq(equal.T, newton.pull(state, y) + z - above.T @ l, rcond=None)[0]
    count = len(s) + len(r) + int(bounded.sum())
    best: tuple[float, _Point] | None = None
    idle = 0
    blocked = False
    for _ in range(MAX_STEPS):
        x = w[free]
        iterate = _Iterate.of(newton, state, w, t, s, r, y, l, z, n)
        gap = float(s @ y + r @ l + x @ z)
        distance = max(
            gap / t,
            float(np.abs(iterate.edges_off).max()) / t,
            float(np.abs(iterate.slope * x).max()) / t,
            float(np.abs(iterate.rows_off).max(initial=0.0)),
            float(np.abs(iterate.equal_off).max()),
            abs(1.0 - float(y.sum())),
        )
        if best is None or distance < best[0]:
            best, idle = (distance, _Point(w, s, r, y, l, n, z, unit)), 0
        idle += 1
        if distance < TARGET_GAP or (gap < TARGET_GAP * t and idle > PATIENCE):
            break
        zero = np.zeros(1)
        try:
            newton.factor(state, iterate)
            step = newton.direction(state, iterate, zero, zero, zero)
        except np.linalg.LinAlgError:  # singular to rounding: the best point so far stands
            break
        primal = min(1.0, _longest(s, step.s), _longest(r, step.r), _longest(x, step.w))
        dual = min(1.0, _longest(y, step.y), _longest(l, step.l), _longest(z, step.z))
        reached = float(
            (s + primal * step.s) @ (y + dual * step.y)
            + (r + primal * step.r) @ (l + dual * step.l)
            + (x + primal * step.w) @ (z + dual * step.z)
        )
        mu = gap / count
        # After a blocked step only centre; gaps far below the target lose digits elsewhere.
        target = mu if blocked else min(0.8, (reached / gap) ** 2) * mu
        target = max(target, 0.3 * TARGET_GAP * t / count)
        trust = 0.0 if blocked else 5.0 * mu
        step = newton.direction(
            state,
            iterate,
            target - np.clip(step.s * step.y, -trust, trust),
            target - np.clip(step.r * step.l, -trust, trust),
            bounded * (target - np.clip(step.w * step.z, -trust, trust)),
        )
        primal = 0.98 * min(_longest(s, step.s), _longest(r, step.r), _longest(x, step.w))
        if step.t < 0:
            primal = min(primal, -0.8 * t / step.t)
        dual = 0.98 * min(_longest(y, step.y), _longest(l, step.l), _longest(z, step.z))
        s, r, t = s + primal * step.s, r + primal * step.r, t + primal * step.t
        y, l, z = y + dual * step.y, l + dual * step.l, z + dual * step.z  # noqa: E741
        n = n + dual * step.n
        asked = x * x * newton.pull(state, y)
        w = w.copy()
        w[free] = x + primal * step.w
        blocked = min(primal, dual) < 0.1
        if not blocked:
            price = above.T @ l + equal.T @ n
            w[free] = _leap(asked, price, target * bounded, w[free])
        state = newton.at(w, unit)
    assert best is not None
    return best[1]


def _refine(information: Information, level: _Level, start: Array, far: float) -> _Point:
    """Solve one level from a strictly feasible allocation, by feasible steps only.

    `far` guesses the relative distance from the solution.
    The slow, sure companion of `_interior_point`, for what that one leaves undecided.
    Newton's method finds the central path; then primal and dual follow it together, each
    step halved until the equations are closer to being met. Where the path is lost, the
    search for it starts again.
    """
    newton = _Newton(information, level)
    free = level.free
    w, unit = start, float(information.closest(start).value[level.edges].min())
    state = newton.at(w, unit)
    t = (1.0 + far) * float(state.time.max())
    n = np.zeros(len(level.equal))
    count = len(level.edges) + len(level.limit) + len(free)
    mu = far * t / count
    best: tuple[float, _Point] | None = None
    lost = True
    for _ in range(2 * MAX_STEPS):
        x, s, r = w[free], t - state.time, level.limit - level.above @ w
        if lost:
            y, l, z = mu / s, mu / r, mu / x  # noqa: E741
        at = _Iterate.of(newton, state, w, t, s, r, y, l, z, n)
        gap = float(s @ y + r @ l + x @ z)
        distance = max(gap, float(np.abs(at.slope * x).max()), abs(1.0 - float(y.sum()))) / t
        if not lost and (best is None or distance < best[0]):
            best = distance, _Point(w, s, r, y, l, n, z, unit)
            if distance < TARGET_GAP:
                break
        goal = np.full(1, mu if lost else reduction * gap / count)
        try:
            newton.factor(state, at)
            step = newton.direction(state, at, goal, goal, goal)
        except np.linalg.LinAlgError:
            break
        length = min(1.0, 0.99 * min(_longest(s, step.s), _longest(r, step.r), _longest(x, step.w)))
        if lost:
            decrement = float((step.s / s).sum() + (step.r / r).sum() + (step.w / x).sum())
            decrement -= step.t / mu
        else:
            length = min(
                length, 0.99 * min(_longest(y, step.y), _longest(l, step.l), _longest(z, step.z))
            )
            before = at.norm(float(goal[0]))
        while length > 1e-10:
            trial = w.copy()
            trial[free] += length * step.w
            there = newton.at(trial, unit)
            room = t + length * step.t - there.time
            rest = level.limit - level.above @ trial
            if room.min() > 0:
                if lost:
                    gain = np.log(room / s).sum() + np.log(rest / r).sum()
                    gain += np.log(trial[free] / x).sum() - length * step.t / mu
                    if gain >= 0.1 * length * decrement:
                        break
                else:
                    after = _Iterate.of(
                        newton,
                        there,
                        trial,
                        t + length * step.t,
                        room,
                        rest,
                        y + length * step.y,
                        l + length * step.l,
                        z + length * step.z,
                        n + length * step.n,
                    ).norm(float(goal[0]))
                    if after <= (1.0 - 0.01 * length) * before:
                        break
            length *= 0.5
        else:
            break
        w, t, state, n = trial, t + length * step.t, there, n + length * step.n
        if lost:
            lost = decrement > 0.3
            reduction = 0.1
        else:
            y, l, z = y + length * step.y, l + length * step.l, z + length * step.z  # noqa: E741
            reduction = 0.3 if length < 0.5 else 0.1 if length < 0.9 else 0.02
            lost = length < 0.1
            mu = float((t - state.time) @ y) / len(y)
        if VERBOSE:
            print(
                "  refine",
                _,
                lost,
                "gap %.1e dist %.1e len %.2g t %.6g" % (gap / t, distance, length, t),
            )
    if best is None:
        at = _Iterate.of(newton, state, w, t, s, r, y, l, z, n)
        return _Point(w, s, r, y, l, n, z, unit)
    return best[1]


def _leap(asked: Array, price: Array, target: Array, linear: Array) -> Array:
    """The w that solves asked / w^2 + target / w = price, where that beats a linear step.

    Close to stationarity the linear step converges quadratically; far from it, or where a
    price is mere rounding, the formula is not to be trusted either.
    """
    w = linear.copy()
    sound = price > 1e-6 * price.max()
    root = target[sound] + np.sqrt(target[sound] ** 2 + 4.0 * price[sound] * asked[sound])
    solved = linear.copy()
    solved[sound] = root / (2.0 * price[sound])
    change = solved / linear
    leap = (np.abs(change - 1.0) > 0.01) & (change > 0.2) & (change < 5.0)
    w[leap] = solved[leap]
    return w


def _longest(x: Array, dx: Array) -> float:
    """Largest step in (0, 1/0.98] that keeps x + step dx >= 0."""
    falling = dx < 0
    return float((-x[falling] / dx[falling]).min(initial=1.0 / 0.98))


@dataclass(frozen=True)
class _Iterate:
    """Where the method stands: variables, and by how much each equation is off."""

    w: Array  # free arms only
    s: Array
    r: Array
    y: Array
    l: Array  # noqa: E741
    z: Array
    edges_off: Array
    rows_off: Array
    equal_off: Array
    slope: Array

    @classmethod
    def of(
        cls,
        newton: _Newton,
        state: _State,
        w: Array,
        t: float,
        s: Array,
        r: Array,
        y: Array,
        l: Array,  # noqa: E741
        z: Array,
        n: Array,
    ) -> _Iterate:
        level = newton.level
        return cls(
            w=w[level.free],
            s=s,
            r=r,
            y=y,
            l=l,
            z=z,
            edges_off=state.time + s - t,
            rows_off=level.above @ w + r - level.limit,
            equal_off=level.equal @ w - level.total,
            slope=newton.above.T @ l + newton.equal.T @ n - z - newton.pull(state, y),
        )

    def norm(self, target: float) -> float:
        """Distance from the point of the central path with the given products."""
        parts = (
            self.slope * self.w,
            1.0 - self.y.sum(),
            self.s * self.y - target,
            self.r * self.l - target,
            self.w * self.z - target,
        )
        return float(np.sqrt(sum(float(np.vdot(part, part)) for part in parts)))


@dataclass(frozen=True)
class _Step:
    w: Array
    t: float
    n: Array
    y: Array
    l: Array  # noqa: E741
    z: Array
    s: Array
    r: Array


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

    def factor(self, state: _State, at: _Iterate) -> None:
        """Set up the system left when slacks and multipliers of inequalities are eliminated.

        Unknowns are the free arms (in units of themselves), t and the equalities.
        """
        size, rows = self.count, len(self.equal)
        stiff = at.y / at.s
        matrix = np.zeros((size + 1 + rows, size + 1 + rows))
        matrix[:size, :size] = self._hessian(state, at.y, stiff)
        matrix[:size, :size] += self.above.T @ ((at.l / at.r)[:, None] * self.above)
        matrix[np.arange(size), np.arange(size)] += at.z / at.w
        matrix[:size, size] = matrix[size, :size] = self.pull(state, stiff)
        matrix[size, size] = stiff.sum()
        matrix[:size, size + 1 :] = self.equal.T
        matrix[size + 1 :, :size] = self.equal
        self.scale = np.concatenate([at.w, np.ones(1 + rows)])
        self.matrix = self.scale[:, None] * matrix * self.scale

    def direction(
        self, state: _State, at: _Iterate, edges: Array, rows: Array, arms: Array
    ) -> _Step:
        """Newton's direction towards the given products of slack and multiplier."""
        size = self.count
        pull_edges = (edges + at.y * (at.edges_off - at.s)) / at.s
        pull_rows = (rows + at.l * (at.rows_off - at.r)) / at.r
        pull_arms = arms / at.w - at.z
        right = np.concatenate(
            [
                self.pull(state, pull_edges) - self.above.T @ pull_rows + pull_arms - at.slope,
                [pull_edges.sum() + at.y.sum() - 1.0],
                -at.equal_off,
            ]
        )
        solved = self.scale * np.linalg.solve(self.matrix, self.scale * right)
        dw, dt = solved[:size], float(solved[size])
        change = -(state.gradient * dw[self.place]).sum(axis=1)  # of F_e
        change_rows = self.above @ dw
        return _Step(
            w=dw,
            t=dt,
            n=solved[size + 1 :],
            y=pull_edges + at.y / at.s * (change - dt),
            l=pull_rows + at.l / at.r * change_rows,
            z=pull_arms - at.z / at.w * dw,
            s=dt - change - at.edges_off,
            r=-change_rows - at.rows_off,
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
