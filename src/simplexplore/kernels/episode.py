"""One run: observe, recommend, stop or choose; and many runs in one call.

Simulation and live exploration (events.py) call the same `observe`, `judge` and `choose`. When
the best policy moves to a vertex whose edges are not in the table yet, `judge` returns
UNKNOWN_VERTEX; Python adds the vertex and calls again, and nothing is lost or repeated. So it is
with UNKNOWN_REGRET.
"""

from __future__ import annotations

import math

from .guard import keeps, least_harm, measure, saves
from .information import draw, learn, refresh, touch
from .kernel import inlined, kernel
from .records import (
    ARM,
    CAPPED,
    GO_ON,
    ITERATIONS,
    LOOK,
    MISSING_EDGE,
    PULLS,
    STATUS,
    STOPPED,
    VERTEX,
    WARM,
    Job,
    Matrix,
    Memory,
    Run,
    Setting,
    Table,
)
from .running_mean import next_mean
from .tracking import track

# Running sums are recomputed this often against drift; a power of two.
REFRESH = 1024


@kernel
def clear(matrix: Matrix, width: int) -> None:
    """Fill so many columns with zeros, or all if there are fewer."""
    for i in range(matrix.shape[0]):
        for k in range(min(width, matrix.shape[1])):
            matrix[i, k] = 0.0


@kernel
def begin(setting: Setting, table: Table, run: Run, memory: Memory) -> None:
    """Forget everything but the random streams."""
    for a in range(setting.size):
        run.n[a] = 0.0
        run.mean[a] = 0.0
        run.lost[a] = 0.0
        run.clipped[a] = min(max(0.0, setting.lowest), setting.highest)
        run.target[a] = 0.0
        run.average[a] = setting.inside[a]
        run.w[a] = setting.fixed[a]
        run.filler[a] = setting.inside[a]
        run.given_up[a] = 0.0
    # There is room for more edges than are known; what lies beyond was never written.
    edges = table.first_edge[table.first_edge.size - 1]
    if not setting.closed_form:
        for e in range(table.first_root + edges):
            run.root[e] = 0.0
    for i in range(run.integers.size):
        run.integers[i] = 0
    clear(memory.arms, memory.arms.shape[1])
    clear(memory.edges, max(edges, setting.pairs.following.size))
    clear(memory.rows, memory.rows.shape[1])
    clear(memory.looks, edges)
    clear(run.bets, run.bets.shape[1])
    for a in range(run.squares.size):
        run.squares[a] = 0.0


@kernel
def bet(setting: Setting, run: Run, arm: int, reward: float) -> None:
    """Take a bounded reward into the sums that tilt.py needs."""
    count = setting.tilts.strength.size
    for k in range(count):
        run.bets[arm, k] += math.log1p(setting.tilts.slope[0, k] * reward)
        run.bets[arm, count + k] += math.log1p(setting.tilts.slope[1, k] * reward)


@inlined
def observe(setting: Setting, table: Table, run: Run, arm: int, reward: float) -> None:
    """Take in one reward, in unit coordinates."""
    run.integers[PULLS] += 1
    before = run.clipped[arm]
    apart = reward - run.mean[arm]
    n = run.n[arm] + 1.0
    run.n[arm] = n
    run.mean[arm], run.lost[arm] = next_mean(run.mean[arm], run.lost[arm], reward, n)
    if setting.betting:
        bet(setting, run, arm, reward)
    learn(setting, run, arm, apart, reward - run.mean[arm])
    run.clipped[arm] = min(max(run.mean[arm], setting.lowest), setting.highest)
    if run.integers[WARM] and n > 1.0:
        if run.integers[PULLS] & (REFRESH - 1) == 0:
            refresh(setting, table, run)
        else:
            touch(setting, table, run, arm, run.clipped[arm] - before, 1.0 / n - 1.0 / (n - 1.0))


@inlined
def weakest_edge(table: Table, run: Run) -> int:
    """The edge, counted from the vertex's first, with the least evidence; -1 if none."""
    vertex = run.integers[VERTEX]
    count = table.first_edge[vertex + 1] - table.first_edge[vertex]
    weakest = -1
    least = math.inf
    for e in range(count):
        if run.value[e] < least:
            least = run.value[e]
            weakest = e
    return weakest


@inlined
def unsettled(setting: Setting, run: Run, weakest: int) -> bool:
    """Whether to recommend anew: some edge may improve, or it is time to look at the answers."""
    if setting.sticking and run.integers[PULLS] >= run.integers[LOOK]:
        return True
    return weakest >= 0 and run.value[weakest] <= 0.0


@inlined
def judge(setting: Setting, table: Table, run: Run, memory: Memory) -> int:
    """After a reward: recommend, and say whether the evidence is enough."""
    if not run.integers[WARM]:
        for k in range(setting.first_arms.size):
            if run.n[setting.first_arms[k]] < setting.first_pulls:
                return GO_ON
        run.integers[WARM] = 1
        refresh(setting, table, run)
    weakest = weakest_edge(table, run)
    if unsettled(setting, run, weakest):
        status = setting.slots.recommend(setting, table, run, memory)
        run.integers[STATUS] = status
        if status != GO_ON:
            return status
        weakest = weakest_edge(table, run)
    status = STOPPED
    if weakest >= 0:
        status = GO_ON
        if run.value[weakest] >= setting.least_level:  # below that no rule would stop
            status = setting.slots.enough(setting, table, run, memory, weakest)
    run.integers[STATUS] = status
    return status


@kernel
def try_arms(setting: Setting, run: Run, memory: Memory) -> int:
    """Each arm once, or more, in order; until all have answered, the inside of the set is tracked.

    An arm that limits forbid is tried when enough has been saved for it; until then arms that
    use up none of them come first.
    """
    waiting = False
    for a in range(setting.size):
        run.target[a] += setting.inside[a]
    if setting.anytime:
        measure(setting, run, memory)
    for k in range(setting.first_arms.size):
        a = setting.first_arms[k]
        if run.n[a] < setting.first_pulls:
            if not setting.anytime or keeps(setting, run, memory, a):
                return a
            waiting = True
    arm = -1
    least = math.inf
    for k in range(setting.first_arms.size):
        a = setting.first_arms[k]
        lag = run.n[a] - run.target[a]
        if setting.anytime and waiting and not saves(setting, a):
            lag += 1e12
        if lag < least and (not setting.anytime or keeps(setting, run, memory, a)):
            least = lag
            arm = a
    return arm if arm >= 0 else least_harm(setting, run, memory)


@inlined
def choose(setting: Setting, table: Table, run: Run, memory: Memory) -> None:
    """The next arm, into run.integers[ARM]."""
    if run.integers[WARM]:
        if setting.anytime:
            measure(setting, run, memory)
        setting.slots.allocate(setting, table, run, memory)
        if run.integers[ITERATIONS] == 0:
            run.integers[ARM] = track(setting, run, memory)
    else:
        run.integers[ARM] = try_arms(setting, run, memory)


@inlined
def advance(setting: Setting, table: Table, run: Run, memory: Memory) -> int:
    """After a reward: recommend, then stop or choose the next arm."""
    status = judge(setting, table, run, memory)
    if status == GO_ON:
        choose(setting, table, run, memory)
    return status


@kernel
def step(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    arm: int,
    reward: float,
    observed: bool,
) -> int:
    """Take in a reward, unless it was observed already, and `advance`."""
    if not observed:
        observe(setting, table, run, arm, reward)
    return advance(setting, table, run, memory)


@inlined
def start_run(
    setting: Setting, table: Table, run: Run, memory: Memory, job: Job, number: int
) -> None:
    """Make ready for a simulated run: its random streams, its first arm."""
    begin(setting, table, run, memory)
    run.integers[ARM] = try_arms(setting, run, memory)
    run.integers[VERTEX] = job.progress[2]
    for k in range(4):
        run.rewards[k] = job.seeds[number, 0, k]
        run.choices[k] = job.seeds[number, 1, k]


@inlined
def play(setting: Setting, table: Table, run: Run, job: Job) -> None:
    """Draw the reward of the chosen arm, and take it in."""
    arm = run.integers[ARM]
    observe(setting, table, run, arm, draw(setting, run, job.means[arm], job.noise[arm]))


@inlined
def keep_result(setting: Setting, run: Run, job: Job, number: int) -> None:
    """Write down how a run ended: pulls (negative if capped), vertex and counts."""
    pulls = run.integers[PULLS]
    job.pulls[number] = -pulls if run.integers[CAPPED] else pulls
    job.vertices[number] = run.integers[VERTEX]
    for a in range(setting.size):
        job.counts[number, a] = run.n[a]


@kernel
def simulate_runs(setting: Setting, table: Table, run: Run, memory: Memory, job: Job) -> int:
    """Runs progress[0] to the last, as far as known vertices allow.

    `progress` holds the run at hand and whether it is under way.
    """
    progress = job.progress
    while progress[0] < job.seeds.shape[0]:
        # Back from Python with the vertex that was missing, the last reward waits to be judged.
        waiting = progress[1] == 1
        if not waiting:
            start_run(setting, table, run, memory, job, progress[0])
            progress[1] = 1
        while True:
            if not waiting:
                if run.integers[PULLS] >= job.cap:
                    run.integers[CAPPED] = 1
                    break
                play(setting, table, run, job)
            waiting = False
            # The one call in this function: each would be compiled in full.
            status = advance(setting, table, run, memory)
            if status == STOPPED:
                break
            if status != GO_ON:
                return status
        keep_result(setting, run, job, progress[0])
        progress[0] += 1
        progress[1] = 0
    return STOPPED


@kernel
def take(job: Job) -> int:
    """The number of a run that nobody has taken yet. A GPU's threads ask one after the other."""
    number = job.progress[0]
    job.progress[0] = number + 1
    return number


@kernel
def simulate_queue(setting: Setting, table: Table, run: Run, memory: Memory, job: Job) -> None:
    """Take runs until there are none: what each of a GPU's threads does.

    One step is one turn of one loop, so that threads in step with each other stay so though their
    runs end at different times; an allocation that takes long is worked on in several turns. A run
    that meets a vertex which is not in the table is left, with 0 pulls and the number of the edge
    that leads there; whoever called adds it and has the run made anew.
    """
    number = -1
    while True:
        if number < 0:
            number = take(job)
            if number >= job.seeds.shape[0]:
                return
            start_run(setting, table, run, memory, job, number)
        status = GO_ON
        if run.integers[ITERATIONS] == 0:
            if run.integers[PULLS] >= job.cap:
                run.integers[CAPPED] = 1
                status = STOPPED
            else:
                play(setting, table, run, job)
                status = judge(setting, table, run, memory)
        if status == GO_ON:
            choose(setting, table, run, memory)
        if status == STOPPED:
            keep_result(setting, run, job, number)
        elif status != GO_ON:
            job.pulls[number] = 0
            job.vertices[number] = run.integers[MISSING_EDGE]
        if status != GO_ON:
            number = -1
