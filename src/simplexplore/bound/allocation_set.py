"""Where samples may go: the one description that the bound and compiled runs share."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.problem import EXPLORATION

from .newton_system import Rows

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Equalities that differ by less than this on the free arms repeat each other.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class AllocationSet:
    """Pi = {w >= 0 : A w <= b, E w = f, floor <= w <= cap}; rows range over all arms.

    Attributes
    ----------
    above, limit, equal, total
        A, b, E and f. The equalities are independent on `arms` that have room between floor
        and cap, and fix the total of these.
    floor, cap : (K,) arrays
        Limits on single arms; a cap of inf where there is none.
    arms : (K,) array of bool
        Arms that may be positive in Pi.
    in_play : (K,) array of bool
        Arms that some feasible policy uses. Pi may have room for others too, but no sampler
        needs to try them.
    costs : (K,) array
        What one sample of each arm costs.
    inside : (K,) array
        The allocation that gives each arm in play the same part of what it could get.
    deep : (K,) array
        An allocation at which all inequalities hold strictly: `above`, and w >= 0 of `arms`.
    polytope : Polytope or None
        The same set as policies; None for all allocations.
    is_spent : bool
        Whether shares are of what is spent, and rows name all arms: see `in_spend`.
    """

    above: Array
    limit: Array
    equal: Array
    total: Array
    floor: Array
    cap: Array
    arms: Mask
    in_play: Mask
    costs: Array
    inside: Array
    deep: Array
    polytope: Polytope | None = field(default=None, compare=False, repr=False)
    is_spent: bool = False

    @classmethod
    def of(cls, polytope: Polytope, scenario: str) -> AllocationSet:
        """The set of a scenario: all, the feasible policies, or what limits of its own leave."""
        if scenario == EXPLORATION:
            limits = Polytope.of_exploration(polytope.problem)
            own = replace(cls.feasible(limits), in_play=_in_play(polytope))
            if limits.dimension == 0 and limits.form.start is not None:  # exact, however small
                own = replace(own, inside=limits.form.start.policy, deep=limits.form.start.policy)
            return own
        return cls.feasible(polytope) if scenario == "anytime" else cls.simplex(polytope)

    @classmethod
    def simplex(cls, polytope: Polytope) -> AllocationSet:
        """All allocations."""
        size, in_play = polytope.size, _in_play(polytope)
        return cls(
            above=np.zeros((0, size)),
            limit=np.zeros(0),
            equal=np.ones((1, size)),
            total=np.ones(1),
            floor=np.zeros(size),
            cap=np.full(size, np.inf),
            arms=np.ones(size, dtype=bool),
            in_play=in_play,
            costs=polytope.problem.costs,
            inside=in_play / in_play.sum(),
            deep=np.full(size, 1.0 / size),
        )

    @classmethod
    def feasible(cls, polytope: Polytope) -> AllocationSet:
        """Allocations that are feasible policies."""
        above, limit = polytope.inequalities()
        equal, total = polytope.equalities()
        floor, cap = polytope.limits()
        in_play = _in_play(polytope)
        return cls(
            above=above,
            limit=limit,
            equal=equal,
            total=total,
            floor=floor,
            cap=cap,
            arms=in_play,
            in_play=in_play,
            costs=polytope.problem.costs,
            inside=polytope.fair_policy(),
            deep=polytope.deepest_policy(),
            polytope=polytope,
        )

    @cached_property
    def free(self) -> Indices:
        """Numbers of the arms that may be positive."""
        return np.flatnonzero(self.arms)

    @cached_property
    def rows(self) -> Rows:
        """`above`, with rows of single arms apart."""
        return Rows(self.above)

    @cached_property
    def start(self) -> Array:
        """Multipliers of all rows, above then equal, that give every arm in play the price 1."""
        seen = self.equal[:, self.arms & self.in_play & (self.floor < self.cap)].T
        equal = np.linalg.lstsq(seen, np.ones(len(seen)), rcond=None)[0]
        return np.concatenate([np.zeros(len(self.limit)), equal])

    @cached_property
    def pulls_for_one(self) -> Array:
        """Pulls that limits take to pay for one of each arm, itself included.

        Of the rows and caps the one that asks most, each by itself: one over the largest share that
        it would leave the arm. Equalities and floors do not count.
        """
        moves = self.above - self.limit[:, None]
        saved = -moves[:, self.in_play].min(axis=1, initial=0.0)
        paid = saved > 0
        others = np.maximum(moves[paid], 0.0) / saved[paid, None]
        capped = np.where(self.in_play, self.cap, 1.0)
        pulls: Array = np.maximum(1.0 + others.max(axis=0, initial=0.0), 1.0 / capped)
        return pulls

    @property
    def is_simplex(self) -> bool:
        """Whether nothing but the total restricts all arms."""
        unlimited = not self.floor.any() and bool(np.isinf(self.cap).all())
        return unlimited and len(self.limit) == 0 and len(self.total) == 1 and bool(self.arms.all())

    def is_same_as(self, other: AllocationSet) -> bool:
        """Whether another one is written in the same numbers."""
        arrays = [f.name for f in fields(self) if f.compare and f.name != "is_spent"]
        return self.is_spent == other.is_spent and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays
        )

    @property
    def width(self) -> float:
        """How far `deep` keeps from every inequality."""
        return float(min(self.room(self.deep).min(initial=1.0), self.deep[self.arms].min()))

    def as_rows(self) -> AllocationSet:
        """The same set, its floors and caps written as rows."""
        size = len(self.floor)
        fixed = np.flatnonzero((self.floor == self.cap) & self.arms)
        capped, floored = self._capped, self._floored
        unit = np.eye(size)
        return replace(
            self,
            above=np.vstack([self.above, unit[capped], -unit[floored]]),
            limit=np.concatenate([self.limit, self.cap[capped], -self.floor[floored]]),
            equal=np.vstack([self.equal, unit[fixed]]),
            total=np.concatenate([self.total, self.floor[fixed]]),
            floor=np.zeros(size),
            cap=np.full(size, np.inf),
        )

    def in_spend(self) -> AllocationSet:
        """The same set, without floors and caps, in shares of what is spent.

        Spent shares are u_a = c_a w_a / (c . w). As w sums to one, a row A w <= b says
        (A - b 1') w <= 0, which holds for all multiples of w, so for u / c as well. Where all
        cost the same nothing changes, and the simplex stays the simplex.
        """
        if np.ptp(self.costs) == 0:
            return self
        inside, deep = self._spent(self.inside), self._spent(self.deep)
        if self.is_simplex:
            return replace(self, inside=inside, deep=deep)
        above = self._homogeneous(self.above, self.limit)
        equal = independent(self._homogeneous(self.equal, self.total), self.arms)
        equal = np.vstack([np.ones(len(self.costs)), equal])
        return replace(
            self,
            above=above,
            limit=np.zeros(len(above)),
            equal=equal,
            total=np.r_[1.0, np.zeros(len(equal) - 1)],
            inside=inside,
            deep=deep,
            is_spent=True,
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
        capped, floored = self._capped, self._floored
        of_rows = self.limit - self.rows @ w
        return np.concatenate(
            [of_rows, self.cap[capped] - w[capped], w[floored] - self.floor[floored]]
        )

    @property
    def _capped(self) -> Indices:
        return np.flatnonzero((self.floor < self.cap) & (self.cap < np.inf))

    @property
    def _floored(self) -> Indices:
        return np.flatnonzero((self.floor < self.cap) & (self.floor > 0))

    @cached_property
    def caps(self) -> Array:
        """The most that rows of a single arm leave it; what it has, if it is held fast."""
        return self._ends(1.0)

    @cached_property
    def floors(self) -> Array:
        """The least that rows of a single arm leave it; what it has, if it is held fast."""
        return -self._ends(-1.0)

    def _ends(self, sign: float) -> Array:
        single, arm = np.nonzero(self.above)
        alone = np.bincount(single, minlength=len(self.limit))[single] == 1
        single, arm = single[alone], arm[alone]
        slope = sign * self.above[single, arm]
        ends = np.where(self.arms, np.inf if sign > 0 else 0.0, sign * self.deep)
        binds = (slope > 0) & self.arms[arm]
        np.minimum.at(ends, arm[binds], self.limit[single[binds]] / slope[binds])
        return ends

    def holds_strictly(self, w: Array) -> bool:
        """Whether all inequalities hold strictly at an allocation."""
        return bool(self.room(w).min(initial=1.0) > 0 and w[self.free].min() > 0)

    def mended(self, w: Array) -> Array:
        """Mend the last digits: meet equalities again, then lean towards `deep` until rows hold."""
        w = w.copy()
        equal = self.equal[:, self.free]
        weighted = equal * w[self.free]
        shift = np.linalg.solve(weighted @ equal.T, self.total - self.equal @ w)
        w[self.free] *= 1.0 + equal.T @ shift
        excess = -self.room(w)
        broken = excess > 0
        room = self.room(self.deep)[broken]
        lean = float((excess[broken] / (excess[broken] + room)).max(initial=0.0))
        return (1.0 - lean) * w + lean * self.deep


def independent(equal: Array, moving: Mask) -> Array:
    """An orthonormal basis of equalities as seen by the arms that move."""
    left, sizes, _ = np.linalg.svd(equal[:, moving], full_matrices=False)
    return np.asarray(left[:, sizes > RANK_TOLERANCE].T @ equal)


def _in_play(polytope: Polytope) -> Mask:
    mask = np.ones(polytope.size, dtype=bool)
    mask[list(polytope.forced_arms)] = False
    return mask
