"""Information for families whose closest alternative is a one-dimensional root.

Bernoulli (bounded rewards too, rescaled), Poisson, and Gaussian with a domain. The same
functions as in gaussian.py; see simplexplore.information for the mathematics.
"""

from __future__ import annotations

import math

from numba import njit

from .records import BERNOULLI, GAUSSIAN, VERTEX
from .rng import normal, poisson, uniform


@njit
def draw(setting, run, mean, noise):
    """One reward."""
    if setting.family == BERNOULLI:
        return 1.0 if uniform(run.rewards) < mean else 0.0
    if setting.family == GAUSSIAN:
        return mean + noise * normal(run.rewards)
    return poisson(run.rewards, mean)


@njit
def tilted(setting, arm, mu, s):
    """lam(s) within the domain, and -d lam / ds (0 where the domain holds it)."""
    if setting.family == BERNOULLI:
        strength = abs(s)
        rarer = mu if s >= 0.0 else 1.0 - mu
        root = math.sqrt(max((1.0 + strength) ** 2 - 4.0 * strength * rarer, 0.0))
        lam = 2.0 * rarer / (1.0 + strength + root)
        rate = lam * (1.0 - lam) / max(root, 1e-300)
        if s < 0.0:
            lam = 1.0 - lam
    elif setting.family == GAUSSIAN:
        rate = setting.variance[arm]
        lam = mu - s * rate
    else:
        room = max(1.0 + s, 1e-50)
        lam = mu / room
        rate = lam / room
    if lam <= setting.domain_low:
        return setting.domain_low, 0.0
    if lam >= setting.domain_high:
        return setting.domain_high, 0.0
    return lam, rate


@njit
def shared_cost(mu, lam):
    """mu log(mu / lam) + lam - mu, by a series where the terms cancel."""
    if mu <= 0.0:
        return lam - mu
    x = (lam - mu) / mu
    if abs(x) < 0.01:
        return (
            mu
            * x
            * x
            * (0.5 - x * (1.0 / 3.0 - x * (0.25 - x * (0.2 - x * (1.0 / 6.0 - x / 7.0)))))
        )
    return mu * (x - math.log(max(lam / mu, 1e-300)))


@njit
def divergence(setting, arm, mu, lam):
    """Information of one sample."""
    if setting.family == BERNOULLI:
        return shared_cost(mu, lam) + shared_cost(1.0 - mu, 1.0 - lam)
    if setting.family == GAUSSIAN:
        return 0.5 * (mu - lam) ** 2 / setting.variance[arm]
    return shared_cost(mu, lam)


@njit
def multiplier(setting, table, run, edge, gap, w):
    """gamma with v . lam(gamma v / w) + offset = 0, by Newton's method inside a bracket."""
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    weight = 0.0
    low = 0.0
    high = math.inf
    for k in range(first, last):
        a = table.arm[k]
        weight += w[a]
        if setting.family > BERNOULLI and table.v[k] < 0.0 and setting.domain_high == math.inf:
            high = min(high, -w[a] / table.v[k])  # Poisson: tilts above -1
    gamma = table.root[edge] * weight
    if not (gamma > 0.0 and gamma < high):
        steep = 0.0
        for k in range(first, last):
            a = table.arm[k]
            _, rate = tilted(setting, a, run.clipped[a], 0.0)
            steep += table.v[k] * table.v[k] * rate / w[a]
        gamma = gap / steep if steep > 0.0 else weight
        if not gamma < high:
            gamma = 0.5 * high
    for _ in range(200):
        excess = table.offset[edge]
        steep = 0.0
        for k in range(first, last):
            a = table.arm[k]
            v = table.v[k]
            lam, rate = tilted(setting, a, run.clipped[a], gamma * v / w[a])
            excess += v * lam
            steep += v * v * rate / w[a]
        if excess > 0.0:
            low = gamma
        else:
            high = gamma
        if abs(excess) <= 1e-13 * gap:
            break
        following = gamma + excess / steep if steep > 0.0 else math.inf
        if not (following > low and following < high):
            following = 0.5 * (low + high) if high < math.inf else 4.0 * gamma
        if abs(following - gamma) <= 1e-15 * gamma:
            break
        gamma = following
    table.root[edge] = gamma / weight
    return gamma


@njit
def respond(setting, table, run, edge, base, w):
    """Closest alternative across an edge: D_e(w), and its gradient by the edge's arms.

    The gradient of entry k lies at run.gradient[k - base].
    """
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    gap = table.offset[edge]
    for k in range(first, last):
        gap += table.v[k] * run.clipped[table.arm[k]]
    if gap <= 0.0:
        for k in range(first, last):
            run.gradient[k - base] = 0.0
        return 0.0
    gamma = multiplier(setting, table, run, edge, gap, w)
    value = 0.0
    for k in range(first, last):
        a = table.arm[k]
        mu = run.clipped[a]
        lam, _ = tilted(setting, a, mu, gamma * table.v[k] / w[a])
        d = divergence(setting, a, mu, lam)
        run.gradient[k - base] = d
        value += w[a] * d
    return value


@njit
def evaluate(setting, table, run, e):
    """Recompute gap and statistic of one edge of the vertex."""
    vertex = run.integers[VERTEX]
    edge = table.first_edge[vertex] + e
    gap = table.offset[edge]
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        gap += table.v[k] * run.clipped[table.arm[k]]
    run.gap[e] = gap
    run.value[e] = respond(setting, table, run, edge, table.first_entry[edge], run.n)


@njit
def refresh(setting, table, run):
    """Recompute gaps and statistics of all edges of the vertex."""
    run.scale[0] = 0.0
    for a in range(setting.size):
        run.scale[0] = max(run.scale[0], abs(run.clipped[a]))
    vertex = run.integers[VERTEX]
    for e in range(table.first_edge[vertex + 1] - table.first_edge[vertex]):
        evaluate(setting, table, run, e)


@njit
def touch(setting, table, run, arm, moved, slower):
    """Update the edges that contain an arm whose mean and number of pulls changed."""
    vertex = run.integers[VERTEX]
    for k in range(table.first_column[vertex, arm], table.first_column[vertex, arm + 1]):
        evaluate(setting, table, run, table.column_edge[k])


@njit
def regret_of_mixture(setting, n, mean):
    """log of (likelihood at the mean) / (likelihood under a conjugate mixture), THEORY 1.4."""
    if setting.family == BERNOULLI:  # Beta(1/2, 1/2)
        s = n * mean
        fit = 0.0
        if mean > 0.0:
            fit += s * math.log(mean)
        if mean < 1.0:
            fit += (n - s) * math.log(1.0 - mean)
        beta = math.lgamma(s + 0.5) + math.lgamma(n - s + 0.5) - math.lgamma(n + 1.0)
        return fit - beta + math.log(math.pi)
    if setting.family == GAUSSIAN:  # see gaussian.py; one mixture with c = 16
        return 0.5 * math.log1p(n / 16.0)
    s = n * mean  # Gamma(1/2, 1/2)
    fit = s * math.log(mean) - s if mean > 0.0 else 0.0
    mixture = (
        0.5 * math.log(0.5)
        - math.lgamma(0.5)
        + math.lgamma(s + 0.5)
        - (s + 0.5) * math.log(n + 0.5)
    )
    return fit - mixture


@njit
def mixture_reached(setting, table, run, edge, statistic):
    """Whether an edge's evidence beats the mixture threshold (THEORY 1.4)."""
    level = setting.log_union
    shrink = 1.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        level += regret_of_mixture(setting, run.n[a], run.mean[a])
        shrink = min(shrink, run.n[a] / (run.n[a] + 16.0))
    if setting.family == GAUSSIAN:
        # With n / (n + c) of each arm's information the closed form's shrunk statistic is
        # at least this much of the plain one.
        return statistic * shrink >= level
    return statistic >= level


@njit
def kk21_penalty(n):
    """Kaufmann & Koolen's price of an arm's samples, exponential families."""
    return 3.0 * math.log1p(math.log(n))


@njit
def farthest(setting, arm, mu, level, upwards):
    """The mean on one side of mu whose divergence d(mu, .) is the level, or the range's end.

    Newton's method from beyond the root (by Pinsker's inequality and its like) on a convex
    function: it never steps back across.
    """
    if setting.family == GAUSSIAN:
        step = math.sqrt(2.0 * setting.variance[arm] * level)
        return mu + step if upwards else mu - step
    if setting.family == BERNOULLI:
        step = math.sqrt(0.5 * level)
        x = min(mu + step, 1.0 - 1e-12) if upwards else max(mu - step, 1e-12)
    elif upwards:
        x = mu + level + math.sqrt(2.0 * mu * level + level * level)
    else:
        x = max(mu - math.sqrt(2.0 * mu * level), 1e-12)
    for _ in range(50):
        excess = divergence(setting, arm, mu, x) - level
        spread = x * (1.0 - x) if setting.family == BERNOULLI else x
        slope = (x - mu) / spread
        if not (excess > 1e-12 * level) or slope == 0.0:
            break
        x -= excess / slope
    return x


@njit
def optimistic(setting, mean, n, lam, arm, f):
    """Largest divergence from lam over means that n samples cannot rule out (CGE's U)."""
    level = f / n
    gain = level
    upper = farthest(setting, arm, mean, level, True)
    lower = farthest(setting, arm, mean, level, False)
    if setting.family == BERNOULLI:
        lam = min(max(lam, 1e-9), 1.0 - 1e-9)
    gain = max(gain, divergence(setting, arm, upper, lam))
    return max(gain, divergence(setting, arm, lower, lam))


@njit
def alternative(setting, table, run, w, slack, lam):
    """Write the closest alternative at w over all edges of the vertex into lam."""
    vertex = run.integers[VERTEX]
    closest = table.first_edge[vertex]
    least = math.inf
    for edge in range(closest, table.first_edge[vertex + 1]):
        value = respond(setting, table, run, edge, table.first_entry[edge], w)
        if value < least:
            least = value
            closest = edge
    for a in range(setting.size):
        lam[a] = run.clipped[a]
    if least <= 0.0:
        return
    weight = 0.0
    for k in range(table.first_entry[closest], table.first_entry[closest + 1]):
        weight += w[table.arm[k]]
    gamma = table.root[closest] * weight
    for k in range(table.first_entry[closest], table.first_entry[closest + 1]):
        a = table.arm[k]
        lam[a], _ = tilted(setting, a, run.clipped[a], gamma * table.v[k] / w[a])
