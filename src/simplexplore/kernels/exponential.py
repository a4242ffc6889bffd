"""Information for families whose closest alternative is a one-dimensional root.

Bernoulli (bounded rewards too, rescaled), Poisson, and Gaussian with a domain. The same
functions as in gaussian.py; see docs/theory/characteristic_time.md for the mathematics. What is
peculiar to a family stands at the top, one function for each thing that is asked of it; the rest
of the file serves them all.
"""

from __future__ import annotations

import math

from .kernel import inlined, kernel
from .records import BERNOULLI, GAUSSIAN, VERTEX, Run, Setting, Table, Vector
from .rng import normal, poisson, uniform

# Robbins' mixture for Gaussian rewards has this many samples' worth of variance.
PRIOR_SAMPLES = 16.0

# Means are kept this far from the ends of their range where a divergence would be infinite.
_MARGIN = 1e-9


# ---------------------------------------------------------------- what is peculiar to a family


@inlined
def draw(setting: Setting, run: Run, mean: float, noise: float) -> float:
    """One reward."""
    if setting.family == BERNOULLI:
        return 1.0 if uniform(run.rewards) < mean else 0.0
    if setting.family == GAUSSIAN:
        return mean + noise * normal(run.rewards)
    return poisson(run.rewards, mean)


@inlined
def tilt(setting: Setting, arm: int, mu: float, s: float) -> tuple[float, float]:
    """lam(s), which minimises d(mu, lam) + s lam, and -d lam / ds."""
    if setting.family == BERNOULLI:
        strength = abs(s)
        rarer = mu if s >= 0.0 else 1.0 - mu
        square = (1.0 + strength) * (1.0 + strength) - 4.0 * strength * rarer
        root = math.sqrt(max(square, 0.0))
        lam = 2.0 * rarer / (1.0 + strength + root)
        rate = lam * (1.0 - lam) / max(root, 1e-300)
        return (1.0 - lam if s < 0.0 else lam), rate
    if setting.family == GAUSSIAN:
        rate = setting.variance[arm]
        return mu - s * rate, rate
    room = max(1.0 + s, 1e-50)
    lam = mu / room
    return lam, lam / room


@inlined
def shared_cost(mu: float, lam: float) -> float:
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


@inlined
def divergence(setting: Setting, arm: int, mu: float, lam: float) -> float:
    """Information of one sample."""
    if setting.family == BERNOULLI:
        return shared_cost(mu, lam) + shared_cost(1.0 - mu, 1.0 - lam)
    if setting.family == GAUSSIAN:
        return 0.5 * ((mu - lam) * (mu - lam)) / setting.variance[arm]
    return shared_cost(mu, lam)


@inlined
def variance_at(setting: Setting, arm: int, mean: float) -> float:
    """Variance of a reward with that mean."""
    if setting.family == BERNOULLI:
        return mean * (1.0 - mean)
    return setting.variance[arm] if setting.family == GAUSSIAN else mean


@inlined
def log_gamma(x: float) -> float:
    """log Gamma(x) for x > 0: Stirling's series from 10 on, the recurrence below.

    Ours because the libraries of Python, compiled code and GPUs differ in the last digits.
    """
    product = 1.0
    while x < 10.0:
        product *= x
        x += 1.0
    y = 1.0 / (x * x)
    series = 1.0 / 12.0 - y * (
        1.0 / 360.0
        - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y * (1.0 / 1188.0 - y * 691.0 / 360360.0)))
    )
    rest = (x - 0.5) * math.log(x) - x + 0.9189385332046727 + series / x
    return rest - math.log(product)


@kernel
def regret_of_mixture(family: int, n: float, mean: float) -> float:
    """log of (likelihood at the mean) / (likelihood under a conjugate mixture).

    R in docs/theory/stopping.md.
    """
    if family == BERNOULLI:  # Beta(1/2, 1/2)
        s = n * mean
        fit = 0.0
        if mean > 0.0:
            fit += s * math.log(mean)
        if mean < 1.0:
            fit += (n - s) * math.log(1.0 - mean)
        beta = log_gamma(s + 0.5) + log_gamma(n - s + 0.5) - log_gamma(n + 1.0)
        return fit - beta + math.log(math.pi)
    if family == GAUSSIAN:  # see gaussian.py; one mixture instead of a grid of them
        return 0.5 * math.log1p(n / PRIOR_SAMPLES)
    s = n * mean  # Gamma(1/2, 1/2)
    fit = s * math.log(mean) - s if mean > 0.0 else 0.0
    mixture = (
        0.5 * math.log(0.5) - log_gamma(0.5) + log_gamma(s + 0.5) - (s + 0.5) * math.log(n + 0.5)
    )
    return fit - mixture


@inlined
def weight_of_mixture(setting: Setting, n: float) -> float:
    """The share of an arm's evidence that its mixture keeps."""
    return n / (n + PRIOR_SAMPLES) if setting.family == GAUSSIAN else 1.0


@inlined
def beyond(setting: Setting, arm: int, mu: float, level: float, upwards: bool) -> float:
    """A mean whose divergence from mu is at least the level (Pinsker's inequality and its like)."""
    if setting.family == BERNOULLI:
        step = math.sqrt(0.5 * level)
        return min(mu + step, 1.0 - 1e-12) if upwards else max(mu - step, 1e-12)
    if setting.family == GAUSSIAN:
        step = math.sqrt(2.0 * setting.variance[arm] * level)
        return mu + step if upwards else mu - step
    if upwards:
        return mu + level + math.sqrt(2.0 * mu * level + level * level)
    return max(mu - math.sqrt(2.0 * mu * level), 1e-12)


# ---------------------------------------------------------------- the same for all of them


@inlined
def tilted(setting: Setting, arm: int, mu: float, s: float) -> tuple[float, float]:
    """`tilt` within the domain; the second is 0 where the domain holds the first."""
    lam, rate = tilt(setting, arm, mu, s)
    if lam <= setting.domain_low:
        return setting.domain_low, 0.0
    if lam >= setting.domain_high:
        return setting.domain_high, 0.0
    return lam, rate


@kernel
def multiplier(setting: Setting, table: Table, run: Run, edge: int, gap: float, w: Vector) -> float:
    """gamma with v . lam(gamma v / w) + offset = 0, by Newton's method inside a bracket."""
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    weight = 0.0
    low = 0.0
    high = math.inf
    for k in range(first, last):
        a = table.arm[k]
        weight += w[a]
        bounded = setting.lowest_tilt > -math.inf and setting.domain_high == math.inf
        if bounded and table.v[k] < 0.0:
            high = min(high, setting.lowest_tilt * w[a] / table.v[k])
    gamma = run.root[table.first_root + edge] * weight
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
    run.root[table.first_root + edge] = gamma / weight
    return gamma


@kernel
def respond(setting: Setting, table: Table, run: Run, edge: int, base: int, w: Vector) -> float:
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


@kernel
def evaluate(setting: Setting, table: Table, run: Run, e: int) -> None:
    """Recompute gap and statistic of one edge of the vertex."""
    vertex = run.integers[VERTEX]
    edge = table.first_edge[vertex] + e
    gap = table.offset[edge]
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        gap += table.v[k] * run.clipped[table.arm[k]]
    run.gap[e] = gap
    run.value[e] = respond(setting, table, run, edge, table.first_entry[edge], run.n)


@kernel
def refresh(setting: Setting, table: Table, run: Run) -> None:
    """Recompute gaps and statistics of all edges of the vertex."""
    run.scale[0] = 0.0
    for a in range(setting.size):
        run.scale[0] = max(run.scale[0], abs(run.clipped[a]))
    vertex = run.integers[VERTEX]
    for e in range(table.first_edge[vertex + 1] - table.first_edge[vertex]):
        evaluate(setting, table, run, e)


@kernel
def touch(setting: Setting, table: Table, run: Run, arm: int) -> None:
    """Update the edges that contain an arm whose mean and number of pulls changed."""
    vertex = run.integers[VERTEX]
    for k in range(table.first_column[vertex, arm], table.first_column[vertex, arm + 1]):
        evaluate(setting, table, run, table.column_edge[k])


@kernel
def mixture_reached(setting: Setting, table: Table, run: Run, edge: int, statistic: float) -> bool:
    """Whether an edge's evidence beats the mixture threshold (docs/theory/stopping.md)."""
    level = setting.log_union
    weight = 1.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        level += regret_of_mixture(setting.family, run.n[a], run.mean[a])
        # With this share of each arm's information the evidence is at least so much of the plain
        # statistic.
        weight = min(weight, weight_of_mixture(setting, run.n[a]))
    return statistic * weight >= level


@inlined
def kk21_penalty(n: float) -> float:
    """Kaufmann & Koolen's price of an arm's samples, exponential families."""
    return 3.0 * math.log1p(math.log(n))


@kernel
def farthest(setting: Setting, arm: int, mu: float, level: float, upwards: bool) -> float:
    """The mean on one side of mu whose divergence d(mu, .) is the level, or the range's end.

    Newton's method from beyond the root on a convex function: it never steps back across.
    """
    x = beyond(setting, arm, mu, level, upwards)
    if setting.family == GAUSSIAN:
        return x  # exact
    for _ in range(50):
        excess = divergence(setting, arm, mu, x) - level
        slope = (x - mu) / variance_at(setting, arm, x)
        if not (excess > 1e-12 * level) or slope == 0.0:
            break
        x -= excess / slope
    return x


@kernel
def optimistic(setting: Setting, mean: float, n: float, lam: float, arm: int, f: float) -> float:
    """Largest divergence from lam over means that n samples cannot rule out (CGE's U)."""
    level = f / n
    gain = level
    upper = farthest(setting, arm, mean, level, True)
    lower = farthest(setting, arm, mean, level, False)
    if setting.family == BERNOULLI:
        lam = min(max(lam, _MARGIN), 1.0 - _MARGIN)
    gain = max(gain, divergence(setting, arm, upper, lam))
    return max(gain, divergence(setting, arm, lower, lam))


@kernel
def alternative(setting: Setting, table: Table, run: Run, w: Vector, lam: Vector) -> None:
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
    gamma = run.root[table.first_root + closest] * weight
    for k in range(table.first_entry[closest], table.first_entry[closest + 1]):
        a = table.arm[k]
        lam[a], _ = tilted(setting, a, run.clipped[a], gamma * table.v[k] / w[a])
