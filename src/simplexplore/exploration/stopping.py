"""Stopping thresholds: how much evidence is enough, and what is proven about each.

A threshold is a compiled function that asks one edge whether its statistic is large enough;
a run stops when every edge of the recommended vertex agrees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from simplexplore.errors import SettingError
from simplexplore.files import is_file
from simplexplore.problem.families import FAMILIES
from simplexplore.problem.messages import unknown
from simplexplore.samplers.own_file import module_of

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Threshold:
    """A stopping rule.

    Attributes
    ----------
    name : str
    summary : str
        One line for people.
    function : str
        Name of the compiled function; in `file`, or among our own.
    """

    name: str
    summary: str
    function: str
    file: Path | None = None

    def is_proven(self, family: str) -> bool:
        """Whether delta is a promise for this family: one that the family's entry names."""
        return self.file is None and self.name in FAMILIES[family].proven_thresholds


THRESHOLDS = {
    threshold.name: threshold
    for threshold in (
        Threshold("gk16", "log((1 + log t) / delta), the authors' code; a heuristic", "gk16"),
        Threshold("paper", "log((1 + log log t) / delta) as printed; a heuristic", "paper"),
        Threshold("kk21", "Kaufmann & Koolen 2021, per edge; proven", "kk21"),
        Threshold("mixture", "conjugate mixtures, per edge; proven", "mixture"),
        Threshold("tilt", "mixtures of tilts, policies one by one; proven, the least", "tilt"),
    )
}


def find_threshold(name: str) -> Threshold:
    """A threshold by name, or from a file of your own: ``path/to/file.py``.

    A file defines ``reached(config, table, run, edge, statistic)``, compiled like ours.
    """
    if name in THRESHOLDS:
        return THRESHOLDS[name]
    if name.endswith(".py"):
        path = Path(name)
        if not is_file(path):
            raise SettingError(f"there is no threshold file {name!r}.")
        path = path.resolve()
        if not callable(getattr(module_of(path), "reached", None)):
            raise SettingError(
                f"{path.name} defines no function 'reached(config, table, run, edge, statistic)'."
            )
        summary = f"from {path.name}; nothing is proven"
        shown = path.name if path.stem in THRESHOLDS else path.stem
        return Threshold(shown, summary, "reached", path)
    raise SettingError(unknown("threshold", name, list(THRESHOLDS), ", or a file of yours"))


def kk21_levels(closed_form: bool, log_union: float, largest: int) -> Array:
    """|S| C(log(M / delta) / |S|), supports of up to `largest` arms (docs/theory/stopping.md)."""
    level = _gaussian_level if closed_form else _exponential_level
    sizes = range(1, largest + 1)
    return np.array([0.0, *(size * level(log_union / size) for size in sizes)])


def _gaussian_level(x: float) -> float:
    """C_G(x) = min over 1/2 < l < 1 of (g_G(l) + x) / l."""
    from scipy.optimize import minimize_scalar
    from scipy.special import zeta

    def ratio(l: float) -> float:  # noqa: E741
        cost = 2 * l - 2 * l * math.log(4 * l) + math.log(zeta(2 * l)) - 0.5 * math.log(1 - l)
        return (cost + x) / l

    found = minimize_scalar(ratio, bounds=(0.5 + 1e-9, 1 - 1e-9), method="bounded")
    return float(found.fun)


def _exponential_level(x: float) -> float:
    """T(x) = 2 h~_{3/2}((h^{-1}(1 + x) + log(2 zeta(2))) / 2), with the branch corrected."""
    from scipy.special import lambertw

    def h_inverse(y: float) -> float:
        if y > 700:
            return y + math.log(y)
        return float(-lambertw(-math.exp(-y), -1).real)

    z = 1.5
    argument = (h_inverse(1 + x) + math.log(math.pi**2 / 3)) / 2
    corner = 1 / math.log(z)
    if argument >= corner - math.log(corner):
        u = h_inverse(argument)
        return 2 * math.exp(1 / u) * u
    return 2 * z * (argument - math.log(math.log(z)))
