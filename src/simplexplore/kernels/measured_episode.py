"""One run with measured limits: observe, judge, choose; and many runs in one call.

See episode.py; here an answer is looked at again after every hundredth part of all pulls.
"""

from __future__ import annotations

import math

from .kernel import kernel
from .measured_answer import aim, is_certain, share
from .measured_guard import guarded, learn_upper
from .measured_records import (
    AIM,
    ANSWER,
    ARM,
    CAPPED,
    CTNS,
    INTEGERS,
    LOOK,
    NOTHING,
    PLAN,
    PULLS,
    STATUS,
    TURN,
    UNIFORM,
    WARM,
    WISH,
    MeasuredJob,
    MeasuredRun,
    MeasuredSetting,
    MeasuredWork,
)
from .measured_search import DISTANCE, ROWS_ALONE, search
from .measured_student import learn
from .records import GO_ON, STOPPED
from .rng import beta, normal, uniform
from .running_mean import next_mean

# Between looks, pulls grow by one part in so many.
LOOKS = 100

# Between solutions for an allocation likewise; and rounds of the game that finds one.
PLANS = 10
ROUNDS = 30

# Forced exploration of cumulative tracking, of which top-two has half (samplers/top_two.py).
TURNS = 0.5


@kernel
def begin(setting: MeasuredSetting, run: MeasuredRun) -> None:
    """Forget everything but the random streams."""
    for a in range(setting.size):
        run.n[a] = 0.0
        run.mean[a] = 0.0
        run.lost[0, a] = 0.0
        run.target[a] = 0.0
        run.w[a] = 0.0
        run.given_up[a] = 0.0
        run.answer[a] = 0.0
        run.closest[a] = -1.0  # there is none
        for i in range(setting.rows):
            run.measured[i, a] = 0.0
            run.lost[1 + i, a] = 0.0
            run.variance[1 + i, a] = setting.spread[i, a]
            run.upper[i, a] = setting.upper[i, a]
        run.counted[a] = 0.0
        run.variance[0, a] = setting.variance[a]
    for row in range(1 + setting.rows):
        for a in range(setting.size + 1):
            run.squares[row, a] = 0.0
    for i in range(INTEGERS):
        run.integers[i] = 0


@kernel
def observe(setting: MeasuredSetting, run: MeasuredRun, arm: int, reward: float) -> None:
    """Take in a reward; its measurements follow, by `observe_row`."""
    run.integers[PULLS] += 1
    run.n[arm] += 1.0
    before = reward - run.mean[arm]
    run.mean[arm], run.lost[0, arm] = next_mean(run.mean[arm], run.lost[0, arm], reward, run.n[arm])
    if setting.unknown[0]:
        learn(setting, run, 0, arm, before, reward - run.mean[arm])


@kernel
def observe_row(
    setting: MeasuredSetting, run: MeasuredRun, arm: int, row: int, value: float
) -> None:
    """Take in a measurement of the last pull, as of a limit from above."""
    before = value - run.measured[row, arm]
    run.measured[row, arm], run.lost[1 + row, arm] = next_mean(
        run.measured[row, arm], run.lost[1 + row, arm], value, run.n[arm]
    )
    if setting.unknown[1 + row]:
        learn(setting, run, 1 + row, arm, before, value - run.measured[row, arm])


@kernel
def judge(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork) -> int:
    """After a reward: look at the answer if it is time, and say whether it is certain."""
    pulls = run.integers[PULLS]
    if not run.integers[WARM]:
        for k in range(setting.first_arms.size):
            if run.n[setting.first_arms[k]] < setting.first_pulls:
                return GO_ON
        run.integers[WARM] = 1
        run.integers[LOOK] = pulls
    if pulls < run.integers[LOOK]:
        return GO_ON
    run.integers[LOOK] = pulls + max(1, pulls // LOOKS)
    aim(setting, run, work)
    status = STOPPED if is_certain(setting, run, work) else GO_ON
    run.integers[STATUS] = status
    return status


@kernel
def solve(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork) -> None:
    """The allocation with the most information about the answer, into run.w: by a game.

    Against the closest alternative the sampler answers with `share`; the average of its answers
    tends to the best allocation. Shares are counts here, of as many samples as there are by now.
    """
    pulls = float(run.integers[PULLS])
    for a in range(setting.size):
        work.n[a] = 0.0
    for k in range(setting.first_arms.size):
        work.n[setting.first_arms[k]] = pulls / setting.first_arms.size
    mode = DISTANCE if run.integers[AIM] == ANSWER else ROWS_ALONE
    for played in range(ROUNDS):
        search(setting, run, work, work.n, run.answer, mode, -1.0, math.inf, run.closest)
        share(setting, run, work.n, work.shares)
        for a in range(setting.size):
            work.n[a] += (pulls * work.shares[a] - work.n[a]) / (2.0 + played)
    for a in range(setting.size):
        run.w[a] = work.n[a] / pulls


@kernel
def turns(setting: MeasuredSetting, pulls: float) -> int:
    """Forced pulls due after so many in all."""
    size = float(setting.first_arms.size)
    return int(TURNS * size * (math.sqrt(size * size + pulls) - size))


@kernel
def follow(setting: MeasuredSetting, run: MeasuredRun, forced: float) -> int:
    """The arm that is farthest behind the sum of all allocations."""
    arm = setting.first_arms[0]
    least = math.inf
    for k in range(setting.first_arms.size):
        a = setting.first_arms[k]
        tracked = (1.0 - forced) * run.w[a] + forced / setting.first_arms.size
        run.target[a] += tracked
        if tracked > 0.0 and run.n[a] - run.target[a] < least:
            least = run.n[a] - run.target[a]
            arm = a
    return arm


@kernel
def propose(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork) -> None:
    """What the sampler would pull next, into run.integers[ARM]."""
    count = setting.first_arms.size
    pulls = run.integers[PULLS]
    clock = run.integers[TURN] if setting.is_guarded else pulls
    if not run.integers[WARM]:
        for k in range(count):
            if run.n[setting.first_arms[k]] < setting.first_pulls:
                run.integers[ARM] = setting.first_arms[k]
                break
        else:
            run.integers[ARM] = setting.first_arms[clock % count]  # all are in flight
        return
    if setting.sampler == UNIFORM or run.integers[AIM] == NOTHING:
        run.integers[ARM] = setting.first_arms[clock % count]
        return
    if setting.sampler == CTNS:
        if pulls >= run.integers[PLAN]:
            run.integers[PLAN] = pulls + max(1, pulls // PLANS)
            solve(setting, run, work)
        part = 0.5 * count / math.sqrt(float(count * count + pulls))
        run.integers[ARM] = follow(setting, run, part / (1.0 + part))
        return
    turn = turns(setting, float(clock))
    if turn > turns(setting, clock - 1.0):
        run.integers[ARM] = setting.first_arms[turn % count]
        run.target[run.integers[ARM]] += 1.0
        return
    share(setting, run, run.n, run.w)
    run.integers[ARM] = follow(setting, run, 0.0)


@kernel
def choose(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork) -> None:
    """The next arm, into run.integers[ARM]."""
    if run.integers[WISH] == 0:
        propose(setting, run, work)
    if setting.is_guarded:
        run.integers[ARM] = guarded(setting, run)


@kernel
def advance(
    setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork, judging: bool, choosing: bool
) -> int:
    """After a reward: look at the answer, then choose the next arm; one or both of these."""
    status = GO_ON
    if judging:
        if setting.is_guarded:
            learn_upper(setting, run, work)
        status = judge(setting, run, work)
    if choosing and status == GO_ON:
        choose(setting, run, work)
    return status


@kernel
def draw(run: MeasuredRun, low: float, high: float, mean: float, noise: float) -> float:
    """One outcome: normal, or between two ends, as rewards are drawn (exponential.py)."""
    if not high > low:
        return mean + noise * normal(run.rewards)
    part = (mean - low) / (high - low)
    if noise < 1.0:
        return low + (high - low) * beta(run.rewards, part, noise)
    return high if uniform(run.rewards) < part else low


@kernel
def play(setting: MeasuredSetting, run: MeasuredRun, job: MeasuredJob) -> None:
    """Draw reward and measurements of the chosen arm, and take them in."""
    arm = run.integers[ARM]
    reward = draw(run, job.ends[0, 0], job.ends[0, 1], job.means[arm], job.noise[arm])
    observe(setting, run, arm, reward)
    for i in range(setting.rows):
        low, high = job.ends[1 + i, 0], job.ends[1 + i, 1]
        value = draw(run, low, high, job.measured[i, arm], job.spread[i, arm])
        observe_row(setting, run, arm, i, value)


@kernel
def exceeds(setting: MeasuredSetting, run: MeasuredRun, job: MeasuredJob) -> bool:
    """Whether the true mean over all pulls exceeds a limit that they should keep."""
    if not setting.is_guarded:
        return False
    for i in range(setting.rows):
        over = 0.0
        size = 0.0
        for a in range(setting.size):
            over += run.n[a] * (job.measured[i, a] - setting.limit[i])
            size += run.n[a] * abs(job.measured[i, a])
        if over > 1e-12 * size:
            return True
    return False


@kernel
def simulate_measured(
    setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork, job: MeasuredJob
) -> int:
    """All runs of a job."""
    for number in range(job.seeds.shape[0]):
        begin(setting, run)
        for k in range(4):
            run.rewards[k] = job.seeds[number, 0, k]
            run.choices[k] = job.seeds[number, 1, k]
        choose(setting, run, work)
        while True:
            if run.integers[PULLS] >= job.cap:
                run.integers[CAPPED] = 1
                break
            play(setting, run, job)
            if exceeds(setting, run, job):
                job.exceeded[number] = 1
            if setting.advance(setting, run, work, True, True) == STOPPED:
                break
        pulls = run.integers[PULLS]
        job.pulls[number] = -pulls if run.integers[CAPPED] else pulls
        job.aims[number] = run.integers[AIM]
        for a in range(setting.size):
            job.counts[number, a] = run.n[a]
            job.answers[number, a] = run.answer[a]
    return STOPPED
