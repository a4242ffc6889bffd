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
from .records import WARM, Memory, Run, Setting

# In pulls: less is not an excess.
ROUNDING = 1e-7


@inlined
def handed_out(run: Run, a: int) -> float:
    """Pulls of an arm, expired ones included; those in flight are counted by the caller."""
    return run.n[a] + run.given_up[a]


@inlined
def room(setting: Setting, run: Run) -> float:
    """Pulls by which a limit may be exceeded: some while arms are tried for the first time."""
    return 0.0 if run.integers[WARM] else setting.room


@inlined
def room_of_arm(setting: Setting, run: Run, a: int) -> float:
    """The same for an arm's floor and cap; where these are one, whole pulls must miss it."""
    if setting.floor[a] < setting.cap[a]:
        return room(setting, run)
    return max(setting.cap[a], 1.0 - setting.cap[a])


@inlined
def changes(setting: Setting, i: int) -> bool:
    """Whether some pull moves an equality; none moves the sum of all shares."""
    return setting.steps[i] > 0.0


@kernel
def measure(setting: Setting, run: Run, memory: Memory) -> None:
    """Write by how many pulls each row is exceeded, inequalities first, into memory.excess.

    Then how many arms miss their floor unless they are played next, and the last of them.
    """
    excess = memory.excess
    m, rows = setting.limit.size, setting.limit.size + setting.total.size
    pulls = 0.0
    for a in range(setting.size):
        pulls += handed_out(run, a)
    for i in range(m):
        used = 0.0
        for a in range(setting.size):
            used += setting.above[i, a] * handed_out(run, a)
        excess[i] = used - pulls * setting.limit[i]
    for i in range(setting.total.size):
        if changes(setting, i):
            used = 0.0
            for a in range(setting.size):
                used += setting.equal[i, a] * handed_out(run, a)
            excess[m + i] = used - pulls * setting.total[i]
    excess[rows], excess[rows + 1], excess[rows + 2] = pulls, 0.0, -1.0
    if setting.limited:
        for a in range(setting.size):
            least = room_of_arm(setting, run, a) + ROUNDING
            if (pulls + 1.0) * setting.floor[a] - handed_out(run, a) > least:
                excess[rows + 1] += 1.0
                excess[rows + 2] = float(a)


@kernel
def keeps(setting: Setting, run: Run, memory: Memory, a: int) -> bool:
    """Whether after a pull of the arm all limits hold, or are exceeded by no more than before."""
    excess = memory.excess
    m, rows = setting.limit.size, setting.limit.size + setting.total.size
    most = room(setting, run) + ROUNDING
    for i in range(m):
        move = setting.above[i, a] - setting.limit[i]
        if move > ROUNDING and excess[i] + move > most:
            return False
    for i in range(setting.total.size):
        if changes(setting, i):
            after = abs(excess[m + i] + setting.equal[i, a] - setting.total[i])
            if after > setting.steps[i] + ROUNDING and after > abs(excess[m + i]):
                return False
    if setting.limited:
        most = room_of_arm(setting, run, a) + ROUNDING
        if handed_out(run, a) + 1.0 - (excess[rows] + 1.0) * setting.cap[a] > most:
            return False
        due = excess[rows + 1]
        return due == 0.0 or (due == 1.0 and excess[rows + 2] == float(a))
    return True


@kernel
def saves(setting: Setting, a: int) -> bool:
    """Whether a pull of the arm uses up no row."""
    for i in range(setting.limit.size):
        if setting.above[i, a] - setting.limit[i] > ROUNDING:
            return False
    return not setting.cap[a] < 1.0


@inlined
def squared(excess: float) -> float:
    """The square of an excess, if it is one."""
    return excess * excess if excess > 0.0 else 0.0


@kernel
def harm(setting: Setting, run: Run, memory: Memory, a: int, owed: int) -> float:
    """Sum of squares of the excesses after a pull of an arm and one of another, if not -1."""
    excess = memory.excess
    m = setting.limit.size
    found = 0.0
    for i in range(m):
        before = excess[i]
        if owed >= 0:
            before += setting.above[i, owed] - setting.limit[i]
        found += squared(before + setting.above[i, a] - setting.limit[i] - room(setting, run))
    for i in range(setting.total.size):
        if changes(setting, i):
            before = excess[m + i]
            if owed >= 0:
                before += setting.equal[i, owed] - setting.total[i]
            after = abs(before + setting.equal[i, a] - setting.total[i])
            found += squared(after - setting.steps[i])
    if setting.limited:
        # Of the single arms' terms only its own changes with who is played.
        pulls = excess[m + setting.total.size] + (1.0 if owed < 0 else 2.0)
        n = handed_out(run, a)
        spare = room_of_arm(setting, run, a)
        found += squared(n + 1.0 - pulls * setting.cap[a] - spare)
        found -= squared(n - pulls * setting.cap[a] - spare)
        found += squared(pulls * setting.floor[a] - n - 1.0 - spare)
        found -= squared(pulls * setting.floor[a] - n - spare)
    return found


@kernel
def least_harm(setting: Setting, run: Run, memory: Memory) -> int:
    """The arm after which excesses have the least sum of squares."""
    arm = setting.first_arms[0]
    least = math.inf
    for k in range(setting.first_arms.size):
        a = setting.first_arms[k]
        after = harm(setting, run, memory, a, -1)
        if after < least:
            least = after
            arm = a
    return arm


@kernel
def save_for(setting: Setting, run: Run, memory: Memory, owed: int) -> int:
    """The arm to play until limits allow the one that is owed a pull.

    Of the arms that keep them, the one that leaves the least to save.
    """
    arm = -1
    least = math.inf
    for k in range(setting.first_arms.size):
        a = setting.first_arms[k]
        if keeps(setting, run, memory, a):
            after = harm(setting, run, memory, a, owed)
            if after < least:
                least = after
                arm = a
    return arm if arm >= 0 else least_harm(setting, run, memory)


@kernel
def fill(setting: Setting, run: Run, memory: Memory) -> int:
    """The arm to play where limits forbid those of the allocation.

    Of the arms that keep them, the one furthest behind the allocation that was last solved for.
    """
    arm = -1
    least = math.inf
    pulls = memory.excess[setting.limit.size + setting.total.size] + 1.0
    for k in range(setting.first_arms.size):
        a = setting.first_arms[k]
        lag = handed_out(run, a) - pulls * run.filler[a]
        if lag < least and keeps(setting, run, memory, a):
            least = lag
            arm = a
    return arm if arm >= 0 else least_harm(setting, run, memory)
