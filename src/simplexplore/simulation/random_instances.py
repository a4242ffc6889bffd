"""Instances drawn at random: kinds of constraints, sizes, hardness."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from simplexplore.bound.bound import lower_bound
from simplexplore.errors import SettingError, SimplexploreError
from simplexplore.problem.catalog import Instance
from simplexplore.problem.checks import whole_number
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.families import Family, Gaussian, Poisson
from simplexplore.problem.messages import unknown
from simplexplore.problem.problem import Problem

Array = npt.NDArray[np.float64]
Kind = Literal["caps", "groups", "budgets", "ratios", "equalities", "dense"]

# Characteristic times are met as closely as this, and in so many steps.
CLOSE, STEPS = 1e-3, 20

# Draws of one instance, at most.
TRIES = 200


def random_instances(
    count: int,
    *,
    arms: int | tuple[int, int] = (4, 8),
    constraints: int | tuple[int, int] = (1, 3),
    kinds: Sequence[Kind] = ("groups", "budgets"),
    hardness: float | tuple[float, float] | None = (100.0, 1000.0),
    rewards: Family | None = None,
    scenario: str = "end-of-time",
    delta: float = 0.1,
    seed: int = 0,
) -> list[Instance]:
    """Draw instances: feasible, with one best policy that a neighbour competes with.

    Parameters
    ----------
    count : int
    arms, constraints : int or (int, int)
        How many of them; two numbers are the least and the most, all equally likely.
    kinds : sequence of str
        Kinds of constraints to draw from: "caps" (every arm at most a share), "groups" (some arms
        together at most or at least a share), "budgets" (positive coefficients, at most a limit),
        "ratios" (one arm at most a multiple of another), "equalities" (some arms together exactly a
        share), "dense" (coefficients of both signs).
    hardness : float or (float, float), optional
        The characteristic time in the scenario, or the least and the most (its logarithm is then
        uniform): means are moved apart or together until it is met. None: as it comes, which may
        be from hundreds to millions.
    rewards : Family, optional
        Gaussian with standard deviation 1 unless given.
    scenario, delta
        Of the problems.
    seed : int
        The same seed gives the same instances; instance k does not depend on how many there are.

    Returns
    -------
    list of Instance
        Each with a `name`, a `problem` that holds its true means, and its `source`.

    Raises
    ------
    SettingError
        If a size or a kind is wrong, or nothing as wanted was found.

    Examples
    --------
    >>> from simplexplore import lower_bound
    >>> first, *_ = random_instances(3, arms=5, hardness=100, seed=1)
    >>> first.name, first.problem
    ('random-1-0', <Problem: 5 arms, 3 constraints, gaussian rewards, end-of-time, delta 0.1>)
    >>> round(lower_bound(first.problem).characteristic_time)
    100
    """
    whole_number(count, "count", 1)
    whole_number(seed, "seed", 0)
    sizes = _range(arms, "arms", 2)
    rows = _range(constraints, "constraints", 0)
    for kind in kinds:
        if kind not in _KINDS:
            raise SettingError(unknown("kind of constraints", kind, list(_KINDS)))
    if not kinds and rows[1]:
        raise SettingError("kinds is empty; name some, or ask for constraints=0.")
    times = None if hardness is None else _times(hardness)
    family = Gaussian() if rewards is None else rewards

    def drawn(rng: np.random.Generator) -> Problem | None:
        size = int(rng.integers(sizes[0], sizes[1] + 1))
        inside = rng.dirichlet(np.full(size, 3.0))
        limits: list[Constraint] = []
        for i in range(int(rng.integers(rows[0], rows[1] + 1))):
            limits += _KINDS[kinds[int(rng.integers(len(kinds)))]](rng, inside, f"c{i + 1}")
        problem = Problem(size, limits, family, scenario=scenario, delta=delta)
        spread = rng.uniform(-1.0, 1.0, size)
        target = None if times is None else float(np.exp(rng.uniform(*np.log(times))))
        try:
            means = _means(problem, spread, target)
        except SimplexploreError:
            return None
        return None if means is None else problem.replace(means=means)

    found = []
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        problem = next(filter(None, (drawn(rng) for _ in range(TRIES))), None)
        if problem is None:
            raise SettingError(
                f"none of {TRIES} drawn instances was as wanted; ask for fewer constraints, or for "
                "another hardness."
            )
        source = f"random_instances(seed={seed}), number {k}"
        found.append(Instance(f"random-{seed}-{k}", problem, source))
    return found


def _means(problem: Problem, spread: Array, target: float | None) -> list[float] | None:
    """Means in the family's range, around its middle; None if the hardness is out of reach."""
    middle, reach = _middle(problem.rewards)

    def time(scale: float) -> float:
        return lower_bound(problem, middle + scale * reach * spread).characteristic_time

    scale = 0.5 if target is None else 1.0
    found = time(scale)
    if not 0 < found < math.inf:  # a tie, or only one policy
        return None
    # Times go with the square of the scale, nearly: exactly where rewards are Gaussian.
    for _ in range(STEPS):
        if target is None or abs(found / target - 1) < CLOSE:
            return cast(list[float], (middle + scale * reach * spread).tolist())
        scale *= math.sqrt(found / target)
        found = time(scale)
    return None


def _middle(rewards: Family) -> tuple[float, float]:
    """Around which mean, and how far at most."""
    low, high = rewards.range_of_means()
    if math.isfinite(high - low):
        return (low + high) / 2, 0.45 * (high - low)
    return (2.0, 1.8) if isinstance(rewards, Poisson) else (0.0, 1.0)


# ---------------------------------------------------------------------- kinds of constraints

# Each keeps a policy inside, with some room, so that together they can be satisfied.


def _caps(rng: np.random.Generator, inside: Array, name: str) -> list[Constraint]:
    most = _up(float(inside.max()) * rng.uniform(1.05, 1.3))
    return [
        Constraint(f"{name}[a{a + 1}]", row, upper=most)
        for a, row in enumerate(np.eye(len(inside)))
    ]


def _group(rng: np.random.Generator, size: int) -> Array:
    row = np.zeros(size)
    row[rng.choice(size, int(rng.integers(1, max(2, size // 2 + 1))), replace=False)] = 1.0
    return row


def _groups(rng: np.random.Generator, inside: Array, name: str) -> list[Constraint]:
    row = _group(rng, len(inside))
    share = float(row @ inside)
    if rng.random() < 0.5:
        return [Constraint(name, row, upper=_up(share * rng.uniform(1.05, 1.5)))]
    return [Constraint(name, row, lower=_down(share * rng.uniform(0.5, 0.95)))]


def _budgets(rng: np.random.Generator, inside: Array, name: str) -> list[Constraint]:
    row = np.round(rng.uniform(1.0, 10.0, len(inside)), 1)
    return [Constraint(name, row, upper=_up(float(row @ inside) * rng.uniform(1.01, 1.15)))]


def _ratios(rng: np.random.Generator, inside: Array, name: str) -> list[Constraint]:
    a, b = rng.choice(len(inside), 2, replace=False)
    row = np.zeros(len(inside))
    row[a], row[b] = 1.0, -_up(float(inside[a] / inside[b]) * rng.uniform(1.05, 1.5))
    return [Constraint(name, row, upper=0.0)]


def _equalities(rng: np.random.Generator, inside: Array, name: str) -> list[Constraint]:
    row = _group(rng, len(inside))
    share = round(float(row @ inside), 3)
    return [Constraint(name, row, lower=share, upper=share)]


def _dense(rng: np.random.Generator, inside: Array, name: str) -> list[Constraint]:
    row = np.round(rng.normal(0.0, 1.0, len(inside)), 2)
    return [Constraint(name, row, upper=_up(float(row @ inside) + rng.uniform(0.02, 0.2)))]


_KINDS: dict[str, Callable[[np.random.Generator, Array, str], list[Constraint]]] = {
    "caps": _caps,
    "groups": _groups,
    "budgets": _budgets,
    "ratios": _ratios,
    "equalities": _equalities,
    "dense": _dense,
}


def _up(value: float) -> float:
    return math.ceil(1000 * value) / 1000


def _down(value: float) -> float:
    return math.floor(1000 * value) / 1000


# ---------------------------------------------------------------------- what was asked for


def _range(given: int | tuple[int, int], name: str, least: int) -> tuple[int, int]:
    low, high = (given, given) if isinstance(given, int) else tuple(given)
    whole_number(low, name, least)
    whole_number(high, name, low)
    return int(low), int(high)


def _times(given: float | tuple[float, float]) -> tuple[float, float]:
    low, high = (given, given) if isinstance(given, int | float) else tuple(given)
    if not 0 < low <= high < math.inf:
        raise SettingError(
            f"hardness is a characteristic time, or the least and the most; got {given!r}."
        )
    return float(low), float(high)
