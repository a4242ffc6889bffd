"""Where samples may go: the one description that the bound and compiled runs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.problem import EXPLORATION

from .newton_system import Rows

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Equalities that differ by less than this on the free arms repeat each other.
RANK_TOLERANCE = 1e-9

# Numbers in rows of limits on single arms: 240 MB.
MAX_NUMBERS = 30_000_000


@dataclass(frozen=True)
class AllocationSet:
    """Allocations w >= 0 with A_ub w <= b_ub, A_eq w = b_eq and lower <= w <= upper.

    Attributes
    ----------
    A_ub, b_ub, A_eq, b_eq : arrays
        Rows range over all arms. The equalities are independent on `arms` that have room between
        lower and upper, and fix the total of these.
    lower, upper : (K,) arrays
        Limits on single arms; inf where there is none.
    arms : (K,) array of bool
        Arms that may be positive.
    useful_arms : (K,) array of bool
        Arms that some feasible policy uses. There may be room for others too, but no sampler
        needs to try them.
    costs : (K,) array
        What one sample of each arm costs.
    max_slack : (K,) array
        An allocation at which all inequalities hold strictly: rows, and w >= 0 of `arms`.
    polytope : Polytope or None
        The same set as policies; None for all allocations.
    """

    A_ub: Array
    b_ub: Array
    A_eq: Array
    b_eq: Array
    lower: Array
    upper: Array
    arms: Mask
    useful_arms: Mask
    costs: Array
    max_slack: Array
    _interior: Callable[[], Array] = field(compare=False, repr=False)
    polytope: Polytope | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, polytope: Polytope, scenario: str) -> AllocationSet:
        """The set of a scenario: all, the feasible policies, or what limits of its own leave."""
        if scenario == EXPLORATION:
            limits = Polytope.of_exploration(polytope.problem)
            own = replace(cls.feasible(limits), useful_arms=_useful_arms(polytope))
            if limits.dimension == 0 and limits.form.start is not None:  # exact, however small
                policy = limits.form.start.policy
                own = replace(own, _interior=lambda: policy, max_slack=policy)
            return own
        return cls.feasible(polytope) if scenario == "anytime" else cls.simplex(polytope)

    @classmethod
    def simplex(cls, polytope: Polytope) -> AllocationSet:
        """All allocations."""
        size, useful_arms = polytope.size, _useful_arms(polytope)
        arms = np.arange(size) != polytope.known_arm
        return cls(
            A_ub=np.zeros((0, size)),
            b_ub=np.zeros(0),
            A_eq=np.ones((1, size)),
            b_eq=np.ones(1),
            lower=np.zeros(size),
            upper=np.full(size, np.inf),
            arms=arms,
            useful_arms=useful_arms,
            costs=polytope.problem.costs,
            max_slack=arms / arms.sum(),
            _interior=lambda: useful_arms / useful_arms.sum(),
        )

    @classmethod
    def feasible(cls, polytope: Polytope) -> AllocationSet:
        """Allocations that are feasible policies."""
        useful_arms = _useful_arms(polytope)
        return cls(
            **polytope.linear_set._asdict(),
            arms=useful_arms,
            useful_arms=useful_arms,
            costs=polytope.problem.costs,
            max_slack=polytope.max_slack_policy(),
            _interior=lambda: polytope.interior_allocation,
            polytope=polytope,
        )

    @cached_property
    def interior_allocation(self) -> Array:
        """The allocation that gives each arm in play the same part of what it could get.

        Runs begin with it; bounds do without.
        """
        return self._interior()

    @cached_property
    def free(self) -> Indices:
        """Numbers of the arms that may be positive."""
        return np.flatnonzero(self.arms)

    @cached_property
    def _capped(self) -> Indices:
        return np.flatnonzero((self.lower < self.upper) & (self.upper < np.inf) & self.arms)

    @cached_property
    def _floored(self) -> Indices:
        return np.flatnonzero((self.lower < self.upper) & (self.lower > 0) & self.arms)

    @cached_property
    def rows(self) -> Rows:
        """`A_ub`, then upper and lower limits of arms that may move."""
        arm = np.concatenate([self._capped, self._floored])
        return Rows(self.A_ub, arm, np.repeat([1.0, -1.0], [len(self._capped), len(self._floored)]))

    @cached_property
    def limits(self) -> Array:
        """The right-hand sides of `rows`."""
        return np.concatenate([self.b_ub, self.upper[self._capped], -self.lower[self._floored]])

    @cached_property
    def start(self) -> Array:
        """Multipliers of all rows, A_ub then A_eq, that give every arm in play the price 1."""
        seen = self.A_eq[:, self.arms & self.useful_arms & (self.lower < self.upper)].T
        equal = np.linalg.lstsq(seen, np.ones(len(seen)), rcond=None)[0]
        return np.concatenate([np.zeros(len(self.b_ub)), equal])

    @cached_property
    def pulls_per_use(self) -> Array:
        """Pulls that limits take to pay for one of each arm, itself included.

        Of the rows and caps the one that asks most, each by itself: one over the largest share that
        it would leave the arm. Equalities and floors do not count.
        """
        moves = self.A_ub - self.b_ub[:, None]
        saved = -moves[:, self.useful_arms].min(axis=1, initial=0.0)
        paid = saved > 0
        others = np.maximum(moves[paid], 0.0) / saved[paid, None]
        capped = np.where(self.useful_arms, self.upper, 1.0)
        pulls: Array = np.maximum(1.0 + others.max(axis=0, initial=0.0), 1.0 / capped)
        return pulls

    @property
    def is_simplex(self) -> bool:
        """Whether nothing but the total restricts all arms that get samples."""
        unlimited = not self.lower.any() and bool(np.isinf(self.upper).all())
        free = self.polytope is None or bool(self.arms.all())
        return unlimited and len(self.b_ub) == 0 and len(self.b_eq) == 1 and free

    def is_same_as(self, other: AllocationSet) -> bool:
        """Whether another one is written in the same numbers."""
        arrays = [f.name for f in fields(self) if f.compare]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)

    @property
    def width(self) -> float:
        """How far `max_slack` keeps from every inequality."""
        slack = self.max_slack
        return float(min(self.room(slack).min(initial=1.0), slack[self.arms].min()))

    def with_fixed(self) -> AllocationSet:
        """The same set, its fixed arms written as equalities."""
        fixed = np.flatnonzero((self.lower == self.upper) & self.arms)
        if not len(fixed):
            return self
        floor, cap = self.lower.copy(), self.upper.copy()
        floor[fixed], cap[fixed] = 0.0, np.inf
        return replace(
            self,
            A_eq=np.vstack([self.A_eq, np.arange(len(floor)) == fixed[:, None]]),
            b_eq=np.concatenate([self.b_eq, self.lower[fixed]]),
            lower=floor,
            upper=cap,
        )

    def as_rows(self) -> AllocationSet:
        """The same set, its limits on single arms written as rows."""
        own, size = self.with_fixed(), len(self.lower)
        if size * len(own.rows.arm) > MAX_NUMBERS:
            raise TooLargeError(
                f"{size:,} arms have {len(own.rows.arm):,} limits of their own, too many beside "
                "costs or epsilon > 0; leave out one or the other, or merge arms."
            )
        unit = np.equal(np.arange(size), own.rows.arm[:, None]) * own.rows.sign[:, None]
        return replace(
            own,
            A_ub=np.vstack([own.A_ub, unit]),
            b_ub=own.limits,
            lower=np.zeros(size),
            upper=np.full(size, np.inf),
        )

    def in_spend(self) -> AllocationSet:
        """The same set, its fixed arms written as equalities, in shares of what is spent.

        Spent shares are u_a = c_a w_a / (c . w). As w sums to one, a row A w <= b says
        (A - b 1') w <= 0, which holds for all multiples of w, so for u / c as well. Where all
        cost the same nothing changes, and the simplex stays the simplex. Limits on single arms
        become rows of all.
        """
        if np.ptp(self.costs) == 0:
            return self.with_fixed()
        slack, interior = self._spent(self.max_slack), lambda: self._spent(self.interior_allocation)
        if self.is_simplex:
            return replace(self, max_slack=slack, _interior=interior)
        own = self.as_rows()
        above = own._homogeneous(own.A_ub, own.b_ub)
        equal = independent(own._homogeneous(own.A_eq, own.b_eq), own.arms)
        equal = np.vstack([np.ones(len(self.costs)), equal])
        return replace(
            own,
            A_ub=above,
            b_ub=np.zeros(len(above)),
            A_eq=equal,
            b_eq=np.r_[1.0, np.zeros(len(equal) - 1)],
            max_slack=slack,
            _interior=interior,
        )

    def _homogeneous(self, rows: Array, bound: Array) -> Array:
        """Rows that say the same of what is spent, scaled to largest entry 1."""
        rows = (rows - bound[:, None]) / self.costs
        largest = np.abs(rows[:, self.arms]).max(axis=1, initial=0.0)
        return np.asarray(rows / np.where(largest > 0, largest, 1.0)[:, None])

    def _spent(self, w: Array) -> Array:
        return np.asarray(self.costs * w / (self.costs @ w))

    def room(self, w: Array) -> Array:
        """What is left of each row, cap and floor of arms that are not fixed."""
        return self.limits - self.rows @ w

    def miss(self, w: Array) -> float:
        """By how much an allocation misses what it misses most."""
        off = np.abs(self.A_eq @ w - self.b_eq).max(initial=-self.room(w).min(initial=0.0))
        return float(np.abs(w[~self.arms]).max(initial=max(off, -w.min())))

    def holds_strictly(self, w: Array) -> bool:
        """Whether all inequalities hold strictly at an allocation."""
        return bool(self.room(w).min(initial=1.0) > 0 and w[self.free].min() > 0)

    def restore_feasibility(self, w: Array) -> Array:
        """Mend the last digits: meet equalities again, then lean to `max_slack` until rows hold."""
        w = w.copy()
        equal = self.A_eq[:, self.free]
        weighted = equal * w[self.free]
        shift = np.linalg.solve(weighted @ equal.T, self.b_eq - self.A_eq @ w)
        w[self.free] *= 1.0 + equal.T @ shift
        excess = -self.room(w)
        broken = excess > 0
        room = self.room(self.max_slack)[broken]
        lean = float((excess[broken] / (excess[broken] + room)).max(initial=0.0))
        return (1.0 - lean) * w + lean * self.max_slack


def independent(equal: Array, moving: Mask) -> Array:
    """An orthonormal basis of equalities as seen by the arms that move."""
    left, sizes, _ = np.linalg.svd(equal[:, moving], full_matrices=False)
    return np.asarray(left[:, sizes > RANK_TOLERANCE].T @ equal)


def _useful_arms(polytope: Polytope) -> Mask:
    mask = np.ones(polytope.size, dtype=bool)
    mask[list(polytope.forced_arms)] = False
    return mask
