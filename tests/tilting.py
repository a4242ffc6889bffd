"""Evidence of `tilt` for one comparison: the kernel's, and a twin written from the definition."""

import math

import numpy as np

from simplexplore.exploration.engine import Engine
from simplexplore.exploration.plan import prepare
from simplexplore.exploration.vertex_table import one_edge
from simplexplore.kernels import episode, search, tilt
from simplexplore.kernels.information import closest
from simplexplore.problem.problem import Problem

LOSE = {0: 0.39, 1: 0.30, 2: 0.10, 3: 0.09, 5: 0.06, 8: 0.03, None: 0.03}
WIN = {0: 0.22, 1: 0.22, 2: 0.17, 3: 0.13, 5: 0.12, 7: 0.07, 10: 0.04, None: 0.03}
SCALES = [0.4, 0.7, *[1.0] * 9, *(0.8**i for i in range(1, 10))]


class Comparison:
    """v . mu + offset > 0? asked of arms with given counts and means, or rewards one by one."""

    def __init__(self, rewards, v, n=None, means=None, offset=0.0, told=None):
        size = len(v)
        self.engine = Engine(prepare(Problem(size, (), rewards), "uniform", "tilt"))
        table, run, memory = self.engine._arrays
        self.setting = self.engine._setting
        self.run = run._replace(gradient=np.zeros(size))
        self.memory = memory._replace(
            edge=one_edge(size)._replace(first_root=memory.edge.first_root),
            tilting=np.zeros((3 + size, memory.tilting.shape[1])),
            newton=np.zeros((6, size)),
            hessian=np.zeros((size, size)),
        )
        if told is None:
            run.n[:] = n
            run.mean[:] = rewards.to_unit(means)
            run.clipped[:] = np.clip(run.mean, self.setting.lowest, self.setting.highest)
        else:
            for arm, values in enumerate(told):
                for value in rewards.to_unit(values):
                    episode.observe(self.setting, table, self.run, arm, float(value))
        edge = self.memory.edge
        edge.arm[:], edge.v[:], edge.offset[0] = np.arange(size), v, offset

    @property
    def statistic(self):
        with np.errstate(all="ignore"):
            return search.statistic_aside(self.setting, self.run, self.memory)

    def value(self, lam):
        """Log evidence at means lam, in unit coordinates."""
        edge, work = self.memory.edge, self.memory.tilting
        return tilt.log_evidence(self.setting, edge, self.run, work, 0, np.array(lam, dtype=float))

    def certified(self, level=-math.inf):
        """The certified least evidence of the tilts, and where it was looked for."""
        setting, run, memory = self.setting, self.run, self.memory
        with np.errstate(all="ignore"):
            self.statistic  # noqa: B018  (its root is the start)
            closest(setting, memory.edge, run, 0, memory.newton[0])
            value = tilt.descend(setting, memory.edge, run, memory, 0, level)
            bound = tilt.certified(setting, memory.edge, run, memory, 0, value)
        return bound, memory.newton[0].copy()

    def evidence(self, least=-math.inf, enough=math.inf):
        """What the stopping rule uses."""
        with np.errstate(all="ignore"):
            return tilt.tilt_evidence(
                self.setting,
                self.memory.edge,
                self.run,
                self.memory,
                0,
                self.statistic,
                least,
                enough,
            )


def log_mixture(family, n, sums, v, lam, sigma=None):
    """Log of the mixture at means lam, written from the definition in docs/theory/stopping.md.

    In longer floats where there are any: exponents of many samples are large, and cancel.
    """
    strongest = {"gaussian": 1.5, "bernoulli": 3.0, "poisson": 1.5}[family]
    n, sums, lam = (np.asarray(x, dtype=np.longdouble) for x in (n, sums, lam))
    tilts = np.array([strongest / 1.6**k for k in range(30)] + [0.0], dtype=np.longdouble)
    products = np.log(np.array(SCALES) / sum(SCALES)).astype(np.longdouble)
    for a, sign in enumerate(np.sign(v)):
        t, b = sign * tilts, np.expm1(sign * tilts)
        if family == "gaussian":
            exponents = t * (sums[a] - n[a] * lam[a]) / sigma[a] - n[a] * t * t / 2
        elif family == "bernoulli":
            exponents = t * sums[a] - n[a] * np.log1p(b * lam[a])
        else:
            exponents = t * sums[a] - n[a] * b * lam[a]
        weights = WIN if sign > 0 else LOSE
        for j in range(len(SCALES)):
            chosen = [30 if offset is None else j + offset for offset in weights]
            shares = np.log(np.array([*weights.values()]) / sum(weights.values()))
            products[j] += np.logaddexp.reduce(shares + exponents[chosen])
    return float(np.logaddexp.reduce(products))
