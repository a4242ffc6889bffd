"""Crossing frequencies: how often `tilt` would have said something false, under ties and near-ties.

    python benchmarks/crossings.py [--runs 10000] [--pulls 2000] [--seed 0] [--only WORD ...]

Each row is one set of runs that never stop. In a tie every policy is as good as the best one, and
the proof says that the rule stops at another policy than one fixed beforehand with probability at
most delta: any other counts as wrong. In a near-tie the gaps are a twentieth of a standard
deviation. Arms are pulled in turn, or with unequal shares, or by an adversary who sees the true
means and freezes lucky arms: one whose mean misleads by more than a standard error is not pulled
while another does not.

1. `stop`: runs in which the rule with delta = 0.3, asked after every pull, stops at a wrong policy
   before it stops at the right one.
2. `confidence`: runs in which a wrong policy is ever recommended with 1 - confidence <= delta, at
   looks that are 10% apart. At these looks the rule errs only in such runs, whatever its delta.
3. `gain`: runs in which the bound on what an edge of the recommended policy can gain is ever below
   the truth. The regret bound is below the true regret only in such runs.

A number passes if its upper 95% Clopper-Pearson limit is below delta. Exits with 1 if one does not.
Writes a table to benchmarks/crossings.md.
"""

from __future__ import annotations

import argparse
import itertools
import math
import platform
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

import simplexplore as sx
from simplexplore.exploration.arrays import fitted
from simplexplore.exploration.engine import Engine, streams
from simplexplore.exploration.plan import prepare
from simplexplore.exploration.program import program_of, reward_kind
from simplexplore.geometry.edge_directions import count_directions
from simplexplore.kernels.episode import begin, check_stopping, clear, observe
from simplexplore.kernels.information import draw
from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.native import compiled
from simplexplore.kernels.packed_record import PackedRecord
from simplexplore.kernels.policy_search import confidence_margin, put_aside, statistic_aside
from simplexplore.kernels.records import (
    INITIALIZED,
    PULLS,
    STOPPED,
    VERTEX,
    EdgeTable,
    RunConfig,
    RunState,
    Scratch,
    SimulationBatch,
)
from simplexplore.kernels.tilt import tilt_evidence

DELTAS = (0.3, 0.1, 0.01)
GAP = 0.05  # of near-ties, in standard deviations
LOOK = 1.1  # looks are so far apart

# What a run finds: columns of SimulationBatch.counts.
FIRST, CONFIDENCE, GAIN = range(3)
RIGHT, WRONG = 1.0, 2.0


@kernel
def next_arm(config: RunConfig, run: RunState, job: SimulationBatch) -> int:
    """The arm furthest behind its share; to an adversary, arms that mislead are far ahead."""
    size = config.size
    arm = 0
    least = math.inf
    for a in range(size):
        n = run.n[a]
        if n == 0.0:
            return a
        luck = (run.mean[0, a] - job.means[0, a]) * math.sqrt(n) / job.means[3, a]
        rank = n / job.means[2, a]
        if job.progress[1] == 1 and job.means[1, a] * luck > 1.0:
            rank += 1e9
        if rank < least:
            least = rank
            arm = a
    return arm


@kernel
def gain_evidence(
    config: RunConfig,
    table: EdgeTable,
    run: RunState,
    scratch: Scratch,
    job: SimulationBatch,
    level: float,
) -> float:
    """The most evidence that an edge of the recommended vertex gains less than it truly does.

    Below the level it may be too much.
    """
    vertex = run.integers[VERTEX]
    most = 0.0
    for edge in range(table.first_edge[vertex], table.first_edge[vertex + 1]):
        put_aside(table, scratch, edge, 1.0)
        gap = 0.0
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            gap += table.v[k] * job.means[0, table.arm[k]]
        scratch.edge.offset[0] = -gap
        statistic = statistic_aside(config, run, scratch)
        found = tilt_evidence(config, run, scratch, statistic, level, math.inf)
        most = max(most, found)
    return most


@kernel
def crossing_runs(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, job: SimulationBatch
) -> int:
    """All runs, from first to last pull; what each finds goes to a row of job.counts."""
    gain_level = job.means[4, 0]
    best = job.progress[2]
    least = math.log(config.delta)
    for i in range(job.seeds.shape[0]):
        begin(config, table, run)
        for k in range(4):
            run.rewards[k] = job.seeds[i, 0, k]
        found = job.counts[i]
        found[FIRST], found[CONFIDENCE], found[GAIN] = 0.0, -math.inf, 0.0
        look = float(config.size)
        while run.integers[PULLS] < job.cap:
            arm = next_arm(config, run, job)
            mean, noise = job.means[0, arm], job.noise[0, arm]
            run.reported[0] = draw(config, run, mean, noise, 0.0, 0.0)
            observe(config, table, run, arm)
            status = check_stopping(config, table, run, scratch)
            wrong = run.integers[VERTEX] != best
            if status == STOPPED and found[FIRST] == 0.0:
                found[FIRST] = WRONG if wrong else RIGHT
            if not run.integers[INITIALIZED] or run.integers[PULLS] < look:
                continue
            look = max(look * LOOK, look + 1.0)
            evidence = gain_evidence(config, table, run, scratch, job, gain_level)
            found[GAIN] = max(found[GAIN], evidence)
            if wrong:
                clear(run.looks, run.looks.shape[1])
                more = confidence_margin(config, table, run, scratch, least)
                found[CONFIDENCE] = max(found[CONFIDENCE], more)
    return STOPPED


class Rewards(NamedTuple):
    """A family with the mean that arms share, in its own unit."""

    name: str
    family: object
    mean: float
    noise: float | None = None  # of Beta laws


REWARDS = {
    2: [
        Rewards("gaussian, sigma 1 and 2", sx.Gaussian((1.0, 2.0)), 0.5),
        Rewards("bernoulli 0.3", sx.Bernoulli(), 0.3),
        Rewards("bernoulli 0.02", sx.Bernoulli(), 0.02),
        Rewards("poisson 2", sx.Poisson(), 2.0),
        Rewards("bounded, two points", sx.Bounded(-1.0, 3.0), 0.5),
        Rewards("bounded, Beta", sx.Bounded(-1.0, 3.0), 0.5, noise=0.4),
    ],
}
REWARDS[4] = [
    Rewards("gaussian, sigma 1, 2, 0.5, 1", sx.Gaussian((1.0, 2.0, 0.5, 1.0)), 0.5),
    *REWARDS[2][1:],
]
ROWS = {2: [], 4: ["2*a1 + a2 <= 0.8", "a2 + a3 <= 0.7"]}
ORDER = {2: (0.5, -0.5), 4: (0.5, 0.2, -0.1, -0.5)}  # of near-ties, largest gap 1
SHARES = {
    "in turn": {2: (0.5, 0.5), 4: (0.25, 0.25, 0.25, 0.25)},
    "unequal": {2: (0.9, 0.1), 4: (0.7, 0.2, 0.05, 0.05)},
    "adversary": {2: (0.5, 0.5), 4: (0.25, 0.25, 0.25, 0.25)},
}


def deviations(rewards: Rewards, size: int) -> np.ndarray:
    """Standard deviations of the rewards drawn, in unit coordinates."""
    family = rewards.family
    mean = float(family.to_unit(rewards.mean))
    if isinstance(family, sx.Gaussian):
        return family.sigmas(size)
    if rewards.noise is not None:
        return np.full(size, rewards.noise * float(family.to_unit(1.0) - family.to_unit(0.0)))
    variance = mean if isinstance(family, sx.Poisson) else mean * (1 - mean)
    return np.full(size, math.sqrt(variance))


def found_by(rewards: Rewards, size: int, gap: float, sampling: str, given) -> np.ndarray:
    """What each run of a row finds, and the least delta with which it would say it."""
    problem = sx.Problem(size, ROWS[size], rewards.family)
    engine = Engine(prepare(problem, "uniform", "tilt", delta=DELTAS[0]))
    space = engine.workspace
    config, _, run, scratch = space.records
    space.table.explore()
    records = (config, *fitted(space.table.arrays, config.pairs, run, scratch))
    order = np.array(ORDER[size])
    sd = deviations(rewards, size)
    means = np.asarray(rewards.family.to_unit(rewards.mean)) + gap * sd * order
    best = space.table.add(space.polytope.canonical(space.polytope.optimal_vertex(sd * order)))
    union = 2 * count_directions(space.polytope.form)
    level = math.log(union / DELTAS[0])
    beta = isinstance(rewards.family, sx.Bounded) and rewards.noise is not None
    drawn = sd if beta or isinstance(rewards.family, sx.Gaussian) else np.ones(size)
    job = SimulationBatch(
        means=np.array([means, -np.sign(order), SHARES[sampling][size], sd, [level] * size]),
        noise=drawn[None],
        ends=np.zeros((1, 2)),
        cap=4 * given.pulls // size**2,
        seeds=streams(given.seed, range(given.runs)),
        progress=np.array([0, sampling == "adversary", best]),
        pulls=np.zeros(0, dtype=np.int64),
        vertices=np.zeros(0, dtype=np.int64),
        counts=np.zeros((given.runs, 3)),
        answers=np.zeros((given.runs, 0)),
        exceeded=np.zeros(0, dtype=np.int64),
    )
    program = program_of(config.functions, reward_kind(problem))
    run = compiled(crossing_runs, "Simulate", program.kind, None)
    packed = [PackedRecord(record, program.address) for record in (*records, job)]
    run.ctypes(*(one.pointer for one in packed))
    found = job.counts
    return np.column_stack(
        [
            found[:, FIRST] == WRONG,
            DELTAS[0] * np.exp(-found[:, CONFIDENCE]),
            union * np.exp(-found[:, GAIN]),
        ]
    )


def written(given, rows: list[str], worst: float) -> str:
    """The table so far."""
    verdict = "below" if worst < 1 else "NOT below"
    return (
        f"""# Crossing frequencies

    python benchmarks/crossings.py --runs {given.runs} --pulls {given.pulls} --seed {given.seed}

simplexplore {sx.__version__}, numpy {np.__version__}, Python {platform.python_version()};
{given.runs:,} runs for each row, of {given.pulls:,} pulls with two arms, a quarter of it with four;
about half an hour on one core. How often `tilt` would have said something false; `crossings.py`
says what counts. Runs out of {given.runs:,}: `stop` at delta = 0.3, `confidence` and `gain` at 0.3,
0.1 and 0.01. The last column is the largest upper 95% Clopper-Pearson limit over its delta: all are
{verdict} 1, the largest is {worst:.2f}.

| policies | rewards | means | pulls | stop | confidence | gain | limit / delta |
|---|---|---|---|---|---|---|---|
"""
        + "\n".join(rows)
        + "\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--pulls", type=int, default=2_000, help="a quarter with four arms")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="rows that hold all these words")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    rows, worst = [], 0.0
    for size, gap, sampling in itertools.product(REWARDS, (0.0, GAP), SHARES):
        for rewards in REWARDS[size]:
            truth = "near-tie" if gap else "tie"
            words = f"{size} arms | {rewards.name} | {truth} | {sampling}"
            if not all(word in words for word in given.only):
                continue
            started = time.perf_counter()
            found = found_by(rewards, size, gap, sampling, given)
            counts = [
                [int(found[:, 0].sum())],
                *([int((found[:, i] <= delta).sum()) for delta in DELTAS] for i in (1, 2)),
            ]
            limits = [
                binomtest(count, given.runs).proportion_ci(0.9, "exact").high / delta
                for told in counts
                for count, delta in zip(told, DELTAS, strict=False)
            ]
            worst = max(worst, *limits)
            cells = " | ".join(" / ".join(map(str, told)) for told in counts)
            rows.append(f"| {words} | {cells} | {max(limits):.2f} |")
            print(rows[-1], f"{time.perf_counter() - started:.0f} s", flush=True)
            if not given.only:
                given.out.write_text(written(given, rows, worst), encoding="utf-8")
    return int(worst >= 1)


if __name__ == "__main__":
    sys.exit(main())
