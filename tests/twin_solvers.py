"""Slow twins of the solvers: projections, the most information, and the guard of limits.

Projections are found by a cone solver; where an iteration that is cut short decides the allocation,
it is written out plainly.
"""

from __future__ import annotations

import math

import clarabel
import numpy as np
import scipy.optimize
import scipy.sparse

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


def all_rows(config):
    """(above, limit, equal, total) with floors and caps of single arms as rows."""
    unit, allowed, m = np.eye(config.size), config.shares, config.shares.inequalities
    fixed = np.flatnonzero((allowed.lower == allowed.upper) & (config.interior_allocation > 0))
    room = allowed.lower < allowed.upper
    capped = np.flatnonzero(room & np.isfinite(allowed.upper))
    floored = np.flatnonzero(room & (allowed.lower > 0))
    return (
        np.vstack([allowed.A[:m], unit[capped], -unit[floored]]),
        np.concatenate([allowed.b[:m], allowed.upper[capped], -allowed.lower[floored]]),
        np.vstack([allowed.A[m:], unit[fixed]]),
        np.concatenate([allowed.b[m:], allowed.lower[fixed]]),
    )


class Rows:
    """The allocation set {above w <= limit, equal w = total, w >= 0} and answers within it."""

    def __init__(self, config, costs=None):
        self.above, self.limit, self.equal, self.total = all_rows(config)
        self.interior_allocation, self.max_slack = (
            config.interior_allocation,
            config.shares.max_slack,
        )
        if costs is not None:
            self._in_spend(costs)
        self.matrix = np.vstack([self.above, self.equal])
        self.bound = np.concatenate([self.limit, self.total])
        seen = self.equal[:, self.interior_allocation > 0].T
        prices = np.linalg.lstsq(seen, np.ones(len(seen)), rcond=None)[0]
        self.start = np.concatenate([np.zeros(len(self.limit)), prices])
        self.m = len(self.limit)
        self.x = np.zeros(len(self.bound))

    def _in_spend(self, costs):
        """The same set in shares of what is spent: rows of multiples of allocations."""
        self.interior_allocation, self.max_slack = (
            spend(self.interior_allocation, costs),
            spend(self.max_slack, costs),
        )
        self.above = (self.above - self.limit[:, None]) / costs
        self.limit = np.zeros(len(self.limit))
        others = (self.equal - self.total[:, None]) / costs
        others = others[np.abs(others[:, self.interior_allocation > 0]).max(axis=1) > 1e-12]
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
        room = self.limit - self.above @ self.max_slack
        lean = max([0.0, *(e / (e + r) for e, r in zip(excess, room, strict=True) if e > 1e-14)])
        w[:] = (1 - lean) * w + lean * self.max_slack


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
    w[:] = (1 - 1e-6) * w + 1e-6 * rows.interior_allocation
    usable = rows.interior_allocation > 0
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
        w[:] = rows.interior_allocation
    return gain


class Guard:
    """Which arms keep the limits, by rows alone: floors and caps are rows like others."""

    def __init__(self, config):
        unit, allowed, m = np.eye(config.size), config.shares, config.shares.inequalities
        floor, cap = allowed.lower, allowed.upper
        capped, floored = np.isfinite(cap), floor > 0
        self.uses_up = np.vstack([allowed.A[:m], unit[capped]])
        self.least = np.concatenate([allowed.b[:m], cap[capped]])
        self.above = np.vstack([self.uses_up, -unit[floored]])
        self.limit = np.concatenate([self.least, -floor[floored]])
        self.equal, self.total = allowed.A[m:], allowed.b[m:]
        self.arms = config.interior_allocation > 0
        moves = np.abs(self.equal - self.total[:, None])
        self.step = moves[:, self.arms].max(axis=1)[:, None]
        held = (floor == cap) & capped
        miss = np.where(held, np.maximum(cap, 1 - cap), 0.0)
        rooms = [np.zeros(m), miss[capped], miss[floored]]
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

    def pulls_per_use(self):
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

    def least_violating_arm(self, n):
        """The arm after which excesses have the least sum of squares."""
        harm = self.harm(n)
        return int(np.flatnonzero(harm <= harm.min() + 1e-12)[0])
