"""When the evidence is enough. Each function asks one edge; all must agree.

Heuristics use one level for all edges; the proven ones price each arm of the edge.
"""

from __future__ import annotations

import math

from numba import njit

from .gaussian import kk21_penalty, mixture_reached
from .records import PULLS


@njit
def gk16(setting, table, run, edge, statistic):
    """log((1 + log t) / delta): what the authors' code uses. Not proven."""
    return statistic >= math.log((1.0 + math.log(run.integers[PULLS])) / setting.delta)


@njit
def paper(setting, table, run, edge, statistic):
    """log((1 + log log t) / delta) as printed. Not proven; read as 0 while t <= e."""
    t = float(run.integers[PULLS])
    inner = math.log(math.log(t)) if t > math.e else 0.0
    return statistic >= math.log((1.0 + inner) / setting.delta)


@njit
def kk21(setting, table, run, edge, statistic):
    """Kaufmann & Koolen (2021), over the support of the edge. Proven."""
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    level = setting.levels[last - first]
    for k in range(first, last):
        level += kk21_penalty(run.n[table.arm[k]])
    return statistic >= level


@njit
def mixture(setting, table, run, edge, statistic):
    """Conjugate mixtures over the support of the edge (THEORY 1.4). Proven."""
    return mixture_reached(setting, table, run, edge, statistic)
