"""Information across an edge in 60 digits, by bisection: slow, and sure of every digit.

Shares nothing with the program but the definition (docs/theory/characteristic_time.md):
D(w) is the largest of gamma gap + sum_a w_a min over lam of (d(mu_a, lam) + s_a (lam - mu_a)),
s_a = gamma v_a / w_a, over gamma >= 0, a concave function.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from optimum import edges_of
from simplexplore.problem.rational import rational

DIGITS = 60


def decimal(x):
    """A fraction, or a float's own value, in as many digits as there are."""
    x = Fraction(x)
    return Decimal(x.numerator) / Decimal(x.denominator)


def part(mu, lam):
    return mu * (mu / lam).ln() if mu else Decimal(0)


def divergence(kind, mu, lam, variance):
    if kind == "gaussian":
        return (mu - lam) ** 2 / (2 * variance)
    if kind == "poisson":
        return part(mu, lam) + lam - mu
    return part(mu, lam) + part(1 - mu, 1 - lam)


def tilt(kind, mu, s, variance):
    """argmin of d(mu, lam) + s lam."""
    if kind == "gaussian":
        return mu - s * variance
    if kind == "poisson":
        return mu / (1 + s) if mu else mu
    if s == 0:
        return mu
    # s lam^2 - (1 + s) lam + mu = 0, its root between 0 and 1
    return ((1 + s) - ((1 + s) ** 2 - 4 * s * mu).sqrt()) / (2 * s)


def information(kind, v, mu, w, variance=None, offset=0, domain=None):
    """D(w) across one edge, a Decimal; arguments are fractions or floats, exactly as they are.

    Rewards are Gaussian, Bernoulli or Poisson; alternatives satisfy v . lam <= -offset.
    """
    with localcontext(prec=DIGITS):
        used = [a for a in range(len(v)) if v[a]]
        v = [decimal(v[a]) for a in used]
        gap = decimal(offset) + sum(x * decimal(mu[a]) for x, a in zip(v, used, strict=True))
        if gap <= 0:
            return Decimal(0)
        w = [decimal(w[a]) for a in used]
        variance = [decimal(variance[a]) if variance is not None else None for a in used]
        mu = [decimal(mu[a]) for a in used]
        ends = None if domain is None else [decimal(x) for x in domain]

        arms = list(zip(v, mu, w, variance, strict=True))

        def closest(gamma):
            """(s, lam) of each arm."""
            for x, m, n, spread in arms:
                s = gamma * x / n
                if ends is not None and kind == "poisson" and s <= -1 and (m or s < -1):
                    lam = ends[1]
                else:
                    lam = tilt(kind, m, s, spread)
                yield s, lam if ends is None else min(max(lam, ends[0]), ends[1])

        def slope(gamma):
            found = zip(arms, closest(gamma), strict=True)
            return gap + sum(x * (lam - m) for (x, m, _, _), (_, lam) in found)

        def value(gamma):
            found = zip(arms, closest(gamma), strict=True)
            return gamma * gap + sum(
                n * (divergence(kind, m, lam, spread) + s * (lam - m))
                for (_, m, n, spread), (s, lam) in found
            )

        if kind == "poisson" and ends is None:  # the tilt has a pole
            pole = min(n / -x for x, n in zip(v, w, strict=True) if x < 0)
            return value(_root(slope, lambda t: pole * t / (1 + t)))
        return value(_root(slope, lambda t: t))


def _root(slope, gamma):
    """The multiplier at the root of the slope, which falls."""
    low = high = Decimal(1)
    while slope(gamma(high)) > 0:
        low, high = high, high * 16
        if high > Decimal(10) ** (DIGITS - 15):  # a mean of 0: the pole itself
            return gamma(high)
    while slope(gamma(low)) < 0:
        low, high = low / 16, low
    # The value is flat at its largest: half of the digits are enough.
    for _ in range(int(DIGITS / 2 / math.log10(2)) + 20):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(gamma(middle)) > 0 else (low, middle)
    return gamma(low)


def time(bound, w, means):
    """Characteristic time at an allocation, at exact means in unit coordinates."""
    rewards = bound.problem.rewards
    kind = "bernoulli" if rewards.name == "bounded" else rewards.name
    variance = None
    if kind == "gaussian":
        variance = [Fraction(float(x)) ** 2 for x in rewards.sigmas(len(means))]
    domain = rewards.domain
    if rewards.name == "bounded" and domain is not None:
        domain = [unit(rewards, x) for x in domain]
    edges = edges_of(bound.problem, bound.means)
    least = min(
        information(kind, _dense(edges.exact(e), len(means)), means, w, variance, 0, domain)
        for e in range(len(edges))
    )
    with localcontext(prec=DIGITS):
        return 1 / least


def unit(rewards, mean):
    """A mean in unit coordinates, exactly."""
    if rewards.name != "bounded":
        return Fraction(mean)
    low, high = (rational(x) for x in (rewards.low, rewards.high))
    return (Fraction(mean) - low) / (high - low)


def _dense(direction, size):
    return [-direction.get(a, Fraction(0)) for a in range(size)]
