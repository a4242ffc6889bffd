"""The certified evidence of `tilt` against its value at feasible means, in extended precision.

A state is counts, means, a direction, and for bounded rewards what was told. Values are computed
from the definition in docs/theory/stopping.md; that a point is feasible is decided in fractions.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.optimize
import scipy.special

from simplexplore import Bernoulli, Bounded, Gaussian, Poisson
from tilting import LOSE, SCALES, WIN, Comparison

FAMILIES = {
    "gaussian": Gaussian,
    "gaussian in a domain": lambda sigma: Gaussian(sigma, domain=(-1.0, 1.5)),
    "bernoulli": lambda _: Bernoulli(),
    "bernoulli in a domain": lambda _: Bernoulli(domain=(0.01, 0.6)),
    "poisson": lambda _: Poisson(),
    "bounded": lambda _: Bounded(0.0, 1.0),
}

# By how much of their terms' size values in extended precision may be too small; and by how much
# of itself the value of conjugate mixtures, in plain precision.
ROUNDING, SLACK = 1e-15, 1e-12

STRENGTH = 1.6 ** -np.arange(31, dtype=np.longdouble)
STRENGTH[30] = 0
LOG_SCALE = np.log(np.array(SCALES, dtype=np.longdouble) / sum(SCALES))


def _tilts(prior):
    """Which tilts a scale mixes (20, m), and the logs of their weights (m,)."""
    scales = np.arange(20)
    mixed = np.array([scales * 0 + 30 if step is None else scales + step for step in prior]).T
    weights = np.array(list(prior.values()), dtype=np.longdouble)
    return mixed, np.log(weights / weights.sum())


TILTS = {1: _tilts(WIN), -1: _tilts(LOSE)}


@dataclass
class State:
    """Data of a comparison, in unit coordinates."""

    family: str
    n: np.ndarray
    mean: np.ndarray
    v: np.ndarray
    offset: float
    sigma: np.ndarray
    atoms: np.ndarray | None = None  # (K, 3) rewards that were told (bounded), and how often
    times: np.ndarray | None = None

    def exponents(self, arm, points):
        """Logs of an arm's tilts (points, 31)."""
        lam = points[:, None].astype(np.longdouble)
        n, mean = np.longdouble(self.n[arm]), np.longdouble(self.mean[arm])
        sign = np.sign(self.v[arm])
        strongest = 3.0 if self.family.startswith("b") else 1.5
        t = sign * strongest * STRENGTH
        if self.family.startswith("gaussian"):
            return t * n * (mean - lam) / np.longdouble(self.sigma[arm]) - n * t * t / 2
        b = np.expm1(t)
        if self.family == "poisson":
            return n * (t * mean - b * lam)
        data = n * t * mean
        if self.atoms is not None:
            told = self.atoms[arm][:, None].astype(np.longdouble)
            data = (self.times[arm][:, None] * np.log1p(b * told)).sum(axis=0)
        return data - n * np.log1p(b * lam)

    def log_tilts(self, points):
        """Log of the mixture of tilts at means (points, K)."""
        total = LOG_SCALE
        for arm in range(len(self.n)):
            x = self.exponents(arm, points[:, arm])
            mixed, log_weights = TILTS[int(np.sign(self.v[arm]))]
            y = x[:, mixed] + log_weights
            top = y.max(axis=2)
            total = total + top + np.log(np.exp(y - top[:, :, None]).sum(axis=2))
        top = total.max(axis=1, keepdims=True)
        return top[:, 0] + np.log(np.exp(total - top).sum(axis=1))

    def log_conjugate(self, points):
        """Log of the conjugate mixture at means (points, K)."""
        n, m = self.n, self.mean
        if self.family.startswith("gaussian"):
            c = np.array([16.0] if "domain" in self.family else 4.0 ** np.arange(7))[:, None, None]
            away = ((m - points) / self.sigma) ** 2
            parts = 0.5 * n * n * away / (n + c) - 0.5 * np.log1p(n / c)
            return scipy.special.logsumexp(parts.sum(axis=2), axis=0) - math.log(len(c))
        s = n * m
        if self.family == "poisson":
            prior = 0.5 * math.log(0.5) - math.lgamma(0.5) + scipy.special.gammaln(s + 0.5)
            prior = prior - (s + 0.5) * np.log(n + 0.5)
            return (n * points - scipy.special.xlogy(s, points) + prior).sum(axis=1)
        prior = scipy.special.betaln(s + 0.5, n - s + 0.5) - math.log(math.pi)
        hits, misses = scipy.special.xlogy(s, points), scipy.special.xlog1py(n - s, -points)
        return (prior - hits - misses).sum(axis=1)

    def size_of(self, points):
        """Of what size the terms are that add up to a value: its rounding is relative to that."""
        return 1 + (self.n * (abs(self.mean) + abs(points)) / self.sigma).sum(axis=1)


def comparison_of(state):
    """The product's comparison with the data of a state."""
    rewards = FAMILIES[state.family](tuple(state.sigma))
    one = Comparison(rewards, state.v, state.n, state.mean, state.offset)
    if state.atoms is not None:
        slope = one.config.tilts.slope  # (2, 31)
        for a in range(len(state.n)):
            sums = np.log1p(slope[:, :, None] * state.atoms[a]) @ state.times[a]
            one.run.log_wealth[a] = sums.ravel()
    return one


def random_state(rng, family, low, high):
    """Counts from 1 to 1e6, coefficients from 1e-12, means at the ends of the range or close."""
    size = int(rng.choice([2, 2, 3, 4]))
    n = np.floor(10 ** rng.uniform(0, 6, size))
    v = rng.choice([-1.0, 1.0], size) * 10 ** rng.uniform(-1, 1, size)
    v[0], v[1] = abs(v[0]), -abs(v[1])
    if rng.random() < 0.3:
        v[rng.integers(size)] *= 10 ** -rng.uniform(3, 12)
    sigma = 10 ** rng.uniform(-1, 1, size) if family.startswith("gaussian") else np.ones(size)
    atoms = times = None
    if family == "bounded":
        times = np.floor(10 ** rng.uniform(0, 5.5, (size, 3)))
        spread = 10 ** rng.uniform(-4, 0)
        atoms = np.clip(rng.random((size, 1)) + spread * rng.normal(size=(size, 3)), 0.0, 1.0)
        n = times.sum(axis=1)
        mean = (times * atoms).sum(axis=1) / n
    elif family.startswith("gaussian"):
        mean = rng.normal(size=size) * 10 ** rng.uniform(-3, 0.5)
    else:
        rate = 10 ** rng.uniform(-6, 0 if family.startswith("b") else 2)
        mean = np.round(np.clip(rate * rng.uniform(0.5, 1.5, size), 0, None) * n) / n
        if family.startswith("b"):
            mean = np.where(rng.random() < 0.5, mean, 1 - mean).clip(0.0, 1.0)
            mean = np.where(rng.random(size) < 0.1, rng.choice([0.0, 1.0], size), mean)
        mean = np.where(rng.random(size) < 0.05, 0.0, mean)
    offset = 0.0 if rng.random() < 0.7 else float(rng.normal() * abs(v @ mean))
    if v @ np.clip(mean, low, high) + offset <= 0:
        v, offset = -v, -offset
    return State(family, n, mean, v, offset, sigma, atoms, times)


class Exact:
    """m 2^e, exactly: faster than a fraction, and enough for sums of products of floats."""

    __slots__ = ("e", "m")

    def __init__(self, m, e):
        self.m, self.e = m, e

    def __add__(self, other):
        if self.e > other.e:
            return other + self
        return Exact(self.m + (other.m << (other.e - self.e)), self.e)

    def __gt__(self, zero):
        return self.m > zero

    def __float__(self):
        return float(Fraction(self.m) * Fraction(2) ** self.e)


def exact_sum(pairs):
    """The sum of products of floats."""
    total = Exact(0, 0)
    for pair in pairs:
        (a, i), (b, j) = (math.frexp(x) for x in pair)
        total += Exact(int(a * 2**53) * int(b * 2**53), i + j - 106)
    return total


def on_the_plane(state, lam, arm, low, high):
    """The point with one arm moved to where v . lam + offset is 0 or just below; None if it cannot.

    What it is, is computed exactly.
    """
    found = np.clip(lam, low, high)
    found[arm] = 0.0
    others = exact_sum([*zip(state.v, found, strict=True), (state.offset, 1.0)])
    v = float(state.v[arm])
    there = -float(others) / v
    if not math.isfinite(there):
        return None
    away = -math.copysign(math.inf, v)
    step = math.ulp(there)
    while others + exact_sum([(v, there)]) > 0:
        there = math.nextafter(there, away)
        there += math.copysign(step, away)
        step *= 2
        if math.isinf(there):
            return None
    there = float(min(max(there, low), high))  # the nearest end will do if it is on the right side
    if others + exact_sum([(v, there)]) > 0:
        return None
    found[arm] = there
    return found


def feasible_points(rng, state, lam, low, high, count):
    """Means at which the direction pays: near lam, far from it, at the ends of the range."""
    size = len(lam)
    spread = np.maximum(state.sigma / np.sqrt(state.n), 1e-300)
    tried = [(lam, a) for a in range(size)]
    for _ in range(count):
        step = rng.normal(size=size) * 10 ** rng.uniform(-8, 1) * spread
        tried.append((lam + step, int(rng.integers(size))))
    for a in range(size):
        for end in (low, high, state.mean[a]):
            if math.isfinite(end):
                corner = lam.copy()
                corner[a] = end
                tried += [(corner, b) for b in range(size) if b != a]
    found = [on_the_plane(state, point, a, low, high) for point, a in tried]
    return np.array([point for point in found if point is not None])


def searched(state, lam, low, high):
    """The point of least evidence that scipy finds from lam, made feasible; None if it cannot."""
    arm = int(np.argmax(abs(state.v)))
    others = [a for a in range(len(lam)) if a != arm]

    def point(x):
        full = lam.copy()
        full[others] = np.clip(x, low, high)
        full[arm] = -(state.v[others] @ full[others] + state.offset) / state.v[arm]
        return full

    def value(x):
        full = point(x)
        if not low <= full[arm] <= high:
            return 1e9
        return float(state.log_tilts(full[None])[0])

    options = {"maxfev": 150}
    found = scipy.optimize.minimize(value, lam[others], method="Nelder-Mead", options=options)
    return on_the_plane(state, point(found.x), arm, low, high)


def check_certificates(family, count, seed, points=6, search_every=100):
    """Random states, each with many feasible points, by their number.

    Returns the number of points; the largest excess of a certificate over a value, relative to the
    size of the terms that add up to it; that of the rule's evidence, relative to the value; and
    what certificates lose in nats where there are 0 to 60 of them, the tilts' own range.
    """
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    any_one = Comparison(FAMILIES[family]((1.0, 1.0)), [1.0, -1.0], [1.0, 1.0], [0.5, 0.5])
    low, high = any_one.config.lowest, any_one.config.highest
    asked = tested = 0
    excess = whole = -math.inf
    losses = []
    while asked < count:
        state = random_state(rng, family, low, high)
        one = comparison_of(state)
        bound, lam = one.certified()
        evidence = one.evidence()
        feasible = feasible_points(rng, state, np.clip(lam, low, high), low, high, points)
        if asked % search_every == 0:
            point = searched(state, np.clip(lam, low, high), low, high)
            feasible = feasible if point is None else np.vstack([*feasible, point])
        if not len(feasible):
            continue
        asked += 1
        tested += len(feasible)
        tilts = state.log_tilts(feasible)
        both = np.logaddexp(tilts + math.log(0.95), state.log_conjugate(feasible) + math.log(0.05))
        assert not np.isnan(both).any()
        size = state.size_of(feasible)
        excess = max(excess, float(((bound - tilts) / size).max()))
        # Evidence of 0 says nothing, and is always right.
        whole = max(whole, float((evidence / np.maximum(both, 1e-9)).max()) - 1 if evidence else -1)
        least = float(tilts.min())
        if 0 < least < 60:
            losses.append(least - bound)
    return tested, excess, whole, np.array(losses)
