"""Random problems for Hypothesis: small, exact, and awkward on purpose.

Coefficients and bounds are fractions, kept beside the floats that the package is given, so
that the slow twins in :mod:`reference` know exactly which problem was meant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from reference import Rewards
from reference_polytope import Row, Side, dot, sides
from simplexplore import Bernoulli, Bounded, Constraint, Gaussian, Poisson, Problem

Family = Gaussian | Bernoulli | Poisson | Bounded

COEFFICIENTS = [
    Fraction(x) for x in (0, 0, 0, 1, 1, -1, 2, -2, 3, "1/2", "-1/2", "3/2", "1/3", "-2/3")
]
BOUNDS = [Fraction(x) for x in ("0", "1/2", "1/3", "1/4", "1", "-1/2", "3/10", "2/3", "-1/5", "2")]


@dataclass(frozen=True)
class System:
    """The exact rows of a problem: coefficients, lower and upper bound (None: no bound)."""

    size: int
    rows: tuple[tuple[Row, Fraction | None, Fraction | None], ...]

    def sides(self) -> list[Side]:
        return sides(self.size, self.rows)

    def constraints(self) -> list[Constraint]:
        return [
            Constraint(
                f"c{i}",
                [float(x) for x in row],
                -math.inf if lower is None else float(lower),
                math.inf if upper is None else float(upper),
            )
            for i, (row, lower, upper) in enumerate(self.rows, 1)
        ]

    def problem(self, rewards: Family | None = None) -> Problem:
        return Problem(self.size, self.constraints(), rewards)

    def scaled(self, factors: Sequence[Fraction]) -> System:
        """The same set, each row multiplied by a positive number."""
        return System(
            self.size,
            tuple(
                (
                    tuple(f * x for x in row),
                    None if lower is None else f * lower,
                    None if upper is None else f * upper,
                )
                for f, (row, lower, upper) in zip(factors, self.rows, strict=True)
            ),
        )

    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(above, limit, equal, total) in floats, for the twins; the total comes first."""
        above, limit, equal, total = [], [], [], []
        for side in self.sides():
            row = [float(x) for x in side.coefficients]
            if side.equality:
                equal.append(row)
                total.append(float(side.bound))
            elif side.bound or len([x for x in row if x]) > 1:  # not w >= 0
                above.append(row)
                limit.append(float(side.bound))
        return (
            np.reshape(above, (-1, self.size)),
            np.array(limit),
            np.reshape(equal, (-1, self.size)),
            np.array(total),
        )


@st.composite
def rows_of(draw: st.DrawFn, size: int) -> Row:
    """Coefficients of one constraint, not all zero."""
    row = draw(st.lists(st.sampled_from(COEFFICIENTS), min_size=size, max_size=size))
    if not any(row):
        row[draw(st.integers(0, size - 1))] = Fraction(1)
    return tuple(row)


@st.composite
def simple_points(draw: st.DrawFn, size: int) -> Row:
    """A policy with small denominators, often with zeros."""
    parts = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    if not any(parts):
        parts[0] = 1
    return tuple(Fraction(x, sum(parts)) for x in parts)


@st.composite
def systems(
    draw: st.DrawFn,
    *,
    min_size: int = 1,
    max_size: int = 6,
    max_rows: int = 4,
    feasible: bool = True,
    limits: bool = False,
) -> System:
    """Rows through and around one policy, so that vertices are often degenerate.

    If `feasible`, that policy satisfies all rows; otherwise bounds are arbitrary, and about
    half of the problems cannot be satisfied. With `limits`, most arms have floors, caps or fixed
    shares of their own, written with any coefficient.
    """
    size = draw(st.integers(min_size, max_size))
    point = draw(simple_points(size))
    rows: list[tuple[Row, Fraction | None, Fraction | None]] = []
    for _ in range(draw(st.integers(0, max_rows))):
        kind = draw(
            st.sampled_from(["tight", "tight", "loose", "two-sided", "equal", "repeat", "implied"])
        )
        if kind in ("repeat", "implied") and rows:
            row, lower, upper = draw(st.sampled_from(rows))
            factor = draw(st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 3)]))
            room = Fraction(0) if kind == "repeat" else Fraction(1, 2)
            row = tuple(factor * x for x in row)
            lower = None if lower is None else factor * lower - room
            upper = None if upper is None else factor * upper + room
            if draw(st.booleans()):  # the same written with the opposite sign
                row = tuple(-x for x in row)
                lower, upper = (
                    None if upper is None else -upper,
                    None if lower is None else -lower,
                )
            rows.append((row, lower, upper))
            continue
        row = draw(rows_of(size))
        if feasible:
            here = dot(row, point)
            room = Fraction(0) if kind == "tight" else draw(st.sampled_from(BOUNDS[1:5]))
        else:
            here = draw(st.sampled_from(BOUNDS))
            room = Fraction(0)
        if kind == "equal":
            rows.append((row, here, here))
        elif kind == "two-sided":
            below = draw(st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1)]))
            width = room + below or Fraction(1, 2)
            rows.append((row, here + room - width, here + room))
        elif draw(st.booleans()):
            rows.append((row, None, here + room))
        else:
            rows.append((row, here - room, None))
    for a in range(size) if limits else ():
        factor = draw(st.sampled_from([Fraction(1), Fraction(1), Fraction(-2), Fraction(1, 3)]))
        row = tuple(factor if other == a else Fraction(0) for other in range(size))
        here = point[a] if feasible else abs(draw(st.sampled_from(BOUNDS))) / size
        low = here * draw(st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1)]))
        high = here + draw(st.sampled_from([Fraction(0), Fraction(1, 5), Fraction(1)]))
        kind = draw(st.sampled_from(["cap", "cap", "floor", "both", "equal", "none"]))
        ends = {
            "cap": (None, high),
            "floor": (low, None),
            "both": (low, high),
            "equal": (here, here),
        }
        if kind != "none":
            lower, upper = (None if x is None else factor * x for x in ends[kind])
            rows.append((row, upper, lower) if factor < 0 else (row, lower, upper))
    return System(size, tuple(rows))


@st.composite
def exact_means(draw: st.DrawFn, size: int) -> Row:
    """Means in tenths between 0.1 and 0.9, often with ties: they suit every family."""
    return tuple(Fraction(draw(st.integers(1, 9)), 10) for _ in range(size))


@st.composite
def distinct_means(draw: st.DrawFn, size: int) -> np.ndarray:
    """Floats between 0.1 and 0.9 without simple relations, so that optima do not tie."""
    order = draw(st.permutations(range(size)))
    seed = draw(st.integers(0, 2**16))
    noise = np.random.default_rng(seed).uniform(0.0, 1.0, size)
    return 0.1 + 0.8 * (np.array(order) + noise) / size


def factors(count: int) -> st.SearchStrategy[list[Fraction]]:
    """Numbers to multiply rows by."""
    some = [Fraction(1, 1000), Fraction(7), Fraction(300), Fraction(1, 3)]
    return st.lists(st.sampled_from(some), min_size=count, max_size=count)


@dataclass(frozen=True)
class Case:
    """A family as the package and as the twins know it, and how means in (0, 1) map to it."""

    family: Family
    twin: Rewards
    low: float = 0.0
    high: float = 1.0

    def means(self, unit: np.ndarray) -> np.ndarray:
        return self.low + (self.high - self.low) * unit


# In units of the means, which lie between these numbers: such a domain often binds.
NARROW = (0.1, 0.9)


def case(name: str, size: int, *, domain: bool) -> Case:
    """One of the families by name; "hetero" is Gaussian with unequal deviations."""
    narrow = NARROW if domain else None
    if name == "gaussian":
        return Case(
            Gaussian(0.5, domain=narrow),
            Rewards("gaussian", sigma=np.full(size, 0.5), domain=narrow),
        )
    if name == "hetero":
        sigma = 0.3 + 0.4 * np.arange(size) / max(1, size - 1)
        return Case(
            Gaussian(tuple(sigma.tolist()), domain=narrow),
            Rewards("gaussian", sigma=sigma, domain=narrow),
        )
    if name == "bernoulli":
        return Case(Bernoulli(domain=narrow), Rewards("bernoulli", domain=narrow))
    if name == "poisson":
        wide = None if narrow is None else (4 * narrow[0], 4 * narrow[1])
        return Case(Poisson(domain=wide), Rewards("poisson", domain=wide), 0.0, 4.0)
    wide = None if narrow is None else (-2 + 5 * narrow[0], -2 + 5 * narrow[1])
    return Case(
        Bounded(-2.0, 3.0, domain=wide),
        Rewards("bounded", low=-2.0, high=3.0, domain=wide),
        -2.0,
        3.0,
    )


CASES = ["gaussian", "hetero", "bernoulli", "poisson", "bounded"]
