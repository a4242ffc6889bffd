"""Rewards, and what tells two policies apart, from the definitions: slow twins of the fast paths.

Nothing here imports the package, nor do reference_polytope.py and reference_times.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.optimize


@dataclass(frozen=True)
class Rewards:
    """What the twins need to know about rewards, in the units of the means.

    Attributes
    ----------
    family : {"gaussian", "bernoulli", "poisson", "bounded"}
    sigma : (K,) array
        Standard deviations; only for Gaussian rewards.
    low, high : float
        Interval of the rewards; only for bounded ones.
    domain : (float, float) or None
    """

    family: str
    sigma: np.ndarray | None = None
    low: float = 0.0
    high: float = 1.0
    domain: tuple[float, float] | None = None

    def divergence(self, mu: np.ndarray, lam: np.ndarray, arms: np.ndarray) -> np.ndarray:
        if self.family == "gaussian":
            return (mu - lam) ** 2 / (2 * self.sigma[arms] ** 2)
        if self.family == "poisson":
            return lam - mu + mu * np.log(mu / lam)
        mu, lam = self.share(mu), self.share(lam)
        return mu * np.log(mu / lam) + (1 - mu) * np.log((1 - mu) / (1 - lam))

    def share(self, x: np.ndarray) -> np.ndarray:
        return (x - self.low) / (self.high - self.low)

    def slope(self, mu: np.ndarray, lam: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Derivative of the divergence in its second argument."""
        if self.family == "gaussian":
            return (lam - mu) / self.sigma[arms] ** 2
        if self.family == "poisson":
            return 1 - mu / lam
        return (lam - mu) / ((lam - self.low) * (self.high - lam))

    def limits(self, margin: float) -> tuple[float, float]:
        """Where alternatives may lie, a little inside what makes divergences infinite."""
        if self.family == "gaussian":
            low, high = -math.inf, math.inf
        elif self.family == "poisson":
            low, high = margin, math.inf
        else:
            low, high = self.low + margin, self.high - margin
        if self.domain is not None:
            low, high = max(low, self.domain[0]), min(high, self.domain[1])
        return low, high

    def variance(self, mu: np.ndarray, arms: np.ndarray) -> np.ndarray:
        if self.family == "gaussian":
            return self.sigma[arms] ** 2
        if self.family == "poisson":
            return mu
        return (mu - self.low) * (self.high - mu)


def sampled(family, rng: np.random.Generator, means: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """One reward of a family per mean; bounded ones lie at an end of their range."""
    if family.name == "gaussian":
        return means + sigma * rng.standard_normal(np.shape(means))
    if family.name == "poisson":
        return rng.poisson(means).astype(float)
    coins = rng.random(np.shape(means)) < family.to_unit(means)
    return family.from_unit(coins.astype(float))


def information_across(
    direction: np.ndarray, mu: np.ndarray, w: np.ndarray, rewards: Rewards
) -> float:
    """min sum_a w_a d(mu_a, lam_a) subject to lam . direction >= 0; eight digits or more."""
    lam = closest_alternative(direction, mu, w, rewards)
    return float(w @ rewards.divergence(mu, lam, np.arange(len(mu))))


def closest_alternative(
    direction: np.ndarray, mu: np.ndarray, w: np.ndarray, rewards: Rewards
) -> np.ndarray:
    """The lam of `information_across`, by scipy's SLSQP.

    Variables are in standard deviations of each arm's mean, in which the objective is
    nearly a sphere.
    """
    arms = np.flatnonzero(direction)
    m, weight, v = mu[arms], w[arms], direction[arms]
    # Within a domain an arm may have no samples at all and still move only so far.
    least = 0.0 if rewards.domain is None else 1e-4
    unit = np.sqrt(rewards.variance(m, arms) / np.maximum(weight, least))
    # What a Gaussian would need sets the scale of both objective and variables.
    gap = -float(v @ m)
    rough = gap**2 / (2 * float(v**2 @ unit**2))
    unit = unit * math.sqrt(2 * rough)
    low, high = rewards.limits(margin=1e-9)

    def lam(x: np.ndarray) -> np.ndarray:
        return np.clip(m + unit * x, low, high)

    bounds = list(zip((low - m) / unit, (high - m) / unit, strict=True))
    x = np.clip((m.mean() - m) / unit, *np.transpose(bounds))  # all alike: on the hyperplane
    for _ in range(3):  # a fresh start forgets a bad quadratic model
        x = scipy.optimize.minimize(
            lambda x: float(weight @ rewards.divergence(m, lam(x), arms)) / rough,
            x,
            jac=lambda x: weight * rewards.slope(m, lam(x), arms) * unit / rough,
            bounds=bounds,
            constraints={
                "type": "ineq",
                "fun": lambda x: v @ lam(x) / gap,
                "jac": lambda _: v * unit / gap,
            },
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        ).x
    if v @ lam(x) < -1e-9 * gap:
        raise ArithmeticError("SLSQP left the half-space")
    found = mu.copy()
    found[arms] = lam(x)
    return found
