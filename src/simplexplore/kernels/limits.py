"""Limits on samples, kept by the pulls themselves and not only by the allocation they follow.

What a row is exceeded by is counted in pulls, A_i n - t b_i, over all pulls handed out: answered,
in flight or expired. An arm may be played if after its pull every row, floor and cap holds, or
is exceeded by no more than before; if some arm alone satisfies all inequalities, one always may,
and nothing is ever exceeded. Otherwise the arm is played after which excesses have the least sum
of squares, which bounds them for good. Proofs: docs/theory/tracking.md.
"""

from __future__ import annotations

import math

from .kernel import inlined, kernel
from .records import INITIALIZED, RunConfig, RunState, Scratch

# In pulls: less is not an excess.
ROUNDING = 1e-7

# Places in Scratch.counts: pulls handed out, how many arms miss their floor unless they are played
# next, and the last of these.
PULLS_ASSIGNED, ARMS_DUE, LAST_DUE = range(3)


@inlined
def assigned(run: RunState, a: int) -> float:
    """Pulls of an arm, expired ones included; those in flight are counted by the caller."""
    return run.n[a] + run.expired[a]


@inlined
def allowed_excess(config: RunConfig, run: RunState) -> float:
    """Pulls by which a limit may be exceeded: some while arms are tried for the first time."""
    return 0.0 if run.integers[INITIALIZED] else config.allowed_excess


@inlined
def allowed_excess_of_arm(config: RunConfig, run: RunState, a: int) -> float:
    """The same for an arm's floor and cap; where these are one, whole pulls must miss it."""
    cap = config.shares.upper[a]
    return allowed_excess(config, run) if config.shares.lower[a] < cap else max(cap, 1.0 - cap)


@kernel
def measure(config: RunConfig, run: RunState, scratch: Scratch) -> None:
    """Write by how many pulls each row is exceeded into scratch.excess, and scratch.counts.

    Nothing moves some rows, as the sum of all shares.
    """
    excess, counts, limits = scratch.excess, scratch.counts, config.shares
    pulls = 0.0
    for a in range(config.size):
        pulls += assigned(run, a)
    for i in range(limits.b.size):
        if config.steps[i] > 0.0:
            used = 0.0
            for a in range(config.size):
                used += limits.A[i, a] * assigned(run, a)
            excess[i] = used - pulls * limits.b[i]
    counts[PULLS_ASSIGNED], counts[ARMS_DUE], counts[LAST_DUE] = pulls, 0.0, -1.0
    if limits.limited:
        for a in range(config.size):
            least = allowed_excess_of_arm(config, run, a) + ROUNDING
            if (pulls + 1.0) * limits.lower[a] - assigned(run, a) > least:
                counts[ARMS_DUE] += 1.0
                counts[LAST_DUE] = float(a)


@kernel
def is_allowed(config: RunConfig, run: RunState, scratch: Scratch, a: int) -> bool:
    """Whether after a pull of the arm all limits hold, or are exceeded by no more than before."""
    excess, counts, limits = scratch.excess, scratch.counts, config.shares
    most = allowed_excess(config, run) + ROUNDING
    for i in range(limits.b.size):
        if i < limits.inequalities:
            move = limits.A[i, a] - limits.b[i]
            if move > ROUNDING and excess[i] + move > most:
                return False
        elif config.steps[i] > 0.0:
            after = abs(excess[i] + limits.A[i, a] - limits.b[i])
            if after > config.steps[i] + ROUNDING and after > abs(excess[i]):
                return False
    if limits.limited:
        most = allowed_excess_of_arm(config, run, a) + ROUNDING
        if assigned(run, a) + 1.0 - (counts[PULLS_ASSIGNED] + 1.0) * limits.upper[a] > most:
            return False
        due = counts[ARMS_DUE]
        return due == 0.0 or (due == 1.0 and counts[LAST_DUE] == float(a))
    return True


@kernel
def frees_slack(config: RunConfig, a: int) -> bool:
    """Whether a pull of the arm uses up no row."""
    limits = config.shares
    for i in range(limits.inequalities):
        if limits.A[i, a] - limits.b[i] > ROUNDING:
            return False
    return not limits.upper[a] < 1.0


@inlined
def squared(excess: float) -> float:
    """The square of an excess, if it is one."""
    return excess * excess if excess > 0.0 else 0.0


@kernel
def violation(config: RunConfig, run: RunState, scratch: Scratch, a: int, owed: int) -> float:
    """Sum of squares of the excesses after a pull of an arm and one of another, if not -1."""
    excess, limits = scratch.excess, config.shares
    found = 0.0
    for i in range(limits.b.size):
        if config.steps[i] > 0.0:
            after = excess[i]
            if owed >= 0:
                after += limits.A[i, owed] - limits.b[i]
            after = after + limits.A[i, a] - limits.b[i]
            if i < limits.inequalities:
                found += squared(after - allowed_excess(config, run))
            else:
                found += squared(abs(after) - config.steps[i])
    if limits.limited:
        # Of the single arms' terms only its own changes with who is played.
        pulls = scratch.counts[PULLS_ASSIGNED] + (1.0 if owed < 0 else 2.0)
        n = assigned(run, a)
        spare = allowed_excess_of_arm(config, run, a)
        most, least = pulls * limits.upper[a], pulls * limits.lower[a]
        found += squared(n + 1.0 - most - spare)
        found -= squared(n - most - spare)
        found += squared(least - n - 1.0 - spare)
        found -= squared(least - n - spare)
    return found


@kernel
def least_violating_arm(config: RunConfig, run: RunState, scratch: Scratch) -> int:
    """The arm after which excesses have the least sum of squares."""
    arm = config.useful_arms[0]
    least = math.inf
    for k in range(config.useful_arms.size):
        a = config.useful_arms[k]
        after = violation(config, run, scratch, a, -1)
        if after < least:
            least = after
            arm = a
    return arm


@kernel
def wait_for_slack(config: RunConfig, run: RunState, scratch: Scratch, owed: int) -> int:
    """The arm to play until limits allow the one that is owed a pull.

    Of the arms that keep them, the one that leaves the least to save.
    """
    arm = -1
    least = math.inf
    for k in range(config.useful_arms.size):
        a = config.useful_arms[k]
        if is_allowed(config, run, scratch, a):
            after = violation(config, run, scratch, a, owed)
            if after < least:
                least = after
                arm = a
    return arm if arm >= 0 else least_violating_arm(config, run, scratch)


@kernel
def fallback_arm(config: RunConfig, run: RunState, scratch: Scratch) -> int:
    """The arm to play where limits forbid those of the allocation.

    Of the arms that keep them, the one furthest behind the allocation that was last solved for.
    """
    arm = -1
    least = math.inf
    pulls = scratch.counts[PULLS_ASSIGNED] + 1.0
    for k in range(config.useful_arms.size):
        a = config.useful_arms[k]
        lag = assigned(run, a) - pulls * run.fallback_allocation[a]
        if lag < least and is_allowed(config, run, scratch, a):
            least = lag
            arm = a
    return arm if arm >= 0 else least_violating_arm(config, run, scratch)
