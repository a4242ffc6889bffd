"""Slow twins of what rewards tell, and of their random stream."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.sparse

MASK = 2**64 - 1


class Xoshiro:
    """xoshiro256++ as published (Blackman & Vigna), in Python's integers."""

    def __init__(self, state):
        self.s = [int(x) for x in state]

    def word(self):
        s = self.s

        def rotate(x, k):
            return ((x << k) | (x >> (64 - k))) & MASK

        word = (rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
        return word

    def uniform(self):
        return (self.word() >> 11) / 2**53


# ---------------------------------------------------------------- families, in unit coordinates


def _part(mu, lam):
    return mu * math.log(mu / lam) if mu > 0 else 0.0


@dataclass
class Law:
    """A family's divergence and tilt; `kind` is gaussian, bernoulli or poisson."""

    kind: str
    variance: np.ndarray
    offset: float = 0.0  # alternatives are v . lam <= -offset

    def spread(self, mu):
        """Variances at these means."""
        if self.kind == "gaussian":
            return self.variance
        return mu if self.kind == "poisson" else mu * (1 - mu)

    def divergence(self, a, mu, lam):
        if self.kind == "gaussian":
            return (mu - lam) ** 2 / (2 * self.variance[a])
        if self.kind == "poisson":
            return lam - mu + _part(mu, lam)
        return _part(mu, lam) + _part(1 - mu, 1 - lam)

    def tilted(self, a, mu, s):
        """The solution of lam - mu + s V(lam) = 0."""
        if self.kind == "gaussian":
            return mu - s * self.variance[a]
        root = math.sqrt((1 + s) ** 2 - 4 * s * mu)
        if s >= 0:
            return 2 * mu / (1 + s + root)
        return 1 - 2 * (1 - mu) / (1 - s + root)

    def closest(self, v, mu, w):
        """Closest point with v . lam <= -offset, where v . mu is more: by a multiplier gamma."""
        arms = np.flatnonzero(v)
        lam = mu.copy()
        if self.kind == "gaussian":
            gamma = (v @ mu + self.offset) / sum(self.variance[a] * v[a] ** 2 / w[a] for a in arms)
        elif self.kind == "poisson":
            # The multiplier ends at a pole, and a mean of 0 comes very close to it: look for
            # the way left to it, with which no denominator is a difference.
            last = min((a for a in arms if v[a] < 0), key=lambda a: w[a] / -v[a])
            pole = w[last] / -v[last]
            rest = w + pole * v
            rest[last] = 0.0

            def share(left):
                return w[arms] / (rest[arms] - left * v[arms]) * mu[arms]

            def excess(left):
                return self.offset + float(v[arms] @ share(left))

            if mu[last] == 0:  # its mean is free at the pole itself
                others = arms[arms != last]
                lam[others] = w[others] / rest[others] * mu[others]
                if self.offset + v[others] @ lam[others] > 0:
                    lam[last] = (self.offset + v[others] @ lam[others]) / -v[last]
                    return lam
            low = 1e-3 * pole
            while excess(low) > 0:
                low *= 1e-3
            left = scipy.optimize.brentq(excess, low, pole, xtol=1e-300, rtol=1e-15)
            lam[arms] = share(left)
            return lam
        else:

            def excess(gamma):
                tilted = (v[a] * self.tilted(a, mu[a], gamma * v[a] / w[a]) for a in arms)
                return self.offset + sum(tilted)

            low, high = 0.0, 1e-6 * float(w[arms].sum())
            while excess(high) > 0:
                low, high = high, 4 * high
            gamma = scipy.optimize.brentq(excess, low, high, xtol=1e-300, rtol=1e-15)
        for a in arms:
            lam[a] = self.tilted(a, mu[a], gamma * v[a] / w[a])
        return lam

    def respond(self, v, mu, w):
        """Information D(w) across an edge, and per arm; 0 if the edge does not lose."""
        d = np.zeros(len(mu))
        if self.offset + sum(v[a] * mu[a] for a in np.flatnonzero(v)) <= 0:
            return 0.0, d, mu.copy()
        lam = self.closest(v, mu, w)
        for a in np.flatnonzero(v):
            d[a] = self.divergence(a, mu[a], lam[a])
        return float(d @ w), d, lam

    def optimistic(self, a, mu, n, lam, f):
        """Largest d(x, lam) over x with n d(mu, x) <= f, and at least f / n."""
        level = f / n
        if self.kind == "gaussian":
            step = math.sqrt(2 * self.variance[a] * level)
            return max(level, *(self.divergence(a, x, lam) for x in (mu - step, mu + step)))
        lam = max(lam, 1e-9) if self.kind == "poisson" else min(max(lam, 1e-9), 1 - 1e-9)
        ends = [1e-12, 1 - 1e-12 if self.kind == "bernoulli" else mu + 10 * (level + 1 + mu)]
        best = level
        for end in ends:
            x = end
            if self.divergence(a, mu, end) > level > 0:
                x = scipy.optimize.brentq(
                    lambda y: self.divergence(a, mu, y) - level, *sorted((mu, end)), rtol=1e-14
                )
            elif level == 0:
                x = mu
            best = max(best, self.divergence(a, x, lam))
        return best
