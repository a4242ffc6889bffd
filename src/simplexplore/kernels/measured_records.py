"""The arrays of runs with measured limits, by name; see records.py.

Rows are limits from above on means over the mix, whatever the user wrote. Competitors of an answer
lie on faces of the known polytope of as many dimensions as there are rows; these are cut into
simplices, here called cells (geometry/simplices.py).
"""

from __future__ import annotations

from typing import NamedTuple

from .records import IndexRows, Indices, Matrix, Streams, Vector, Words
from .slots import AdvanceMeasured

# Places in MeasuredRun.integers. LOOK: pulls at which to look at the answer again; PLAN: at which
# to solve for an allocation again; INSIDE: whether the answer is on no smaller face; FRACTION: its
# number (measured_answer.py). WISH: one more than the arm that was proposed and is not affordable
# yet; TURN: proposals so far (measured_guard.py).
PULLS, ARM, WARM, LOOK, PLAN, AIM, INSIDE, FRACTION, STATUS, CAPPED, WISH, TURN = range(12)
INTEGERS = 12

# What a run works for: nothing yet, an answer, or showing that there is none. A run that has
# stopped says so by the last two.
NOTHING, ANSWER, INFEASIBLE = range(3)

# Samplers.
TOP_TWO, CTNS, UNIFORM = range(3)


class MeasuredSetting(NamedTuple):
    """What stays fixed during a run."""

    size: int
    rows: int
    corners: int  # of a cell: rows + 1, less where the polytope has fewer dimensions
    sampler: int
    epsilon: float  # in unit coordinates of rewards
    row_level: float  # evidence needed for each row
    value_level: float  # evidence needed against every competitor
    row_need: float  # distances at which that is likely to be so, for choosing answers and samples
    value_need: float
    log_inside: float  # price of an answer inside a face: log of how many supports share delta
    log_outside: float  # price of one on a smaller face
    variance: Vector  # (K,) of rewards; anything where it is unknown
    spread: Matrix  # (rows, K) variances of measurements, likewise
    unknown: Indices  # (1 + rows,) whether deviations are unknown, of rewards and of each row
    reach: float  # evidence of one arm beyond which nothing more is looked for where they are
    limit: Vector  # (rows,)
    tolerance: Vector  # (rows,)
    costs: Vector  # (K,) of pulls
    first_arms: Indices  # arms that some policy uses
    first_pulls: float  # of each of them, before anything is computed
    vertices: Matrix  # (V, K) of the known polytope
    cells: IndexRows  # (C, corners) vertices
    used: Matrix  # (C, K) 1 where the cell's face uses an arm
    log_patterns: Vector  # (C,) log of the number of signed supports of answer - competitor
    is_guarded: int  # whether samples keep the limits (measured_guard.py), which needs these:
    guard_level: float  # evidence by which an upper end is
    upper: Matrix  # (rows, K) upper ends that are known beforehand
    worst: Vector  # (rows,) by how much one pull can exceed a limit
    moves: Matrix  # (known rows, K) by how much a pull exceeds a known constraint
    alone: Indices  # (K,) whether an arm alone keeps the known constraints
    advance: AdvanceMeasured  # measured_episode.advance, compiled apart: live studies use it alone


class MeasuredRun(NamedTuple):
    """What changes: everything needed to go on after an interruption."""

    n: Vector  # (K,) pulls
    mean: Vector  # (K,) empirical means of rewards, in unit coordinates
    measured: Matrix  # (rows, K) and of measurements
    lost: Matrix  # (1 + rows, K) what rounding has left out of them (running_mean.py)
    variance: Matrix  # (1 + rows, K) of rewards and measurements, as known or as learned
    squares: Matrix  # (1 + rows, K + 1) squared deviations from means, and of all; where unknown
    upper: Matrix  # (rows, K) upper ends of means of measurements
    counted: Vector  # (K,) pulls that these know of
    target: Vector  # (K,) sum of the allocations tracked
    w: Vector  # (K,) the allocation tracked now
    given_up: Vector  # (K,) pulls that were handed out and have expired
    answer: Vector  # (K,)
    closest: Vector  # (K,) the competitor that is hardest to rule out
    integers: Indices
    rewards: Words  # (4,) random stream of the environment
    choices: Words  # (4,) random stream of the sampler


class MeasuredWork(NamedTuple):
    """Scratch: nothing is kept there."""

    stack: Matrix  # corners of simplices, in coordinates of their cell
    corner: Matrix  # (corners, K) the same as policies
    sign: Vector  # (K,)
    price: Matrix  # (K, scales) of an arm in a mixture
    pays: Matrix  # (1 + rows, scales) of all arms of a mixture
    least: Matrix  # (1 + rows, scales) over corners
    values: Matrix  # (1 + rows, V) reward and rows of each vertex
    bounds: Matrix  # (2, rows) limits of the program at hand, and prices of the rows
    policy: Vector  # (K,)
    found: Vector  # (K,) its closest competitor
    shares: Vector  # (K,)
    n: Vector  # (K,) an allocation as if it were counts
    student: Matrix  # of one arm (student_mixture.py)
    reach: Matrix  # (2 K, corners) hulls of arms' mixtures: deviations
    grown: Matrix  # (2 K, corners) and values (measured_student.py)
    corners: Indices  # (2 K,) how many
    built: Vector  # (2 K,) for how many samples; the rest follows from that
    least_of: Vector  # (2 K,) the least of a mixture
    ends: Vector  # (2 K,) and what it is beyond its hull
    slot: IndexRows  # (1 + rows, K) hulls in use
    deviation: Matrix  # (1 + rows, K) empirical ones
    coefficient: Vector  # (K,) what a gap loses by deviation; negative without a part in it


class MeasuredJob(NamedTuple):
    """Simulated runs: what they need, and where their results go."""

    means: Vector  # (K,) true ones, in unit coordinates
    noise: Vector  # (K,) standard deviations of the rewards drawn, in unit coordinates
    measured: Matrix  # (rows, K) true means, as limits from above
    spread: Matrix  # (rows, K) standard deviations of the measurements drawn
    ends: Matrix  # (1 + rows, 2) between which outcomes lie; 0, 0 where they are normal
    cap: int
    seeds: Streams  # (runs, 2, 4)
    pulls: Indices  # (runs,) negative if capped
    aims: Indices  # (runs,) what each ended with
    exceeded: Indices  # (runs,) whether samples ever exceeded a measured limit in expectation
    answers: Matrix  # (runs, K)
    counts: Matrix  # (runs, K)
