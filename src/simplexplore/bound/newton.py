"""One convex program and Newton's equations for it.

    minimise t   subject to   F_e(w) <= t,   A w <= b,   E w = f,   w >= 0,

with F_e = 1 / D_e convex. Slacks and multipliers: s and y for edges, r and l for rows, w
itself and z for w >= 0, n for equalities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .allocation_set import AllocationSet
from .information import Information
from .newton_system import State, System, Weights

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Multiplicative steps before the first Newton step of the fast method.
WARM_UP = 10

# Compliances of one edge in the Hessian differ by no more: the digits that it loses, and keeps.
MOST_APART = 1e8


@dataclass(frozen=True)
class Program:
    """Which edges count, and where the allocation may be."""

    edges: Indices
    allowed: AllocationSet


@dataclass(frozen=True)
class Point:
    """An allocation over all arms, with slacks and multipliers.

    Times, and with them t, s and all multipliers, are in units of 1 / unit.
    """

    w: Array
    t: float
    s: Array
    r: Array
    y: Array
    l: Array  # noqa: E741 - the letter of the formulas
    z: Array  # of the free arms
    n: Array
    unit: float

    def moved(self, step: Point, free: Indices, primal: float, dual: float) -> Point:
        w = self.w.copy()
        w[free] += primal * step.w
        return Point(
            w=w,
            t=self.t + primal * step.t,
            s=self.s + primal * step.s,
            r=self.r + primal * step.r,
            y=self.y + dual * step.y,
            l=self.l + dual * step.l,
            z=self.z + dual * step.z,
            n=self.n + dual * step.n,
            unit=self.unit,
        )


def time(information: Information, program: Program, w: Array) -> float:
    """Largest time among the edges of a program."""
    return 1.0 / float(information.values(w, program.edges).min())


@dataclass(frozen=True)
class Residuals:
    """By how much each optimality condition is missed."""

    edges: Array
    rows: Array
    equal: Array
    slope: Array  # of the Lagrangian, times w
    weights: float  # 1 - sum y
    products: tuple[Array, Array, Array]

    @cached_property
    def gap(self) -> float:
        return float(sum(product.sum() for product in self.products))

    def distance(self, point: Point) -> float:
        return max(
            self.gap / point.t,
            float(np.abs(self.edges).max()) / point.t,
            float(np.abs(self.slope).max()) / point.t,
            float(np.abs(self.rows).max(initial=0.0)),
            float(np.abs(self.equal).max(initial=0.0)),
            abs(self.weights),
        )

    def norm(self, target: float) -> float:
        """Distance of a feasible point from the one on the central path."""
        parts = (self.slope, np.array(self.weights), *(p - target for p in self.products))
        return float(np.sqrt(sum(float(np.vdot(part, part)) for part in parts)))


def _levelled(v: Array, compliance: Array) -> Array:
    """Compliances of which none is beyond comparison with the others of its edge.

    Means many orders of magnitude apart make one arm take almost all of the change in an
    alternative, and the two parts of the Hessian that this arm appears in cancel. A little less
    compliance changes their difference as little, and leaves it its digits.
    """
    parts = v * v * compliance
    rows, largest = np.arange(len(v)), parts.argmax(axis=1)
    most = parts[rows, largest].copy()
    parts[rows, largest] = 0.0
    limit = MOST_APART * parts.sum(axis=1)
    over = np.flatnonzero((limit > 0) & (most > limit))
    if len(over):
        compliance = compliance.copy()
        compliance[over, largest[over]] = limit[over] / v[over, largest[over]] ** 2
    return compliance


class Newton:
    """Newton's equations of one program."""

    def __init__(self, information: Information, program: Program, *, whole: bool = False) -> None:
        self.information = information
        self.program = program
        self.allowed, self.free = program.allowed, program.allowed.free
        self.size = len(self.free)
        place = np.full(information.size, -1)
        place[self.free] = np.arange(self.size)
        place = place[information.index[program.edges]]
        self.moves = information.used[program.edges] & (place >= 0)
        self.equal = self.allowed.equal[:, self.free]
        above = self.allowed.above[:, self.free]
        place = np.where(self.moves, place, 0)
        self.system = System(place, self.moves, above, self.equal, whole=whole)
        self.above, self.all_above = self.system.above, self.allowed.rows
        self.count = len(program.edges) + len(self.allowed.limit) + self.size

    # ------------------------------------------------------------------ starting points

    def warm_start(self) -> tuple[Point, State]:
        """Half way from deep inside to what multiplicative steps on the simplex find.

        Each step multiplies an edge's weight by its time and answers with the best w; rows
        are left to the method itself.
        """
        inside, free = self.allowed.deep, self.free
        unit = 1.0 / time(self.information, self.program, inside)
        rough = self.information.rough
        newton = self if rough is self.information else Newton(rough, self.program)
        w, y = newton._weighed(unit)
        w = 0.5 * (w + inside)
        state = self.at(w, unit)
        y = 0.9 * y + 0.1 / len(y)
        t = 1.5 * float(state.time.max())
        s = t - state.time
        r = np.maximum(self.allowed.room(w), 1e-3 * inside[free].sum())
        l = float(y @ s) / len(s) / r  # noqa: E741
        pull = self.pull(state, y)
        z = np.full(self.size, 0.1 * float(pull @ w[free]))
        n = np.linalg.lstsq(self.equal.T, pull + z - self.above.transposed(l), rcond=None)[0]
        return Point(w, t, s, r, y, l, z, np.asarray(n, dtype=float), unit), state

    def _weighed(self, unit: float) -> tuple[Array, Array]:
        """An allocation, and the weights of edges, after some multiplicative steps."""
        free, inside = self.free, self.allowed.deep
        w, y = inside.copy(), np.full(len(self.program.edges), 1.0 / len(self.program.edges))
        for _ in range(WARM_UP):
            state = self.at(w, unit)
            y *= state.time
            y /= y.sum()
            asked = np.sqrt(w[free] ** 2 * self.pull(state, y))
            asked += 1e-6 * asked.max()
            w[free] = asked * (inside[free].sum() / asked.sum())
        return w, y

    def cold_start(self, inside: Array, far: float) -> tuple[Point, State]:
        """Primal variables only; the caller sets the multipliers."""
        unit = 1.0 / time(self.information, self.program, inside)
        state = self.at(inside, unit)
        t = (1.0 + far) * float(state.time.max())
        s, r = t - state.time, self.allowed.room(inside)
        z = np.zeros(self.size)
        point = Point(inside, t, s, r, 0 * s, 0 * r, z, np.zeros(len(self.equal)), unit)
        return point, state

    # ------------------------------------------------------------------ evaluation

    def at(self, w: Array, unit: float) -> State:
        """Times and their derivatives at an allocation."""
        information, chosen = self.information, self.program.edges
        closest = information.closest(w)
        times = unit / closest.value[chosen]
        square = times * times / unit
        slope, compliance = closest.slope[chosen], closest.compliance[chosen]
        v = information.v[chosen]
        if information.closed_form:  # the two rank-one parts cancel
            bend, bend_scale, twist = np.zeros_like(v), np.zeros(len(v)), np.zeros(len(v))
        else:
            compliance = _levelled(v, compliance)
            stiffness = (v * v * compliance).sum(axis=1)
            bend = np.where(self.moves, slope * v * compliance, 0.0)
            bend_scale = np.divide(
                square, stiffness, out=np.zeros_like(v[:, 0]), where=stiffness != 0
            )
            twist = 2.0 / times
        return State(
            time=times,
            gradient=np.where(self.moves, square[:, None] * closest.gradient[chosen], 0.0),
            curvature=np.where(self.moves, square[:, None] * slope**2 * compliance, 0.0),
            twist=twist,
            bend=bend,
            bend_scale=bend_scale,
        )

    def feasible(self, point: Point) -> tuple[Point, State]:
        """The point with slacks recomputed from its allocation."""
        state = self.at(point.w, point.unit)
        s, r = point.t - state.time, self.allowed.room(point.w)
        return replace(point, s=s, r=r), state

    def pull(self, state: State, y: Array) -> Array:
        """Information that the multipliers on edges ask for, per arm: C_a / w_a^2."""
        return self.system.pull(state, y)

    def gap(self, point: Point) -> float:
        """Sum of all products of slack and multiplier."""
        arms = point.w[self.free] @ point.z
        return float(point.s @ point.y + point.r @ point.l + arms)

    def residuals(self, point: Point, state: State) -> Residuals:
        allowed, w = self.allowed, point.w[self.free]
        price = self.above.transposed(point.l) + self.equal.T @ point.n
        return Residuals(
            edges=state.time + point.s - point.t,
            rows=self.all_above @ point.w + point.r - allowed.limit,
            equal=allowed.equal @ point.w - allowed.total,
            slope=(price - point.z - self.pull(state, point.y)) * w,
            weights=1.0 - float(point.y.sum()),
            products=(point.s * point.y, point.r * point.l, w * point.z),
        )

    def log_room(self, point: Point) -> float:
        """Logarithmic barrier of all slacks."""
        room = np.concatenate([point.s, point.r, point.w[self.free]])
        return float(np.log(room).sum())

    def log_slope(self, point: Point, step: Point) -> float:
        """Its derivative along a step."""
        w = point.w[self.free]
        parts = (step.s / point.s).sum() + (step.r / point.r).sum() + (step.w / w).sum()
        return float(parts)

    # ------------------------------------------------------------------ steps

    def longest(self, point: Point, step: Point) -> tuple[float, float]:
        """Steps after which some slack, or some multiplier, would vanish (at most 1/0.98)."""
        w = point.w[self.free]
        primal = ((point.s, step.s), (point.r, step.r), (w, step.w))
        dual = ((point.y, step.y), (point.l, step.l), (point.z, step.z))
        return min(_until_zero(*p) for p in primal), min(_until_zero(*p) for p in dual)

    def factor(self, point: Point, state: State) -> None:
        """Set up the equations at a point."""
        w = point.w[self.free]
        weights = Weights(
            edges=point.y, stiff=point.y / point.s, rows=point.l / point.r, arms=point.z / w
        )
        self.system.factor(w, state, weights)

    def direction(
        self,
        point: Point,
        state: State,
        off: Residuals,
        target: float,
        correction: tuple[Point, float] | None = None,
    ) -> Point:
        """Newton's direction towards products of slack and multiplier equal to the target.

        A correction is an earlier direction whose own second-order products are made up
        for, each as far as it can be trusted. The result's `w` has the free arms only.
        """
        w = point.w[self.free]
        edges: Array | float
        rows: Array | float
        arms: Array | float
        edges = rows = arms = target
        if correction is not None:
            d, trust = correction
            edges = target - np.clip(d.s * d.y, -trust, trust)
            rows = target - np.clip(d.r * d.l, -trust, trust)
            arms = target - np.clip(d.w * d.z, -trust, trust)
        pull_edges = (edges + point.y * (off.edges - point.s)) / point.s
        pull_rows = (rows + point.l * (off.rows - point.r)) / point.r
        pull_arms = arms / w - point.z
        arms_alone = pull_arms - self.above.transposed(pull_rows) - off.slope / w
        step = self.system.solve(pull_edges, arms_alone, -off.weights, -off.equal)
        return Point(
            w=step.arms,
            t=step.time,
            s=step.time - step.times - off.edges,
            r=-step.use - off.rows,
            y=step.edges,
            l=pull_rows + step.rows,
            z=pull_arms - point.z / w * step.arms,
            n=step.equal,
            unit=point.unit,
        )


def _until_zero(x: Array, dx: Array) -> float:
    falling = dx < 0
    return float((-x[falling] / dx[falling]).min(initial=1.0 / 0.98))
