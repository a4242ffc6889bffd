"""A slow twin of exploration: dense matrices and loops, from the description of each rule.

The twin is given what the engine knows (rows of the allocation set, its inside, the policies
and their edges) and follows the same rewards with code of its own. Roots and projections
are found by general methods; where an iteration that is cut short decides the allocation,
the iteration is written out plainly. Ties, which discrete rewards make often, are followed
as the engine breaks them, but only ties.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import clarabel
import numpy as np
import scipy.optimize
import scipy.sparse

from simplexplore.exploration.vertex_table import VertexTable

MASK = 2**64 - 1

# Scores this close are a tie, in which the engine's choice is followed.
TIE = 1e-9

STOP = "stop"


class Xoshiro:
    """xoshiro256++ in Python's integers."""

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


# ---------------------------------------------------------------- projections, by a cone solver


def project(y, loose, above, limit, equal, total, allowed):
    """argmin of sum (w - y)^2 / loose over the set; exact once the active rows are known."""
    arms = np.flatnonzero(allowed)
    k = len(arms)
    rows, bound = above[:, arms], limit
    scale = 1 / loose[arms]
    matrix = np.vstack([equal[:, arms], rows, -np.eye(k)])
    right = np.concatenate([total, bound, np.zeros(k)])
    cones = [clarabel.ZeroConeT(len(total)), clarabel.NonnegativeConeT(len(bound) + k)]
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-13
    solver = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(np.diag(scale)),
        -scale * y[arms],
        scipy.sparse.csc_matrix(matrix),
        right,
        cones,
        options,
    )
    found = solver.solve()
    x, z = np.array(found.x), np.array(found.z)
    slack = right - matrix @ x
    tight = np.arange(len(right)) < len(total)
    tight |= slack < z  # complementary: one of the two is zero
    active = matrix[tight]
    # w = y - loose active' multipliers, with the active rows exact.
    system = active @ (active / scale).T
    multipliers = np.linalg.lstsq(system, active @ y[arms] - right[tight], rcond=None)[0]
    polished = y[arms] - (active.T @ multipliers) / scale
    assert np.abs(polished - x).max() < 1e-5
    w = np.zeros(len(y))
    w[arms] = np.maximum(polished, 0.0)
    return w


def project_on_simplex(y, loose):
    """argmin of sum (w - y)^2 / loose over the simplex, by sorting where arms vanish."""
    order = np.argsort(-y / loose)
    for count in range(len(y), 0, -1):
        kept = order[:count]
        level = (y[kept].sum() - 1) / loose[kept].sum()
        if (y[kept] - level * loose[kept] > 0).all():
            break
    return np.maximum(y - level * loose, 0.0)


# ---------------------------------------------------------------- max-min by multiplicative steps


def solve_lifted(matrix, right):
    """Cholesky; pivots that vanish are lifted, which drops their direction."""
    size = len(right)
    largest = max([0.0, *np.diag(matrix)])
    lower = np.zeros((size, size))
    for j in range(size):
        pivot = matrix[j, j] - lower[j, :j] @ lower[j, :j]
        if not pivot > 1e-14 * largest:
            pivot = 1e-14 * largest + 1e-300
        lower[j, j] = math.sqrt(pivot)
        for i in range(j + 1, size):
            lower[i, j] = (matrix[i, j] - lower[i, :j] @ lower[j, :j]) / lower[j, j]
    half = np.zeros(size)
    for i in range(size):
        half[i] = (right[i] - lower[i, :i] @ half[:i]) / lower[i, i]
    x = np.zeros(size)
    for i in range(size - 1, -1, -1):
        x[i] = (half[i] - lower[i + 1 :, i] @ x[i + 1 :]) / lower[i, i]
    return x


def all_rows(setting):
    """(above, limit, equal, total) with floors and caps of single arms as rows."""
    unit, inside = np.eye(setting.size), setting.inside > 0
    fixed = np.flatnonzero((setting.floor == setting.cap) & inside)
    room = setting.floor < setting.cap
    capped = np.flatnonzero(room & np.isfinite(setting.cap))
    floored = np.flatnonzero(room & (setting.floor > 0))
    return (
        np.vstack([setting.above, unit[capped], -unit[floored]]),
        np.concatenate([setting.limit, setting.cap[capped], -setting.floor[floored]]),
        np.vstack([setting.equal, unit[fixed]]),
        np.concatenate([setting.total, setting.floor[fixed]]),
    )


class Rows:
    """The allocation set {above w <= limit, equal w = total, w >= 0} and answers within it."""

    def __init__(self, setting, costs=None):
        self.above, self.limit, self.equal, self.total = all_rows(setting)
        self.inside, self.deep = setting.inside, setting.shares.deep
        if costs is not None:
            self._in_spend(costs)
        self.matrix = np.vstack([self.above, self.equal])
        self.bound = np.concatenate([self.limit, self.total])
        seen = self.equal[:, self.inside > 0].T
        prices = np.linalg.lstsq(seen, np.ones(len(seen)), rcond=None)[0]
        self.start = np.concatenate([np.zeros(len(self.limit)), prices])
        self.m = len(self.limit)
        self.x = np.zeros(len(self.bound))

    def _in_spend(self, costs):
        """The same set in shares of what is spent: rows of multiples of allocations."""
        self.inside, self.deep = spend(self.inside, costs), spend(self.deep, costs)
        self.above = (self.above - self.limit[:, None]) / costs
        self.limit = np.zeros(len(self.limit))
        others = (self.equal - self.total[:, None]) / costs
        others = others[np.abs(others[:, self.inside > 0]).max(axis=1) > 1e-12]
        self.equal = np.vstack([np.ones(len(costs)), others])
        self.total = np.eye(len(self.equal))[0]

    def dual(self, asked, x):
        price = self.matrix.T @ x
        used = asked > 0
        if not (price[used] > 0).all():
            return -math.inf
        return 2 * np.sqrt(asked[used] * price[used]).sum() - self.bound @ x

    def answer(self, asked, w):
        """argmin of sum asked / w: Newton on the dual from the last multipliers."""
        value = self.dual(asked, self.x)
        if value == -math.inf:
            self.x = np.sqrt(asked).sum() ** 2 * self.start
            value = self.dual(asked, self.x)
        for _ in range(60):
            price = self.matrix.T @ self.x
            paid = price > 0
            w[:] = 0.0
            w[paid] = np.sqrt(asked[paid] / price[paid])
            residual = self.matrix @ w - self.bound
            free = (np.arange(len(self.x)) >= self.m) | (self.x > 0) | (residual > 0)
            if np.abs(residual[free]).max(initial=0.0) < 1e-11:
                return True
            part = self.matrix[free][:, paid]
            system = 0.5 * (part * (w[paid] / price[paid])) @ part.T
            step = np.zeros(len(self.x))
            step[free] = solve_lifted(system, residual[free])
            length = 1.0
            for _ in range(40):
                trial = self.x + length * step
                trial[: self.m] = np.where(
                    free[: self.m], np.maximum(trial[: self.m], 0.0), trial[: self.m]
                )
                promise = residual @ (trial - self.x)
                reached = self.dual(asked, trial)
                if reached > -math.inf and reached >= value + 1e-4 * promise - 1e-14 * abs(value):
                    break
                length *= 0.4
            else:
                return False
            self.x, value = trial, reached
        return False

    def mend(self, w):
        """Exactly feasible: equalities by a relative shift, inequalities by leaning inwards."""
        shift = solve_lifted((self.equal * w) @ self.equal.T, self.total - self.equal @ w)
        w[:] = np.maximum(w * (1 + self.equal.T @ shift), 0.0)
        excess = self.above @ w - self.limit
        room = self.limit - self.above @ self.deep
        lean = max([0.0, *(e / (e + r) for e, r in zip(excess, room, strict=True) if e > 1e-14)])
        w[:] = (1 - lean) * w + lean * self.deep


def spend(w, costs):
    """Shares of what is spent, from shares of samples."""
    return w * costs / (w @ costs)


def maximin(law, edges, mu, w, q, rows, within, pulls, costs):
    """Improve w and the edges' weights q in place until the certified gap is small."""
    samples, w = w, spend(w, costs)
    gain = improved(law, edges, mu, w, q, rows, within, pulls, costs)
    samples[:] = spend(w, 1 / costs)
    return gain


def improved(law, edges, mu, w, q, rows, within, pulls, costs):
    """`maximin` in shares of what is spent."""
    tolerance = max(1e-3, 1 / math.sqrt(pulls))
    if q[0] == 0:
        q[:] = 1 / len(q)
    w[:] = (1 - 1e-6) * w + 1e-6 * rows.inside
    usable = rows.inside > 0
    gap = math.inf
    for _ in range(300):
        d = np.zeros(edges.shape)
        value = np.zeros(len(edges))
        for e, v in enumerate(edges):
            value[e], d[e], _ = law.respond(v, mu, w / costs)
            if not value[e] > 1e-16:
                return None
        time = 1 / value
        d /= costs
        gain = (q * time**2) @ d

        def most(gain):
            if not within:
                return gain.max()
            return (gain - rows.matrix.T @ rows.x)[usable].max() + rows.bound @ rows.x

        best = most(gain)
        if not best >= (1 - 1e-9) * (q @ time):
            rows.x[:] = 0.0
            best = most(gain)
        gap = time.max() * best / (q @ time**2) - 1
        if gap <= tolerance:
            break
        q *= time
        q[:] = np.maximum(q / q.sum(), 1e-12)
        gain = (q * time**2) @ d
        asked = w**2 * gain
        total = np.sqrt(asked).sum()
        if within:
            asked[usable] = np.maximum(asked[usable], 1e-10 * total**2)
            if not rows.answer(asked, w):
                rows.x[:] = 0.0
                rows.answer(asked, w)
            rows.mend(w)
        else:
            w[:] = np.sqrt(asked) / total
            w[usable] = np.maximum(w[usable], 1e-12)
    if not gap < 1.0:
        q[:] = 0.0
        rows.x[:] = 0.0
        w[:] = rows.inside
    return gain


class Guard:
    """Which arms keep the limits, by rows alone: floors and caps are rows like others."""

    def __init__(self, setting):
        unit = np.eye(setting.size)
        capped, floored = np.isfinite(setting.cap), setting.floor > 0
        self.above = np.vstack([setting.above, unit[capped], -unit[floored]])
        self.limit = np.concatenate([setting.limit, setting.cap[capped], -setting.floor[floored]])
        self.uses_up = np.vstack([setting.above, unit[capped]])
        self.least = np.concatenate([setting.limit, setting.cap[capped]])
        self.equal, self.total = setting.equal, setting.total
        self.arms = setting.inside > 0
        moves = np.abs(self.equal - self.total[:, None])
        self.step = moves[:, self.arms].max(axis=1)[:, None]
        held = (setting.floor == setting.cap) & capped
        miss = np.where(held, np.maximum(setting.cap, 1 - setting.cap), 0.0)
        rooms = [np.zeros(len(setting.limit)), miss[capped], miss[floored]]
        self.room = np.concatenate(rooms)[:, None]

    def after(self, n):
        """Excesses after a pull of each arm, of inequalities and equalities, and those before."""
        pulls = n.sum()
        above = self.above @ n - pulls * self.limit
        equal = self.equal @ n - pulls * self.total
        return (
            above[:, None] + self.above - self.limit[:, None],
            np.abs(equal[:, None] + self.equal - self.total[:, None]),
            np.abs(equal)[:, None],
        )

    def keeps(self, n):
        """The arms after whose pull all holds, or is exceeded by no more than before."""
        above, equal, before = self.after(n)
        saving = self.above - self.limit[:, None] <= 1e-7
        return (
            (saving | (above <= self.room + 1e-7)).all(axis=0)
            & ((equal <= self.step + 1e-7) | (equal <= before)).all(axis=0)
            & self.arms
        )

    def pulls_for_one(self):
        """One over the largest share of an arm in a mix with another that keeps one limit alone."""
        pulls = np.ones(len(self.arms))
        for row, limit in zip(self.uses_up, self.least, strict=True):
            move = row - limit
            for a in np.flatnonzero(self.arms & (move > 0)):
                shares = [m / (m - move[a]) for m in move[self.arms] if m < 0]
                pulls[a] = max(pulls[a], 1 / max(shares))
        return pulls

    def saves(self):
        """The arms that use up no row."""
        return (self.uses_up - self.least[:, None] <= 1e-7).all(axis=0)

    def harm(self, n):
        """Sums of squares of the excesses after a pull of each arm."""
        above, equal, _ = self.after(n)
        harm = (np.maximum(above - self.room, 0) ** 2).sum(axis=0)
        harm += (np.maximum(equal - self.step, 0) ** 2).sum(axis=0)
        harm[~self.arms] = math.inf
        return harm

    def least_harm(self, n):
        """The arm after which excesses have the least sum of squares."""
        harm = self.harm(n)
        return int(np.flatnonzero(harm <= harm.min() + 1e-12)[0])


# ---------------------------------------------------------------- a run


class Twin:
    """One run, told the same rewards as the engine."""

    def __init__(self, engine, sampler, tracking, words, threshold=None):
        plan, setting = engine.plan, engine._setting
        family = plan.problem.rewards
        kind = "bernoulli" if family.name == "bounded" else family.name
        self.family = family
        self.law = Law(kind, setting.variance)
        self.size = plan.problem.size
        self.anytime = setting.anytime
        self.sampler, self.tracking = sampler, tracking
        self.costs = plan.problem.costs / plan.problem.costs.mean()
        self.rows = Rows(setting)
        self.spend = Rows(setting, self.costs) if np.ptp(self.costs) else self.rows
        self.guard = Guard(setting)
        self.filler = setting.inside.copy()
        self.pulls_for_one = self.guard.pulls_for_one()
        self.solved, self.due, self.price = None, 0.0, np.ones(self.size)
        self.turns, self.taken, self.saved_for = 0, np.zeros(self.size), None
        self.limits = (setting.lowest, setting.highest)
        self.threshold = threshold
        self.choices = Xoshiro(words[1])
        self.n = np.zeros(self.size)
        self.mean = np.zeros(self.size)
        self.target = setting.inside.copy()  # the first arm is chosen
        self.average = setting.inside.copy()
        self.warm = False
        # A table of our own, so that the engine's grows as it would.
        self.table = self._own_table(engine)
        self.vertex = 0
        self.weights = {}
        self.squares = np.zeros(self.size)
        self.best_arm_w = np.zeros(self.size)
        self.w = self._first_allocation(plan)

    def _own_table(self, engine):
        return VertexTable(engine.polytope, engine.table.vertices[0])

    def _first_allocation(self, plan):
        inside = self.rows.inside
        if self.sampler == "oracle":
            return np.array(plan.allocation)
        if self.sampler == "uniform" and self.anytime:
            even = np.full(self.size, 1 / self.size)
            return self.project(even, np.ones(self.size), self.rows)
        return inside.copy()

    def project(self, y, loose, r):
        return project(y, loose, r.above, r.limit, r.equal, r.total, r.inside > 0)

    @property
    def mu(self):
        return np.clip(self.mean, *self.limits)

    @property
    def pulls(self):
        return float(self.n.sum())

    @property
    def zero(self):
        """The recommended policy, by its active set."""
        return self.table.vertices[self.vertex].zero

    def edges(self):
        """Losses per unit of each edge of the recommended vertex, dense."""
        return -self.table._edges[self.vertex].dense(self.size)

    def observe(self, arm, reward):
        self.n[arm] += 1
        unit = float(self.family.to_unit(reward))
        self.mean[arm] += (unit - self.mean[arm]) / self.n[arm]

    def advance(self, followed, memory):
        """The next arm, or STOP; the engine's run and memory decide ties only."""
        self.chosen = int(followed.integers[2])
        if not self.warm:
            waiting = np.flatnonzero((self.rows.inside > 0) & (self.n == 0))
            if len(waiting):
                self.target += self.rows.inside
                return self.first_arm(waiting) if self.anytime else int(waiting[0])
            self.warm = True
        self.recommend(followed)
        evidence = self.evidence = self.statistics()
        if evidence.min() >= math.log((1 + math.log(self.pulls)) / self.threshold):
            return STOP
        options = self.allocate(evidence)
        if self.sampler == "cge":
            self.w, self.squares = min(
                options,
                key=lambda x: np.abs(x[0] - followed.w).max() + np.abs(x[1] - memory.arms[0]).max(),
            )
        else:
            self.w = min(options, key=lambda w: np.abs(w - followed.w).max())
        return self.track(followed)

    def first_arm(self, waiting):
        """An arm without a reward if limits allow one, else what saves for it."""
        keeps = self.guard.keeps(self.n)
        if keeps[waiting].any():
            return int(waiting[keeps[waiting]][0])
        if not keeps.any():
            return self.guard.least_harm(self.n)
        saving = keeps & self.guard.saves()
        return self.furthest_behind(saving if saving.any() else keeps, self.target)

    def furthest_behind(self, arms, owed):
        """The arm with the least lag; where several tie, the engine's if it is one of them."""
        lag = np.where(arms, self.n - owed, math.inf)
        if lag[self.chosen] <= lag.min() + TIE * (1 + abs(lag.min())):
            return self.chosen
        return int(np.argmin(lag))

    def fill(self):
        """Of the arms that keep limits, the one furthest behind the last exact allocation."""
        keeps = self.guard.keeps(self.n)
        if not keeps.any():
            return self.guard.least_harm(self.n)
        return self.furthest_behind(keeps, (self.pulls + 1) * self.filler)

    def statistics(self):
        """Evidence on each edge of the recommended vertex."""
        return np.array([self.law.respond(v, self.mu, self.n)[0] for v in self.edges()])

    def recommend(self, followed):
        """Walk along the edge that gains most per unit until none does."""
        while True:
            mu, edges = self.mu, self.edges()
            gaps = [sum(v[a] * mu[a] for a in np.flatnonzero(v)) for v in edges]
            if min(gaps) >= -1e-13 * np.abs(mu).max():
                return
            first = self.table.arrays().first_edge[self.vertex]
            self.vertex = self.table.follow(first + int(np.argmin(gaps)))

    def allocate(self, evidence):
        """Allocations that the sampler may choose; several where edges tie."""
        if self.sampler in ("uniform", "oracle"):
            return [self.w]
        if self.sampler == "cge":
            return self._game()
        if self.sampler == "ptns":
            return [self._projected()]
        if self.sampler == "top-two":
            if self.anytime:
                self._solve_for_prices()
            return self._top_two(evidence)
        if self.tracking == "averaged" and self.pulls % 2 == 1:
            return [self.w]
        edges = self.edges()
        q = self.weights.setdefault(self.vertex, np.zeros(len(edges)))
        maximin(self.law, edges, self.mu, self.w, q, *self._set(self.anytime))
        return [self.w]

    def _set(self, within):
        return self.spend, within, self.pulls, self.costs

    def _projected(self):
        """Best arm as if there were no constraints, then the closest allowed point."""
        mu = self.mu
        best = int(np.argmax(mu))
        edges = np.array([_pair(self.size, best, b) for b in range(self.size) if b != best])
        if self.best_arm_w[0] == 0:
            self.best_arm_w[:] = 1 / self.size
        q = self.weights.setdefault(best, np.zeros(len(edges)))
        maximin(self.law, edges, mu, self.best_arm_w, q, *self._set(False))
        if not self.anytime:
            return self.best_arm_w.copy()
        return self.project(self.best_arm_w, np.ones(self.size), self.rows)

    def _game(self):
        """Best response, optimistic gains, one AdaGrad step in its own metric.

        Each option comes with the sums of squares that go with it.
        """
        mu, w = self.mu, np.maximum(self.w, 1e-12)
        answers = [self.law.respond(v, mu, w) for v in self.edges()]
        least = min(value for value, _, _ in answers)
        options = []
        for value, _, lam in answers:
            if value > least + TIE * (1 + abs(least)):
                continue
            f = math.log(self.pulls)
            gain = np.zeros(self.size)
            for a in np.flatnonzero(self.n):
                at = lam[a]
                if self.law.kind == "bernoulli":
                    at = min(max(at, 1e-9), 1 - 1e-9)
                gain[a] = self.law.optimistic(a, mu[a], self.n[a], at, f)
            gain /= self.costs
            squares = self.squares + gain**2
            loose = 1 / np.sqrt(squares + 0.1)
            y = spend(self.w, self.costs) + gain * loose
            if self.anytime:
                projected = self.project(y, loose, self.spend)
            else:
                projected = project_on_simplex(y, loose)
            options.append((spend(projected, 1 / self.costs), squares))
        return options

    def _solve_for_prices(self):
        """The exact allocation, when the vertex is new or samples have grown by 2%."""
        if self.solved is None:
            self.target = self.n.copy()
            self.turns = self._turns_due(self.pulls - 1)
        if self.solved != self.vertex or self.pulls >= self.due:
            edges = self.edges()
            q = self.weights.setdefault(self.vertex, np.zeros(len(edges)))
            gain = maximin(self.law, edges, self.mu, self.filler, q, *self._set(True))
            self.solved, self.due = self.vertex, self.pulls + max(2.0, 0.02 * self.pulls)
            self.price = np.ones(self.size)
            if gain is not None:
                self.price = np.maximum(gain, 1e-3 * gain.max())

    def _turns_due(self, pulls):
        part = 1.0 if self.anytime else 0.5
        return int(part * self.size * (math.hypot(self.size, math.sqrt(pulls)) - self.size) // 1)

    def _turn(self):
        """In proportion to `inside`; if limits forbid an arm, on and on until it has been paid."""
        inside, wanted = self.rows.inside, self.saved_for
        if wanted is None:
            arms = np.flatnonzero(inside)
            wanted = int(arms[np.argmin((self.taken[arms] + 0.5) / inside[arms])])
        keeps = self.guard.keeps(self.n)
        arm = wanted
        if not keeps.any():
            arm = self.guard.least_harm(self.n)
        elif not keeps[wanted]:
            left = np.where(keeps, self.guard.harm(self.n + np.eye(self.size)[wanted]), math.inf)
            tied = left <= left.min() + 1e-12
            arm = self.chosen if tied[self.chosen] else int(np.argmin(left))
        self.taken[arm] += 1
        self.turns += 1
        ahead = self.turns - self._turns_due(self.pulls)
        waits = arm != wanted and ahead * inside[wanted] < 1
        self.saved_for = wanted if waits else None
        return arm

    def _top_two(self, evidence):
        """All on the arms of the edge with the least evidence, where they inform most."""
        edges, mu = self.edges(), self.mu
        due = self._turns_due(self.pulls)
        if self.anytime:
            if self.saved_for is not None or due > self.turns:
                return [np.eye(self.size)[self._turn()]]
        elif due > self._turns_due(self.pulls - 1):
            arms = np.flatnonzero(self.rows.inside)
            return [np.eye(self.size)[arms[due % len(arms)]]]
        if self.anytime:
            tried = (edges**2).sum(axis=1) / (edges**2 @ (1 / (self.n * self.pulls_for_one)))
        else:
            tried = np.array([self.n[np.flatnonzero(v)].min() for v in edges])
        price = 2 if self.anytime and self.pulls % 8 == 7 else 1 / 2
        score = evidence + price * np.log(tried)
        options = []
        for v in edges[score <= score.min() + TIE * (1 + abs(score.min()))]:
            value, d, _ = self.law.respond(v, mu, self.n)
            if value > 0:
                options.append((v, spend(self.n * d, 1 / self.costs)))
            if value < 1e-12:  # rounding may say that means tie, or that they do not
                options.append((v, (v != 0) / np.count_nonzero(v)))
                near = v**2 * self.law.spread(mu) / self.n  # where n d tends to as means meet
                if near.any():
                    options.append((v, spend(near, 1 / self.costs)))
        if not self.anytime:
            return [shares for _, shares in options]
        return [w for v, shares in options for w in self._priced(v, shares)]

    def _priced(self, v, shares):
        """Shares by what arms tell for their price; or all for who saves for the arm wanted."""
        shares = shares / self.price
        shares /= shares.sum()
        lag = np.where(v != 0, self.n - self.target - shares, math.inf)
        allowed = self.guard.keeps(self.n)[lag <= lag.min() + TIE]  # of the arms wanted
        return [shares] * bool(allowed.any()) + [np.eye(self.size)[self.fill()]] * (
            not allowed.all()
        )

    def track(self, followed):
        if self.tracking == "sampled":
            self.target += self.w
            u, total = self.choices.uniform(), 0.0
            arm = -1
            for a in np.flatnonzero(self.w > 0):
                arm = int(a)
                total += self.w[a]
                if u < total:
                    break
            return arm if not self.anytime or self.guard.keeps(self.n)[arm] else self.fill()
        tracked = self.w
        if self.tracking != "focused":
            part = self.size / math.sqrt(self.size**2 + self.pulls)
            part *= 1.0 if self.tracking == "direct" else 0.5
            share = part / (1 + part)
            tracked = (1 - share) * self.w + share * self.rows.inside
        self.target += tracked
        # Late allocations weigh more: the one of time s like s.
        self.average += (tracked - self.average) * min(1.0, 2.0 / (self.pulls + 1))
        owed = self.target
        if self.tracking == "direct":
            owed = (self.pulls + 1) * tracked
        elif self.tracking == "averaged":
            owed = (self.pulls + 1) * self.average
        allowed = tracked > 0
        if self.anytime:
            allowed &= self.guard.keeps(self.n)
            if not allowed.any():
                return self.fill()
        return self.furthest_behind(allowed, owed)


class AnswerTwin(Twin):
    """One run with epsilon > 0, that commits to the answers the engine commits to."""

    def _own_table(self, engine):
        problem = engine.plan.problem
        self.law.offset = problem.epsilon * float(
            problem.rewards.to_unit(1.0) - problem.rewards.to_unit(0.0)
        )
        answers = engine.table.answers
        self.answers = answers.policies
        self.rivals = answers.policies[: len(answers.vertices)]

    def edges(self):
        """The answer less every vertex that the range of means lets be too much better."""
        answer = self.answers[self.vertex]
        v = [answer - x for x in self.rivals if np.abs(answer - x).max() > 1e-12]
        v = np.where(np.abs(v) > 1e-12, v, 0.0)
        if self.law.kind == "bernoulli":
            v = v[np.maximum(v, 0).sum(axis=1) > self.law.offset + 1e-12]
        return v

    def recommend(self, followed):
        self.vertex = int(followed.integers[1])


def _pair(size, best, other):
    v = np.zeros(size)
    v[best], v[other] = 1.0, -1.0
    return v
