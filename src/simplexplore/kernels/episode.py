"""One run: observe, recommend, stop or choose; and many runs in one call.

Simulation and live exploration (events.py) call the same `observe`, `check_stopping` and `choose`.
When the best policy moves to a vertex whose edges are not in the table yet, `check_stopping`
returns UNKNOWN_VERTEX; Python adds the vertex and calls again, and nothing is lost or repeated. So
it is with UNKNOWN_REGRET.

What a pull reports beside the reward are further channels. There are some where limits are
measured; an answer is then no vertex, and its hardest competitor takes the place of edges.
"""

from __future__ import annotations

import math

from . import records
from .compensated_mean import next_mean
from .information import learns_variance, recompute_statistics, update_statistics
from .kernel import inlined, kernel
from .limits import frees_slack, is_allowed, least_violating_arm, measure
from .measured_limits import enforce_limits, exceeds, update_upper_limits
from .records import EdgeTable, Matrix, RunConfig, RunState, Scratch, SimulationBatch
from .rng import draw
from .student_statistic import learn
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
def begin(config: RunConfig, table: EdgeTable, run: RunState) -> None:
    """Forget everything but the random streams."""
    for a in range(config.size):
        run.n[a] = 0.0
        run.clipped_mean[a] = min(max(0.0, config.lowest), config.highest)
        run.target[a] = 0.0
        run.w[a] = config.initial_allocation[a]
        run.fallback_allocation[a] = config.interior_allocation[a]
        run.expired[a] = 0.0
    # There is room for more edges than are known; what lies beyond was never written.
    edges = table.first_edge[table.first_edge.size - 1]
    if not config.closed_form:
        for e in range(table.first_root + edges):
            run.root[e] = 0.0
    for i in range(run.integers.size):
        run.integers[i] = 0
    clear(run.arm_state, run.arm_state.shape[1])
    clear(run.edge_state, max(edges, config.pairs.following.size))
    for i in range(run.duals.x.size):
        run.duals.x[i] = 0.0
    clear(run.looks, edges)
    clear(run.mean, config.size)
    clear(run.compensation, config.size)
    clear(run.log_wealth, run.log_wealth.shape[1])
    clear(run.squares, run.squares.shape[1])
    if config.measuring:
        for a in range(config.size):
            run.counted[a] = 0.0
            run.answer[a] = 0.0
            run.closest[a] = -1.0  # there is none
            for c in range(config.channels):
                run.variance[c, a] = config.measured.variance[c, a]
            for i in range(config.measured.rows):
                run.upper[i, a] = config.measured.upper[i, a]


@kernel
def update_wealth(config: RunConfig, run: RunState, arm: int, reward: float) -> None:
    """Take a bounded reward into the sums that tilt.py needs."""
    count = config.tilts.strength.size
    for k in range(count):
        run.log_wealth[arm, k] += math.log1p(config.tilts.slope[0, k] * reward)
        run.log_wealth[arm, count + k] += math.log1p(config.tilts.slope[1, k] * reward)


@inlined
def observe(config: RunConfig, table: EdgeTable, run: RunState, arm: int) -> None:
    """Take in what a pull of an arm reported: run.reported."""
    run.integers[records.PULLS] += 1
    n = run.n[arm] + 1.0
    run.n[arm] = n
    for c in range(config.channels):
        value = run.reported[c]
        apart = value - run.mean[c, arm]
        run.mean[c, arm], run.compensation[c, arm] = next_mean(
            run.mean[c, arm], run.compensation[c, arm], value, n
        )
        if (config.learns_variance or config.measuring) and learns_variance(config, c):
            learn(config, run, c, arm, apart, value - run.mean[c, arm])
    if config.tracks_wealth:
        update_wealth(config, run, arm, run.reported[0])
    before = run.clipped_mean[arm]
    run.clipped_mean[arm] = min(max(run.mean[0, arm], config.lowest), config.highest)
    if not config.measuring and run.integers[records.INITIALIZED] and n > 1.0:
        if run.integers[records.PULLS] & (REFRESH - 1) == 0:
            recompute_statistics(config, table, run)
        else:
            update_statistics(
                config, table, run, arm, run.clipped_mean[arm] - before, 1.0 / n - 1.0 / (n - 1.0)
            )


@inlined
def weakest_edge(table: EdgeTable, run: RunState) -> int:
    """The edge, counted from the vertex's first, with the least evidence; -1 if none."""
    vertex = run.integers[records.VERTEX]
    count = table.first_edge[vertex + 1] - table.first_edge[vertex]
    weakest = -1
    least = math.inf
    for e in range(count):
        if run.value[e] < least:
            least = run.value[e]
            weakest = e
    return weakest


@inlined
def needs_recommendation(config: RunConfig, run: RunState, weakest: int) -> bool:
    """Whether to recommend anew: some edge may improve, or it is time to look at the answers."""
    if config.has_epsilon and run.integers[records.PULLS] >= run.integers[records.NEXT_CHECK]:
        return True
    return weakest >= 0 and run.value[weakest] <= 0.0


@inlined
def could_stop(config: RunConfig, run: RunState, weakest: int) -> bool:
    """Whether to ask the stopping rule: below its least level none would stop."""
    return config.measuring or run.value[weakest] >= config.least_level


@inlined
def check_stopping(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> int:
    """After a reward: recommend, and say whether the evidence is enough."""
    if config.measuring:
        update_upper_limits(config.measured, run, scratch.measured)
    if not run.integers[records.INITIALIZED]:
        for k in range(config.useful_arms.size):
            if run.n[config.useful_arms[k]] < config.first_pulls:
                return records.GO_ON
        run.integers[records.INITIALIZED] = 1
        if not config.measuring:
            recompute_statistics(config, table, run)
    weakest = weakest_edge(table, run)
    if needs_recommendation(config, run, weakest):
        status = config.functions.recommend(config, table, run, scratch)
        run.integers[records.STATUS] = status
        if status != records.GO_ON:
            return status
        weakest = weakest_edge(table, run)
    elif config.measuring:
        return records.GO_ON  # between two looks at the answer
    status = records.STOPPED
    if weakest >= 0 or config.measuring:
        status = records.GO_ON
        if could_stop(config, run, weakest):
            status = config.functions.enough(config, table, run, scratch, weakest)
    run.integers[records.STATUS] = status
    return status


@kernel
def initial_arm(config: RunConfig, run: RunState, scratch: Scratch) -> int:
    """Each arm once, or more, in order; until all have answered, the inside of the set is tracked.

    An arm that limits forbid is tried when enough has been saved for it; until then arms that
    use up none of them come first.
    """
    waiting = False
    for a in range(config.size):
        run.target[a] += config.interior_allocation[a]
    if config.anytime:
        measure(config, run, scratch)
    for k in range(config.useful_arms.size):
        a = config.useful_arms[k]
        if run.n[a] < config.first_pulls:
            if not config.anytime or is_allowed(config, run, scratch, a):
                return a
            waiting = True
    arm = -1
    least = math.inf
    for k in range(config.useful_arms.size):
        a = config.useful_arms[k]
        lag = run.n[a] - run.target[a]
        if config.anytime and waiting and not frees_slack(config, a):
            lag += 1e12
        if lag < least and (not config.anytime or is_allowed(config, run, scratch, a)):
            least = lag
            arm = a
    return arm if arm >= 0 else least_violating_arm(config, run, scratch)


@inlined
def choose(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """The next arm, into run.integers[ARM]."""
    if config.measuring:
        if run.integers[records.DEFERRED_ARM] == 0:
            config.functions.allocate(config, table, run, scratch)
        enforce_limits(config.measured, run)
    elif run.integers[records.INITIALIZED]:
        if config.anytime:
            measure(config, run, scratch)
        config.functions.allocate(config, table, run, scratch)
        run.integers[records.ARM] = track(config, run, scratch)
    else:
        run.integers[records.ARM] = initial_arm(config, run, scratch)


@kernel
def advance(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> int:
    """After a pull: recommend, then stop or choose the next arm; a run starts with it, too."""
    status = check_stopping(config, table, run, scratch)
    if status == records.GO_ON:
        choose(config, table, run, scratch)
    return status


@inlined
def start_run(
    config: RunConfig,
    table: EdgeTable,
    run: RunState,
    scratch: Scratch,
    batch: SimulationBatch,
    number: int,
) -> None:
    """Make ready for a simulated run, with its random streams."""
    begin(config, table, run)
    for k in range(4):
        run.rewards[k] = batch.seeds[number, 0, k]
        run.choices[k] = batch.seeds[number, 1, k]


@inlined
def play(config: RunConfig, table: EdgeTable, run: RunState, batch: SimulationBatch) -> None:
    """Draw what a pull of the chosen arm reports, and take it in."""
    arm = run.integers[records.ARM]
    for c in range(config.channels):
        mean, noise = batch.means[c, arm], batch.noise[c, arm]
        low, high = batch.ends[c, 0], batch.ends[c, 1]
        run.reported[c] = draw(config, run.rewards, mean, noise, low, high)
    observe(config, table, run, arm)
    if config.measuring and exceeds(config.measured, run, batch):
        batch.exceeded[batch.progress[0]] = 1


@inlined
def keep_result(config: RunConfig, run: RunState, batch: SimulationBatch, number: int) -> None:
    """Write down how a run ended: pulls (negative if capped), vertex and counts."""
    pulls = run.integers[records.PULLS]
    batch.pulls[number] = -pulls if run.integers[records.CAPPED] else pulls
    batch.vertices[number] = run.integers[records.VERTEX]
    for a in range(config.size):
        batch.counts[number, a] = run.n[a]
        if config.measuring:
            batch.answers[number, a] = run.answer[a]


@kernel
def simulate_runs(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, batch: SimulationBatch
) -> int:
    """Runs progress[0] to the last, as far as known vertices allow.

    `progress` holds the run at hand and whether it is under way. Back from Python with the vertex
    that was missing, its last reward waits to be judged.
    """
    progress = batch.progress
    while progress[0] < batch.seeds.shape[0]:
        if progress[1] == 0:
            start_run(config, table, run, scratch, batch, progress[0])
            progress[1] = 1
        while True:
            status = advance(config, table, run, scratch)
            if status != records.GO_ON:
                break
            if run.integers[records.PULLS] >= batch.cap:
                run.integers[records.CAPPED] = 1
                break
            play(config, table, run, batch)
        if status not in (records.GO_ON, records.STOPPED):
            return status
        keep_result(config, run, batch, progress[0])
        progress[0] += 1
        progress[1] = 0
    return records.STOPPED
