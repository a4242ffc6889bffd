"""The instances of Carlsson, Basu, Johansson and Dubhashi (AISTATS 2024), by name.

An instance is a problem together with what only its author knows: the true means, how rewards
are drawn, and, for these, how the paper ran them. They are problem files in `instances/`.
The paper states neither the means nor the constraints of the meals (its Example 1): these are ours,
with limits that count kilocalories and grams of fibre in 100 g.

>>> import simplexplore as sx
>>> star = sx.catalog.instance("star")
>>> star.problem.means.tolist(), star.problem.delta
([1.0, 0.5, 0.4, 0.95, 0.8], 0.1)
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from simplexplore.errors import SettingError

from .messages import unknown
from .problem import SCENARIOS, Problem

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
    return tuple(_in_the_paper())


@cache
def instance(name: str) -> Instance:
    """An instance by its name.

    Raises
    ------
    SettingError
        If there is none of that name.
    """
    if name not in names():
        raise SettingError(unknown("instance", name, names()))
    problem = Problem.from_text(_text(name), f"{name}.toml")
    said: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in _in_the_paper()[name].items()
    }
    return Instance(name, problem, **said)


@cache
def _in_the_paper() -> dict[str, dict[str, Any]]:
    """What the paper says of each instance, beside its problem."""
    return tomllib.loads(_text("paper"))


def _text(name: str) -> str:
    place = files("simplexplore").joinpath(f"problem/instances/{name}.toml")
    return place.read_text(encoding="utf-8")
