"""Information for families whose closest alternative is a one-dimensional root.

Bernoulli (bounded rewards too, rescaled), Poisson, and Gaussian with a domain. The same
functions as in gaussian.py; see docs/theory/characteristic_time.md for the mathematics. What is
peculiar to a family stands at the top, one function for each thing that is asked of it; the rest
of the file serves them all.
"""

from __future__ import annotations

import math

from .edges import gap_of, is_pair
from .gamma import log_gamma
from .kernel import inlined, kernel
from .records import BERNOULLI, GAUSSIAN, POISSON, VERTEX, EdgeTable, RunConfig, RunState, Vector
from .roots import RESOLUTION, is_closed, next_guess

# Robbins' mixture for Gaussian rewards has this many samples' worth of variance.
PRIOR_SAMPLES = 16.0

# Means are kept this far from the ends of their range where a divergence would be infinite.
_MARGIN = 1e-9


# ---------------------------------------------------------------- what is peculiar to a family


@inlined
def tilt(config: RunConfig, arm: int, mu: float, s: float) -> tuple[float, float, float, float]:
    """lam(s), which minimises d(mu, lam) + s lam; 1 - lam; lam - mu; and -d lam / ds.

    The second is for Bernoulli rewards. None of them is a difference of close numbers.
    """
    if config.family == BERNOULLI:
        strength = min(abs(s), 1e150)
        rarer = mu if s >= 0.0 else 1.0 - mu
        other = 1.0 - mu if s >= 0.0 else mu
        away = abs(1.0 - strength)
        root = math.sqrt(away * away + 4.0 * strength * other)
        fallen = 2.0 * rarer / (1.0 + strength + root)
        ends = away + root
        risen = 2.0 * other / ends if strength < 1.0 else 0.5 * ends / strength
        rate = fallen * risen / max(root, 1e-300)
        shift = strength * fallen * risen
        if s < 0.0:
            return risen, fallen, shift, rate
        return fallen, risen, -shift, rate
    if config.family == GAUSSIAN:
        rate = config.variance[arm]
        shift = -s * rate
        return mu + shift, 0.0, shift, rate
    room = max(1.0 + s, 1e-50)
    lam = mu / room
    if s < config.lowest_tilt and config.domain_high < math.inf:
        lam = config.domain_high  # a mean has no other limit there, 0 included
    return lam, 0.0, -s * lam, lam / room


@inlined
def shared_cost(mu: float, lam: float, shift: float) -> float:
    """mu log(mu / lam) + lam - mu, the shift being lam - mu; lam where mu = 0.

    x - log(1 + x) cancels for small x = shift / mu; with r = x / (2 + x), of which the
    logarithm is 2 artanh, it is r x less a series.
    """
    if mu <= 0.0:
        return lam
    x = shift / mu
    if abs(x) < 0.1:
        r = x / (2.0 + x)
        z = r * r
        series = 2.0 / 7.0 + z * (2.0 / 9.0 + z * (2.0 / 11.0 + z * (2.0 / 13.0)))
        return mu * r * (x - z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * series)))
    return mu * (x - (math.log1p(x) if x > -0.5 else math.log(max(lam / mu, 1e-300))))


@inlined
def cost(config: RunConfig, arm: int, mu: float, lam: float, rest: float, shift: float) -> float:
    """Information of one sample against lam, as `tilt` returns it."""
    if config.family == BERNOULLI:
        return shared_cost(mu, lam, shift) + shared_cost(1.0 - mu, rest, -shift)
    if config.family == GAUSSIAN:
        return 0.5 * shift * shift / config.variance[arm]
    return shared_cost(mu, lam, shift)


@inlined
def divergence(config: RunConfig, arm: int, mu: float, lam: float) -> float:
    """Information of one sample."""
    return cost(config, arm, mu, lam, 1.0 - lam, lam - mu)


@inlined
def variance_at(config: RunConfig, arm: int, mean: float) -> float:
    """Variance of a reward with that mean."""
    if config.family == BERNOULLI:
        return mean * (1.0 - mean)
    return config.variance[arm] if config.family == GAUSSIAN else mean


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
def weight_of_mixture(config: RunConfig, n: float) -> float:
    """The share of an arm's evidence that its mixture keeps."""
    return n / (n + PRIOR_SAMPLES) if config.family == GAUSSIAN else 1.0


@inlined
def pinsker_limit(config: RunConfig, arm: int, mu: float, level: float, upwards: bool) -> float:
    """A mean whose divergence from mu is at least the level (Pinsker's inequality and its like)."""
    if config.family == BERNOULLI:
        step = math.sqrt(0.5 * level)
        return min(mu + step, 1.0 - 1e-12) if upwards else max(mu - step, 1e-12)
    if config.family == GAUSSIAN:
        step = math.sqrt(2.0 * config.variance[arm] * level)
        return mu + step if upwards else mu - step
    if upwards:
        return mu + level + math.sqrt(2.0 * mu * level + level * level)
    return max(mu - math.sqrt(2.0 * mu * level), 1e-12)


# ---------------------------------------------------------------- the same for all of them


@inlined
def tilted(config: RunConfig, arm: int, mu: float, s: float) -> tuple[float, float, float, float]:
    """`tilt` within the domain; the last is 0 where the domain holds the mean."""
    lam, rest, shift, rate = tilt(config, arm, mu, s)
    if lam <= config.domain_low:
        return config.domain_low, 1.0 - config.domain_low, config.domain_low - mu, 0.0
    if lam >= config.domain_high:
        return config.domain_high, 1.0 - config.domain_high, config.domain_high - mu, 0.0
    return lam, rest, shift, rate


@inlined
def balance_of(
    config: RunConfig,
    table: EdgeTable,
    run: RunState,
    edge: int,
    gap: float,
    w: Vector,
    gamma: float,
) -> tuple[float, float]:
    """v . lam + offset at the tilts of gamma v / w, and how fast it falls with gamma."""
    excess = gap
    steep = 0.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        v = table.v[k]
        _, _, shift, rate = tilted(config, a, run.clipped_mean[a], gamma * v / w[a])
        excess += v * shift
        steep += v * v * rate / w[a]
    return excess, steep


@inlined
def is_at_pole(config: RunConfig, mu: float, s: float) -> bool:
    """Whether a tilt of s lets a mean of zero be anything: d(0, lam) + s lam is 0 for all lam."""
    return mu == 0.0 and s <= config.lowest_tilt * (1.0 - 4.0 * RESOLUTION)


@kernel
def multiplier(
    config: RunConfig, table: EdgeTable, run: RunState, edge: int, gap: float, w: Vector
) -> float:
    """gamma with v . lam(gamma v / w) + offset = 0, or the last one for which there is a tilt."""
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    weight = 0.0
    low = 0.0
    high = math.inf
    unseen = False
    bounded = config.lowest_tilt > -math.inf and config.domain_high == math.inf
    for k in range(first, last):
        a = table.arm[k]
        weight += w[a]
        if bounded and table.v[k] < 0.0:
            pole = config.lowest_tilt * w[a] / table.v[k]
            if pole < high:
                high = pole
                unseen = run.clipped_mean[a] == 0.0
    if unseen:  # such an arm may end the search at the pole itself
        excess, _ = balance_of(config, table, run, edge, gap, w, high)
        if excess > 0.0:
            run.root[table.first_root + edge] = high / weight
            return high
    gamma = run.root[table.first_root + edge] * weight
    # Beyond that the arms are at the ends of their range: no alternative is left to look for.
    most = 1e12 * weight
    if not (gamma > 0.0 and gamma < high):
        _, steep = balance_of(config, table, run, edge, gap, w, 0.0)
        gamma = gap / steep if steep > 0.0 else weight
        if not gamma < most:  # an arm that moves a lot, but not from the end of its range
            gamma = weight
        if not gamma < high:
            gamma = 0.5 * high
    before = math.inf
    while gamma < most:
        excess, steep = balance_of(config, table, run, edge, gap, w, gamma)
        if excess > 0.0:
            low = gamma
        else:
            high = gamma
        if not abs(excess) > 1e-13 * gap or is_closed(low, high):
            if is_closed(low, high):
                gamma = low  # just above a pole within a domain large terms cancel
            break
        last_excess, here = before, gamma
        gamma, before = next_guess(gamma, excess, before, steep, low, high)
        # A short Newton step reduces the excess by the square of what the last one did: no need
        # to look. A long one may cross a kink, where a mean leaves the end of its range.
        is_square = before * before * before <= 1e-14 * gap * last_excess * last_excess < math.inf
        if is_square and abs(gamma - here) <= 1e-3 * here:
            break
    run.root[table.first_root + edge] = gamma / weight
    return gamma


@inlined
def meeting(
    config: RunConfig, run: RunState, one: int, other: int, w: Vector
) -> tuple[float, float, float, float]:
    """Where the means of a pair meet: lam, 1 - lam, and its distance from the one and the other.

    It is their weighted average; proven in docs/theory/characteristic_time.md. All sums have terms
    of one sign, and the gap of two floats is rounded once: some 1e-15 of the divergences is lost.
    """
    mu, nu = run.clipped_mean[one], run.clipped_mean[other]
    share, rest = w[one], w[other]
    if config.family == GAUSSIAN:
        share /= config.variance[one]
        rest /= config.variance[other]
    total = share + rest
    share /= total
    rest /= total
    gap = nu - mu
    left = share * (1.0 - mu) + rest * (1.0 - nu)
    return share * mu + rest * nu, left, rest * gap, -share * gap


@inlined
def respond_to_pair(
    config: RunConfig, table: EdgeTable, run: RunState, first: int, base: int, w: Vector
) -> float:
    """`edge_information` where both means meet: no root."""
    one, other = table.arm[first], table.arm[first + 1]
    lam, left, here, there = meeting(config, run, one, other, w)
    fallen = cost(config, one, run.clipped_mean[one], lam, left, here)
    risen = cost(config, other, run.clipped_mean[other], lam, left, there)
    run.gradient[first - base], run.gradient[first + 1 - base] = fallen, risen
    return w[one] * fallen + w[other] * risen


@kernel
def edge_information(
    config: RunConfig, table: EdgeTable, run: RunState, edge: int, base: int, w: Vector
) -> float:
    """Closest alternative across an edge: D_e(w), and its gradient by the edge's arms.

    Where it takes a root the value is that of the dual, which is no more than D_e(w) at any
    multiplier: evidence is never overstated, whatever the search for the best one came to. The
    gradient of entry k lies at run.gradient[k - base].
    """
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    gap = gap_of(table, run, edge)
    if gap <= 0.0:
        for k in range(first, last):
            run.gradient[k - base] = 0.0
        return 0.0
    if is_pair(table, edge):
        value = respond_to_pair(config, table, run, first, base, w)
        return value if value > 0.0 and value < math.inf else 0.0
    gamma = multiplier(config, table, run, edge, gap, w)
    value = 0.0
    excess = gap
    reach = 0.0
    for k in range(first, last):
        a = table.arm[k]
        mu = run.clipped_mean[a]
        s = gamma * table.v[k] / w[a]
        lam, rest, shift, _ = tilted(config, a, mu, s)
        d = cost(config, a, mu, lam, rest, shift)
        run.gradient[k - base] = d
        value += w[a] * d
        excess += table.v[k] * shift
        if is_at_pole(config, mu, s):
            reach -= table.v[k]
    value += gamma * excess
    if reach > 0.0 and excess > 0.0:  # arms at the pole take what is left; lam is their divergence
        for k in range(first, last):
            a = table.arm[k]
            if is_at_pole(config, run.clipped_mean[a], gamma * table.v[k] / w[a]):
                run.gradient[k - base] = excess / reach
    return value if value > 0.0 and value < math.inf else 0.0  # NaN is no evidence either


@kernel
def mixture_evidence(
    config: RunConfig, table: EdgeTable, run: RunState, edge: int, statistic: float
) -> float:
    """Log of the mixture's evidence that an edge is no improvement (docs/theory/stopping.md)."""
    price = 0.0
    weight = 1.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        price += regret_of_mixture(config.family, run.n[a], run.mean[0, a])
        # With this share of each arm's information the evidence is at least so much of the plain
        # statistic.
        weight = min(weight, weight_of_mixture(config, run.n[a]))
    return statistic * weight - price


@kernel
def closest(
    config: RunConfig, table: EdgeTable, run: RunState, edge: int, w: Vector, lam: Vector
) -> None:
    """Write the closest alternative across an edge at w into lam, by the edge's arms."""
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    if is_pair(table, edge):
        lam[0], _, _, _ = meeting(config, run, table.arm[first], table.arm[first + 1], w)
        lam[1] = lam[0]
        return
    edge_information(config, table, run, edge, first, w)
    weight = 0.0
    for k in range(first, last):
        weight += w[table.arm[k]]
    gamma = run.root[table.first_root + edge] * weight
    for k in range(first, last):
        a = table.arm[k]
        if config.family == POISSON and run.clipped_mean[a] == 0.0:
            lam[k - first] = run.gradient[k - first]  # d(0, lam) = lam
        else:
            s = gamma * table.v[k] / w[a]
            lam[k - first], _, _, _ = tilted(config, a, run.clipped_mean[a], s)


@kernel
def confidence_limit(config: RunConfig, arm: int, mu: float, level: float, upwards: bool) -> float:
    """The mean on one side of mu whose divergence d(mu, .) is the level, or the range's end."""
    x = pinsker_limit(config, arm, mu, level, upwards)
    if config.family == GAUSSIAN:
        return x  # exact
    side = 1.0 if upwards else -1.0
    low = 0.0
    high = (x - mu) * side
    distance = high
    before = math.inf
    while distance > 0.0:
        excess = level - divergence(config, arm, mu, x)
        if excess > 0.0:
            low = distance  # and high, too, at the end of the range: it is closed
        else:
            high = distance
        if not abs(excess) > 1e-12 * level or is_closed(low, high):
            break
        steep = distance / variance_at(config, arm, x)
        distance, before = next_guess(distance, excess, before, steep, low, high)
        x = mu + side * distance
    return x


@kernel
def ucb_divergence(config: RunConfig, run: RunState, arm: int, lam: float, f: float) -> float:
    """Largest divergence from lam over means that n samples cannot rule out (CGE's U)."""
    mean, level = run.clipped_mean[arm], f / run.n[arm]
    gain = level
    upper = confidence_limit(config, arm, mean, level, True)
    lower = confidence_limit(config, arm, mean, level, False)
    if config.family == BERNOULLI:
        lam = min(lam, 1.0 - _MARGIN)
    if config.family != GAUSSIAN:
        lam = max(lam, _MARGIN)
    gain = max(gain, divergence(config, arm, upper, lam))
    return max(gain, divergence(config, arm, lower, lam))


@kernel
def alternative(config: RunConfig, table: EdgeTable, run: RunState, w: Vector, lam: Vector) -> None:
    """Write the closest alternative at w over all edges of the vertex into lam."""
    vertex = run.integers[VERTEX]
    nearest = table.first_edge[vertex]
    least = math.inf
    for edge in range(nearest, table.first_edge[vertex + 1]):
        value = edge_information(config, table, run, edge, table.first_entry[edge], w)
        if value < least:
            least = value
            nearest = edge
    for a in range(config.size):
        lam[a] = run.clipped_mean[a]
    if least <= 0.0:
        return
    first = table.first_entry[nearest]
    closest(config, table, run, nearest, w, run.gradient)
    for k in range(first, table.first_entry[nearest + 1]):
        lam[table.arm[k]] = run.gradient[k - first]
