"""A slow twin of exploration: dense matrices and loops, from the description of each rule.

The twin is given what the engine knows (rows of the allocation set, its inside, the policies
and their edges) and follows the same rewards with code of its own. Roots and projections
are found by general methods; where an iteration that is cut short decides the allocation,
the iteration is written out plainly. Ties, which discrete rewards make often, are followed
as the engine breaks them, but only ties.
"""

from __future__ import annotations

import math

import numpy as np

from twin_rewards import Law, Xoshiro
from twin_solvers import Guard, Rows, maximin, project, project_on_simplex, spend

# Scores this close are a tie, in which the engine's choice is followed.
TIE = 1e-9

STOP = "stop"


# ---------------------------------------------------------------- a run


class Twin:
    """One run, told the same rewards as the engine."""

    def __init__(self, engine, sampler, tracking, words, threshold=None):
        plan, config = engine.plan, engine.workspace.config
        family = plan.problem.rewards
        kind = "bernoulli" if family.name == "bounded" else family.name
        self.family = family
        self.law = Law(kind, config.variance)
        self.size = plan.problem.size
        self.anytime = config.anytime
        self.sampler, self.tracking = sampler, tracking
        self.costs = plan.problem.costs / plan.problem.costs.mean()
        self.rows = Rows(config)
        self.spend = Rows(config, self.costs) if np.ptp(self.costs) else self.rows
        self.guard = Guard(config)
        self.fallback_allocation = config.interior_allocation.copy()
        self.pulls_per_use = self.guard.pulls_per_use()
        self.solved, self.due, self.price = None, 0.0, np.ones(self.size)
        self.turns, self.taken, self.saved_for = 0, np.zeros(self.size), None
        self.limits = (config.lowest, config.highest)
        self.threshold = threshold
        self.choices = Xoshiro(words[1])
        self.n = np.zeros(self.size)
        self.mean = np.zeros(self.size)
        self.target = config.interior_allocation.copy()  # the first arm is chosen
        self.warm = False
        # A table of our own, so that the engine's grows as it would.
        self.table = self._own_table(engine)
        self.vertex = 0
        self.weights = {}
        self.squares = np.zeros(self.size)
        self.best_arm_w = np.zeros(self.size)
        self.w = self._first_allocation(plan)

    def _own_table(self, engine):
        return engine.workspace.table.fresh()

    def _first_allocation(self, plan):
        inside = self.rows.interior_allocation
        if self.sampler == "oracle":
            return np.array(plan.allocation)
        if self.sampler == "uniform" and self.anytime:
            even = np.full(self.size, 1 / self.size)
            return self.project(even, np.ones(self.size), self.rows)
        return inside.copy()

    def project(self, y, loose, r):
        return project(y, loose, r.above, r.limit, r.equal, r.total, r.interior_allocation > 0)

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
        return -self.table.edges[self.vertex].dense(self.size)

    def observe(self, arm, reward):
        self.n[arm] += 1
        unit = float(self.family.to_unit(reward))
        self.mean[arm] += (unit - self.mean[arm]) / self.n[arm]

    def advance(self, followed):
        """The next arm, or STOP; the engine's run decides ties only."""
        self.chosen = int(followed.integers[2])
        if not self.warm:
            waiting = np.flatnonzero((self.rows.interior_allocation > 0) & (self.n == 0))
            if len(waiting):
                self.target += self.rows.interior_allocation
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
                key=lambda x: (
                    np.abs(x[0] - followed.w).max() + np.abs(x[1] - followed.arm_state[0]).max()
                ),
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
            return self.guard.least_violating_arm(self.n)
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
            return self.guard.least_violating_arm(self.n)
        return self.furthest_behind(keeps, (self.pulls + 1) * self.fallback_allocation)

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
            first = self.table.arrays.first_edge[self.vertex]
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
            gain = maximin(self.law, edges, self.mu, self.fallback_allocation, q, *self._set(True))
            self.solved, self.due = self.vertex, self.pulls + max(2.0, 0.02 * self.pulls)
            self.price = np.ones(self.size)
            if gain is not None:
                self.price = np.maximum(gain, 1e-3 * gain.max())

    def _turns_due(self, pulls):
        part = 1.0 if self.anytime else 0.5
        return int(part * self.size * (math.hypot(self.size, math.sqrt(pulls)) - self.size) // 1)

    def _turn(self):
        """In proportion to `inside`; if limits forbid an arm, on and on until it has been paid."""
        inside, wanted = self.rows.interior_allocation, self.saved_for
        if wanted is None:
            arms = np.flatnonzero(inside)
            wanted = int(arms[np.argmin((self.taken[arms] + 0.5) / inside[arms])])
        keeps = self.guard.keeps(self.n)
        arm = wanted
        if not keeps.any():
            arm = self.guard.least_violating_arm(self.n)
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
            arms = np.flatnonzero(self.rows.interior_allocation)
            return [np.eye(self.size)[arms[due % len(arms)]]]
        if self.anytime:
            tried = (edges**2).sum(axis=1) / (edges**2 @ (1 / (self.n * self.pulls_per_use)))
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
            direct = min(0.4, part * min(2.0, max(0.5, 10 / self.size)))
            part = direct if self.tracking == "direct" else 0.5 * part
            share = part / (1 + part)
            tracked = (1 - share) * self.w + share * self.rows.interior_allocation
        self.target += tracked
        owed = self.target
        if self.tracking == "direct":
            rare = self.n < (math.sqrt(self.size**2 + self.pulls) - self.size) / 2
            owed = (self.pulls + 1) * np.where(rare, 3.0, tracked)
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
        answers = engine.workspace.table.answers
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
