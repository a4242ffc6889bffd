"""What top-two, ctns and uniform do where limits are measured.

Each writes the next arm into run.integers[ARM]; episode.py says when, and keeps samples within
limits. Evidence of what a run works for grows with the distance to its hardest competitor, and
`share` says which samples add most to that (kernels/measured_answer.py).
"""

from __future__ import annotations

import math

from simplexplore.kernels import records
from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.measured_answer import share
from simplexplore.kernels.measured_search import DISTANCE, ROWS_ALONE, search
from simplexplore.kernels.records import (
    EdgeTable,
    MeasuredLimits,
    MeasuredScratch,
    RunConfig,
    RunState,
    Scratch,
)
from simplexplore.kernels.tracking import exploration

from .top_two import FORCING_RATE, forced_pulls_due

# Between solutions for an allocation, pulls grow by one part in so many; and rounds of the game
# that finds one.
PLANS = 10
ROUNDS = 30


@kernel
def solve(measured: MeasuredLimits, run: RunState, work: MeasuredScratch) -> None:
    """The allocation with the most information about the answer, into run.w: by a game.

    Against the closest alternative the sampler answers with `share`; the average of its answers
    tends to the best allocation. Shares are counts here, of as many samples as there are by now.
    """
    pulls = float(run.integers[records.PULLS])
    for a in range(measured.size):
        work.n[a] = 0.0
    for k in range(measured.useful_arms.size):
        work.n[measured.useful_arms[k]] = pulls / measured.useful_arms.size
    mode = DISTANCE if run.integers[records.TARGET] == records.ANSWER else ROWS_ALONE
    for played in range(ROUNDS):
        search(measured, run, work, work.n, run.answer, mode, -1.0, math.inf, run.closest)
        share(measured, run, work, work.n, work.shares)
        for a in range(measured.size):
            work.n[a] += (pulls * work.shares[a] - work.n[a]) / (2.0 + played)
    for a in range(measured.size):
        run.w[a] = work.n[a] / pulls


@kernel
def clock(config: RunConfig, run: RunState) -> int:
    """Pulls so far; proposals, where not each of them becomes a pull."""
    return int(
        run.integers[records.PROPOSALS]
        if config.measured.enforces_limits
        else run.integers[records.PULLS]
    )


@kernel
def in_turn(config: RunConfig, run: RunState) -> int:
    """The arms one after the other."""
    return int(config.useful_arms[clock(config, run) % config.useful_arms.size])


@kernel
def early_arm(config: RunConfig, run: RunState) -> int:
    """Each arm some times, and all in turn until there is something to work for; then -1."""
    if not run.integers[records.INITIALIZED]:
        for k in range(config.useful_arms.size):
            if run.n[config.useful_arms[k]] < config.first_pulls:
                return int(config.useful_arms[k])
        return in_turn(config, run)  # all are in flight
    return in_turn(config, run) if run.integers[records.TARGET] == records.NONE else -1


@kernel
def follow(config: RunConfig, run: RunState, forced: float) -> int:
    """The arm that is farthest behind the sum of all allocations."""
    arm = config.useful_arms[0]
    least = math.inf
    for k in range(config.useful_arms.size):
        a = config.useful_arms[k]
        tracked = (1.0 - forced) * run.w[a] + forced / config.useful_arms.size
        run.target[a] += tracked
        if tracked > 0.0 and run.n[a] - run.target[a] < least:
            least = run.n[a] - run.target[a]
            arm = a
    return int(arm)


@kernel
def uniform(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """Play the arms in turn."""
    arm = early_arm(config, run)
    run.integers[records.ARM] = arm if arm >= 0 else in_turn(config, run)


@kernel
def ctns(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """Follow the allocation with the most information, found again now and then."""
    arm = early_arm(config, run)
    if arm < 0:
        pulls, count = run.integers[records.PULLS], config.useful_arms.size
        if pulls >= run.integers[records.PLAN]:
            run.integers[records.PLAN] = pulls + max(1, pulls // PLANS)
            solve(config.measured, run, scratch.measured)
        arm = follow(config, run, exploration(count, float(pulls), 0.5))
    run.integers[records.ARM] = arm


@kernel
def top_two(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """Share the next sample by what each arm tells of the hardest competitor."""
    arm = early_arm(config, run)
    if arm < 0:
        proposed = float(clock(config, run))
        count = config.useful_arms.size
        forced = forced_pulls_due(count, proposed, FORCING_RATE)
        if forced > forced_pulls_due(count, proposed - 1.0, FORCING_RATE):
            arm = int(config.useful_arms[forced % count])
            run.target[arm] += 1.0
        else:
            share(config.measured, run, scratch.measured, run.n, run.w)
            arm = follow(config, run, 0.0)
    run.integers[records.ARM] = arm


ALLOCATE = {"top-two": top_two, "ctns": ctns, "uniform": uniform}
