"""The instances of Carlsson, Basu, Johansson and Dubhashi (AISTATS 2024), by name.

An instance is a problem together with what only its author knows: the true means, how rewards
are drawn, and, for these, how the paper ran them.

>>> import simplexplore as sx
>>> star = sx.catalog.instance("star")
>>> star.problem.means.tolist(), star.problem.delta
([1.0, 0.5, 0.4, 0.95, 0.8], 0.1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import numpy as np
import numpy.typing as npt

from simplexplore.errors import SettingError

from .families import Bernoulli, Gaussian
from .problem import SCENARIOS, Problem
from .spelling import unknown

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Instance:
    """A problem with its truth.

    Attributes
    ----------
    name : str
    problem : Problem
        With its true means and the delta it is run with.
    source : str
        Where it comes from.
    runs : int
        How many runs the paper averages over.
    scenarios : tuple of str
        Those the paper runs.
    noise : tuple of float or None
        Standard deviations that rewards are drawn with, where they differ from what samplers
        are told; `simulate` takes it.
    optimum : mapping or None
        The optimal policy as printed: the arms it uses, with their shares.
    """

    name: str
    problem: Problem
    source: str
    runs: int = 1000
    scenarios: tuple[str, ...] = SCENARIOS
    noise: tuple[float, ...] | None = None
    optimum: Mapping[str, float] | None = None

    @property
    def means(self) -> Array:
        """The true means."""
        return cast(Array, self.problem.means)

    @property
    def deviations(self) -> Array:
        """The standard deviations that rewards are drawn with."""
        told = self.problem.rewards.sigmas(self.problem.size)
        return told if self.noise is None else np.array(self.noise)


def names() -> tuple[str, ...]:
    """The names of all instances.

    Examples
    --------
    >>> names()[:4]
    ('meal', 'meal-a', 'meal-b', 'triangle')
    """
    return tuple(INSTANCES)


def instance(name: str) -> Instance:
    """An instance by its name.

    Raises
    ------
    SettingError
        If there is none of that name.
    """
    if name not in INSTANCES:
        raise SettingError(unknown("instance", name, names()))
    return INSTANCES[name]


def _arms(count: int) -> list[str]:
    """The paper's names, which are numbers, as words that constraints can use."""
    return [f"a{i}" for i in range(1, count + 1)]


def _meal(name: str, constraints: dict[str, str], source: str) -> Instance:
    """Example 1 of the paper, whose means and constraints are not stated: these are ours.

    Rewards are ratings of taste with standard deviation 1, as in Figure 2. The limits count
    kilocalories and grams of fibre in 100 g.
    """
    return Instance(
        name,
        Problem(
            ["pizza", "salmon", "lentils"],
            constraints,
            Gaussian(1.0),
            delta=0.1,
            means=[1.0, 0.3, 0.0],
        ),
        source,
    )


def _gaussian(
    name: str,
    means: Sequence[float],
    constraints: dict[str, str],
    source: str,
    delta: float = 0.1,
    scenarios: tuple[str, ...] = SCENARIOS,
    optimum: Mapping[str, float] | None = None,
    arms: Sequence[str] | None = None,
) -> Instance:
    problem = Problem(
        arms or _arms(len(means)),
        constraints,
        Gaussian(1.0),
        delta=delta,
        scenario=scenarios[-1],
        means=means,
    )
    return Instance(name, problem, source, scenarios=scenarios, optimum=optimum)


def _bernoulli(
    name: str,
    means: Sequence[float],
    constraints: dict[str, str],
    source: str,
    optimum: Mapping[str, float],
) -> Instance:
    problem = Problem(
        _arms(len(means)), constraints, Bernoulli(), delta=0.1, scenario="anytime", means=means
    )
    return Instance(name, problem, source, runs=500, optimum=optimum)


# Mean and standard deviation of ratings; action, drama, family.
_MOVIES = {
    "The Net": (3.67, 1.26, 1, 1, 0),
    "Happily N'Ever After": (2.97, 1.30, 0, 0, 1),
    "Tomorrowland": (2.94, 1.31, 1, 0, 1),
    "American Hero": (3.52, 1.33, 1, 1, 0),
    "Das Boot": (3.18, 1.30, 0, 1, 0),
    "Final Destination 3": (2.02, 0.93, 0, 0, 0),
    "Licence to Kill": (2.79, 1.22, 1, 0, 0),
    "The Hundred-Foot Journey": (2.97, 1.31, 0, 1, 0),
    "The Matrix": (2.32, 1.14, 1, 0, 0),
    "Creature": (2.53, 1.20, 0, 0, 0),
    "The Basket": (2.55, 1.19, 0, 1, 0),
    "Star Trek: The Motion Picture": (2.54, 1.16, 0, 0, 0),
}


def _movies() -> Instance:
    """Samplers are told the largest standard deviation; rewards have their own."""
    means, deviations, *flags = zip(*_MOVIES.values(), strict=True)
    genres = zip(("action", "drama", "family"), flags, strict=True)
    problem = Problem(
        list(_MOVIES),
        {
            "little action": "action <= 0.3",
            "some drama": "drama >= 0.3",
            "some family": "family >= 0.3",
        },
        Gaussian(max(deviations)),
        delta=0.1,
        scenario="anytime",
        means=means,
        groups={genre: [m for m, f in zip(_MOVIES, of, strict=True) if f] for genre, of in genres},
    )
    return Instance(
        "movies",
        problem,
        "Figure 5 and Table 2 (IMDB)",
        runs=500,
        noise=tuple(deviations),
        optimum={"The Net": 0.3, "Happily N'Ever After": 0.3, "Das Boot": 0.4},
    )


_FIVE = {"first": "a + b <= 0.5", "second": "c + d <= 0.5"}

INSTANCES: Mapping[str, Instance] = MappingProxyType(
    {
        item.name: item
        for item in (
            _meal("meal", {}, "Figures 1 and 2, without constraints"),
            _meal(
                "meal-a",
                {"energy": "270*pizza + 200*salmon + 130*lentils <= 235"},
                "Figures 1 and 2, person A (constraints of ours)",
            ),
            _meal(
                "meal-b",
                {"fibre": "3*pizza + 8*lentils >= 4"},
                "Figures 1 and 2, person B (constraints of ours)",
            ),
            _gaussian(
                "triangle",
                [1.0, 0.5, 0.4, 0.4, 0.5],
                _FIVE,
                "Figure 3c (the triangle)",
                scenarios=("anytime",),
                arms=list("abcde"),
            ),
            _gaussian(
                "star",
                [1.0, 0.5, 0.4, 0.95, 0.8],
                _FIVE,
                "Figure 3d (the star)",
                scenarios=("anytime",),
                arms=list("abcde"),
            ),
            _gaussian(
                "eight-arms",
                [1.0, 0.7, 0.3, 0.0, -0.5, -1.0, -2.0, -3.0],
                {"budget": "7*a1 + 7*a2 + a3 <= 0.5"},
                "Figure 4 and the appendix on PTnS",
                optimum={"a3": 0.5, "a4": 0.5},
            ),
            _movies(),
            _bernoulli(
                "bernoulli-1",
                [0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2],
                {"first": "a1 + a2 <= 0.5", "second": "a3 + a4 <= 0.5"},
                "Appendix, first Bernoulli figure",
                {"a1": 0.5, "a3": 0.5},
            ),
            _bernoulli(
                "bernoulli-2",
                [0.8, 0.7, 0.6, 0.5, 0.4],
                {"first": "4*a1 - a5 <= 1", "second": "3*a2 - a4 <= 1"},
                "Appendix, second Bernoulli figure",
                {"a1": 0.25, "a2": 0.33, "a3": 0.42},
            ),
            _gaussian(
                "gaussian-1",
                [2.0, 1.5, 1.45, 0.5, 0.3, -1.0, -1.0],
                {"first": "4*a1 + a2 <= 0.7", "second": "a2 + 2*a3 <= 0.5"},
                "Appendix, first Gaussian figure",
                delta=1e-4,
                optimum={"a1": 0.05, "a2": 0.5, "a4": 0.45},
            ),
            _gaussian(
                "gaussian-2",
                [1.0, 0.5, 0.4, 0.3, 0.2, 0.1],
                {"first": "a1 - a4 - a5 - a6 <= 0.3", "second": "a2 <= 0.7"},
                "Appendix, second Gaussian figure",
                delta=1e-3,
                optimum={"a1": 0.65, "a4": 0.35},
            ),
        )
    }
)
