"""Evidence of `tilt` for one comparison: the kernel's, and a twin written from the definition."""

import math

import numpy as np

from engines import engine_for
from simplexplore import Problem
from simplexplore.exploration.vertex_table import one_edge
from simplexplore.kernels import information, policy_search, tilt, tilt_mixture

LOSE = {0: 0.39, 1: 0.30, 2: 0.10, 3: 0.09, 5: 0.06, 8: 0.03, None: 0.03}
WIN = {0: 0.22, 1: 0.22, 2: 0.17, 3: 0.13, 5: 0.12, 7: 0.07, 10: 0.04, None: 0.03}
SCALES = [0.4, 0.7, *[1.0] * 9, *(0.8**i for i in range(1, 10))]


class Comparison:
    """v . mu + offset > 0? asked of arms with given counts and means, or rewards one by one."""

    def __init__(self, rewards, v, n=None, means=None, offset=0.0, told=None):
        size = len(v)
        engine = engine_for(Problem(size, (), rewards), "uniform", threshold="tilt")
        if told is not None:
            for arm, values in enumerate(told):
                for value in values:
                    engine.observe(arm, float(value))
        self.config, _, run, scratch = engine.workspace.records
        self.run = run._replace(gradient=np.zeros(size))
        self.scratch = scratch._replace(
            edge=one_edge(size)._replace(first_root=scratch.edge.first_root),
            tilting=np.zeros((3 + size, scratch.tilting.shape[1])),
            newton=np.zeros((7, size)),
            hessian=np.zeros((size, size)),
        )
        if told is None:
            run.n[:] = n
            run.mean[:] = rewards.to_unit(means)
            run.clipped_mean[:] = np.clip(run.mean[0], self.config.lowest, self.config.highest)
        edge = self.scratch.edge
        edge.arm[:], edge.v[:], edge.offset[0] = np.arange(size), v, offset

    @property
    def statistic(self):
        with np.errstate(all="ignore"):
            return policy_search.statistic_aside(self.config, self.run, self.scratch)

    def value(self, lam):
        """Log evidence at means lam, in unit coordinates."""
        lam = np.array(lam, dtype=float)
        return tilt_mixture.log_evidence(self.config, self.run, self.scratch, lam)

    def certified(self, level=-math.inf):
        """The certified least evidence of the tilts, and where it was looked for."""
        config, run, scratch = self.config, self.run, self.scratch
        with np.errstate(all="ignore"):
            self.statistic  # noqa: B018  (its root is the start)
            information.closest(config, scratch.edge, run, 0, scratch.newton[tilt.LAM])
            value = tilt.descend(config, run, scratch, level)
            bound = tilt.certified(config, run, scratch, value)
        return bound, scratch.newton[tilt.LAM].copy()

    def evidence(self, least=-math.inf, enough=math.inf):
        """What the stopping rule uses."""
        with np.errstate(all="ignore"):
            return tilt.tilt_evidence(
                self.config, self.run, self.scratch, self.statistic, least, enough
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
