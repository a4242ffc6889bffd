"""The arrays that compiled code works on, by name.

All arrays are made in Python and passed in; kernels only read and write them. What stays fixed in a
run is in `RunConfig` and `EdgeTable`, what changes in `RunState`; in `Scratch` nothing is kept.

A pull reports one number by channel: channel 0 is the reward, further ones are what is measured
beside it, where limits are measured. Sums of a run have the channel as their first axis.

Edges of all known vertices lie one after the other: edge e has entries ``first_entry[e]`` to
``first_entry[e + 1]``, each an arm and a coefficient of v = policy - direction, so that v . mean is
the edge's loss per unit. Where answers within epsilon are good enough (recommend_answer.py), a
"vertex" is such an answer and its "edges" compare it with every policy that could be better: v =
answer - policy, and the loss counts from -epsilon, the edge's ``offset``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simplexplore.problem.families import Bernoulli, Gaussian, Poisson

from .functions import RunFunctions

# The name says how many dimensions an array has: native.py reads it.
Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
IndexRows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Streams = npt.NDArray[np.uint64]  # (runs, 2, 4)

# What a kernel returns.
GO_ON = 0
STOPPED = 1
UNKNOWN_VERTEX = 2
UNKNOWN_REGRET = 3

# Events of a live study: a pull is asked for; its reward arrives, in time or after it
# expired; it expires; a pull was made elsewhere; a smaller delta needs a new judgement.
ASKED, TOLD, LATE, EXPIRED, ELSEWHERE, EXTENDED = range(6)

# Places in RunState.integers. NEXT_CHECK: pulls at which to look at the answers again. Where limits
# are measured also, PLAN: pulls at which to solve for an allocation again; INSIDE: whether the
# answer is on no smaller face; MARGIN_INDEX: which of the margins it keeps (measured_answer.py);
# DEFERRED_ARM: one more than the arm that was proposed and is not affordable yet; PROPOSALS: how
# many there were (measured_limits.py).
PULLS, VERTEX, ARM, INITIALIZED, STATUS, MISSING_EDGE, CAPPED, NEXT_CHECK, SEARCH = range(9)
PLAN, INSIDE, MARGIN_INDEX, DEFERRED_ARM, PROPOSALS = range(9, 14)
INTEGERS = 14

# What a run with measured limits works for, in place of a vertex: nothing yet, an answer, or
# showing that there is none. A run that has stopped says so by the last two.
TARGET = VERTEX
NONE, ANSWER, INFEASIBLE = range(3)

# Families with a variance function of their own.
GAUSSIAN, BERNOULLI, POISSON = Gaussian.code, Bernoulli.code, Poisson.code

# What must be ruled out before a run stops by `tilt` (policy_search.py): all edges, all pairs of an
# arm that has more than its least share and one that has less than its most, or policies one by
# one.
EDGES, PAIRS, POLICIES = range(3)

# Tracking rules.
CUMULATIVE, DIRECT, SAMPLED, FOCUSED = range(4)


class EdgeTable(NamedTuple):
    """Vertices seen so far, with their edges by edge and by arm."""

    first_edge: Indices  # (V + 1,); where there is room for more, the number of edges
    first_entry: Indices  # (E + 1,)
    arm: Indices
    v: Vector
    offset: Vector  # (E,) added to v . mean: epsilon for comparisons of answers, else 0
    following: Indices  # (E,) the vertex an edge leads to, or -1
    first_column: IndexRows  # (V, K + 1): entries of `column_edge` by arm
    column_edge: Indices  # edge, counted from the vertex's first
    column_v: Vector
    first_root: int  # where the roots of its edges begin in RunState.root


class TiltMixture(NamedTuple):
    """The mixture of tilt.py: constants, the same for every problem with rewards of a kind.

    Rows are for arms that the recommended policy would lose (0) or win (1) by; the last tilt is
    none.
    """

    strength: Vector  # (31,)
    slope: Matrix  # (2, 31) how fast a tilt's fair price rises with the mean
    scale: Vector  # (20,) prior of the scales
    step: IndexRows  # (2, 8) tilts of an arm, strongest first, counted from the scale; last, none
    share: Matrix  # (2, 8) their prior


class AllocationConstraints(NamedTuple):
    """A set of allocations, for the solvers: maximin.py, projection.py."""

    size: int
    A: Matrix  # (rows, K); A w <= b in the first rows, A w == b in the others
    b: Vector  # (rows,)
    inequalities: int  # how many rows come first
    limited: bool  # whether some arm has a floor or a cap
    lower: Vector  # (K,)
    upper: Vector  # (K,) inf where there is none, 0 for arms that are never played
    start: Vector  # multipliers of all rows that give every arm the price 1
    interior_allocation: Vector  # (K,) an allocation that gives every arm its part
    max_slack: Vector  # (K,) one that is strictly inside all rows


class MeasuredLimits(NamedTuple):
    """Measured limits, and what answers lie on: fixed during a run.

    Rows are limits from above on means over the mix, whatever the user wrote; row i is channel
    1 + i. Competitors of an answer lie on faces of the known polytope of as many dimensions as
    there are rows; these are cut into simplices, here called cells (geometry/faces.py).
    """

    size: int
    rows: int
    corners: int  # of a cell: rows + 1, less where the polytope has fewer dimensions
    epsilon: float  # in unit coordinates of rewards
    row_level: float  # evidence needed for each row
    value_level: float  # evidence needed against every competitor
    row_need: float  # distances at which that is likely to be so, for choosing answers and samples
    value_need: float
    log_inside: float  # price of an answer inside a face: log of how many supports share delta
    log_outside: float  # price of one on a smaller face
    variance: Matrix  # (channels, K); anything where it is unknown
    unknown: Indices  # (channels,) whether deviations are unknown
    most: float  # evidence beyond which nothing more is looked for where they are
    loss: float  # what halving simplices may lose (measured_search.py)
    limit: Vector  # (rows,)
    tolerance: Vector  # (rows,)
    costs: Vector  # (K,) of pulls
    useful_arms: Indices  # arms that some policy uses
    vertices: Matrix  # (V, K) of the known polytope
    cells: IndexRows  # (C, corners) vertices
    used: Matrix  # (C, K) 1 where the cell's face uses an arm
    log_patterns: Vector  # (C,) log of the number of signed supports of answer - competitor
    independent: Indices  # (rows,) whether measurements are independent of all else of their pull
    log_averaged: float  # log of how many channels are averaged: rewards, and rows that are not
    enforces_limits: int  # whether samples keep the limits (measured_limits.py), which needs these:
    guard_level: float  # evidence by which an upper end is
    upper: Matrix  # (rows, K) upper ends that are known beforehand
    worst: Vector  # (rows,) by how much one pull can exceed a limit
    moves: Matrix  # (known rows, K) by how much a pull exceeds a known constraint
    alone: Indices  # (K,) whether an arm alone keeps the known constraints


class RunConfig(NamedTuple):
    """What stays fixed during a run."""

    size: int
    channels: int  # numbers that a pull reports: the reward, and what is measured
    measuring: bool  # whether anything is measured
    closed_form: bool  # Gaussian rewards without a domain: gaussian.py, else exponential.py
    family: int
    anytime: bool
    tracking: int
    has_epsilon: bool  # whether answers within epsilon are good enough (recommend_answer.py)
    delta: float
    budget: int  # pulls that end the run, or 0
    least_level: float  # log(1 / delta), below every threshold
    log_union: float  # log(M / delta), M supports in the union bound
    variance: Vector  # (K,) known variances; ones where the family has its own
    lowest: float  # empirical means are clipped to this range, in unit coordinates
    highest: float
    domain_low: float  # alternatives are clipped to this one
    domain_high: float
    lowest_tilt: float  # a family's tilt exists above this
    allowed_excess: float  # pulls by which first tries of arms may exceed limits
    steps: Vector  # by row of the set: the most that one pull moves it
    interior_allocation: Vector  # in the set; gives each arm a fair part of what it could get
    shares: AllocationConstraints  # the set of allocations: shares of samples
    pulls_per_use: Vector  # (K,) pulls that limits take to pay for one of an arm, itself included
    priced: bool  # whether some samples cost more than others
    costs: Vector  # (K,) in units of their mean; ones where all cost the same
    spend: AllocationConstraints  # the same set in shares of what is spent (costs.py)
    useful_arms: Indices  # arms to play before anything else
    initial_allocation: Vector  # (K,) allocation of samplers that never change it
    levels: Vector  # threshold constants by size of an edge's support
    tilts: TiltMixture
    tracks_wealth: bool  # whether RunState.log_wealth are kept: bounded rewards
    learns_variance: bool  # whether RunState.squares are kept: unknown sigma (student_statistic.py)
    first_pulls: float  # of each arm, before anything is computed
    rule: int  # what `tilt` must rule out: EDGES, PAIRS or POLICIES
    log_policy: float  # level for one of a policy's edges, less the log of their number
    policies: Matrix  # (V, K) all vertices, for samplers that ask for them
    pairs: EdgeTable  # edges of the best-arm problem, one vertex per arm (empty if unused)
    measured: MeasuredLimits  # (empty without measured limits)
    functions: RunFunctions  # the functions that a run binds


class Duals(NamedTuple):
    """Multipliers of an allocation set's rows; the rest is scratch of those who look for them."""

    x: Vector
    step: Vector
    trial: Vector  # where the step leads
    residual: Vector  # what each row lacks
    free: Indices  # rows whose multipliers may move
    system: Matrix  # (rows, rows)


class RunState(NamedTuple):
    """What changes: everything needed to go on after an interruption."""

    n: Vector  # (K,) pulls
    reported: Vector  # (channels,) by the last pull, rewards in unit coordinates
    mean: Matrix  # (channels, K) empirical means of it
    compensation: Matrix  # (channels, K) what rounding has left out of them (compensated_mean.py)
    clipped_mean: Vector  # (K,) means of rewards within the range of means
    target: Vector  # (K,) sum of the allocations tracked
    w: Vector  # (K,) the allocation tracked now
    fallback_allocation: Vector  # (K,) the one that is followed where limits forbid every arm of w
    expired: Vector  # (K,) pulls that were handed out and have expired
    gap: Vector  # by edge of the vertex: v . mean + offset
    spread: Vector  # by edge: sum of variance v^2 / n (closed-form families)
    value: Vector  # by edge: the statistic
    time: Vector  # by edge: scratch
    gradient: Vector  # by entry of the vertex: scratch for information per arm
    log_wealth: Matrix  # (K, 62) sums of log(1 + b x) over an arm's rewards x (bounded rewards)
    squares: Matrix  # (channels, K + 1) squared deviations, and those of all arms (unknown sigma)
    variance: Matrix  # (channels, K) what samplers take for the variances (unknown sigma)
    upper: Matrix  # (rows, K) upper ends of means of measurements
    counted: Vector  # (K,) pulls that these know of
    answer: Vector  # (K,) what is recommended where limits are measured
    closest: Vector  # (K,) the competitor that is hardest to rule out
    rate: Vector  # by answer: information per sample at the last look (empty if unused)
    root: Vector  # by edge of all tables: multipliers of the last projections, over total weight
    duals: Duals
    arm_state: Matrix  # (ARM_STATE, K) the sampler's own, zero at the start of a run
    edge_state: Matrix  # (EDGE_STATE, E) the same, by edge of the whole table
    looks: Matrix  # (2, E) by edge and by its reverse, see search.is_promising
    integers: Indices  # (INTEGERS,)
    rewards: Words  # (4,) random stream of the environment
    choices: Words  # (4,) random stream of the sampler


class Hulls(NamedTuple):
    """Scratch of unknown_variance.py: hulls of arms' mixtures, each in a slot."""

    arm: Vector  # the mixture of one arm
    samples: Vector  # (S,) of the arm that a hull is for; negative if they are all the same
    reach: Vector  # (S,) how much it was to gain; the rest follows from these two
    corners: Indices  # (S,) how many
    y: Matrix  # (S, most) where they are, in deviations
    value: Matrix  # (S, most) and their values
    least: Vector  # (S,) the least of the mixture
    end: Vector  # (S,) and what it is beyond the hull
    slot: Indices  # of the arms at hand, one after the other
    coefficient: Vector  # what these lose for each empirical deviation


class MeasuredScratch(NamedTuple):
    """Scratch of measured limits: nothing is kept there."""

    stack: Matrix  # corners of simplices, in coordinates of their cell
    corner: Matrix  # (corners, K) the same as policies
    sign: Vector  # (K,) on which side of the answer a simplex lies
    loss: Vector  # (K,) what an answer has more of each arm than a competitor
    price: Matrix  # (K, scales) of an arm in a mixture
    pays: Matrix  # (1 + rows, scales) of all arms of a mixture
    least: Matrix  # (1 + rows, scales) over corners
    values: Matrix  # (1 + rows, V) reward and rows of each vertex
    bounds: Matrix  # (2, rows) limits of the program at hand, and prices of the rows
    policy: Vector  # (K,)
    found: Vector  # (K,) its closest competitor
    shares: Vector  # (K,)
    n: Vector  # (K,) an allocation as if it were counts
    hulls: Hulls
    slot: IndexRows  # (1 + rows, K) hulls in use
    deviation: Matrix  # (1 + rows, K) empirical ones


class Scratch(NamedTuple):
    """Work arrays: nothing is kept there from step to step."""

    arms: Matrix  # (5, K)
    excess: Vector  # by row of the set of allocations: limits.py
    counts: Vector  # (3,) the same
    edge: EdgeTable  # one edge
    tilting: Matrix  # tilt.py
    newton: Matrix  # the same, by arm of an edge
    hessian: Matrix  # the same
    hulls: Hulls
    queue: IndexRows  # (2, V): policy_search.py
    reach: Matrix  # the same
    aside: Matrix  # (3, E): events.py, by edge of the vertex
    measured: MeasuredScratch


class SimulationBatch(NamedTuple):
    """Simulated runs: what they need, and where their results go."""

    means: Matrix  # (channels, K) true ones, in unit coordinates
    noise: Matrix  # (channels, K) standard deviations of what is drawn, likewise
    ends: Matrix  # (channels, 2) of bounded numbers; 0, 0 of others
    cap: int  # pulls after which a run is capped
    seeds: Streams  # (runs, 2, 4)
    progress: Indices  # (2,) the run at hand, whether it is under way
    pulls: Indices  # (runs,) negative if capped
    vertices: Indices  # (runs,)
    counts: Matrix  # (runs, K)
    answers: Matrix  # (runs, K) where limits are measured
    exceeded: Indices  # (runs,) whether samples ever exceeded one in expectation


class EventBatch(NamedTuple):
    """Events of a live study to take in."""

    pending: Vector  # (K,) pulls in flight
    kinds: Indices
    arms: Indices  # -1 where a pull is asked for and not given an arm yet
    rewards: Matrix  # (events, channels) what pulls reported
    progress: Indices  # (2,) the event at hand, whether it was observed but not judged
    until_stopped: bool


class MaximinState(NamedTuple):
    """Weights of a vertex's edges and the allocation that answers them; see maximin.py."""

    q: Vector
    w: Vector  # shares of what is spent
    vertex: int
    within: bool  # whether w must satisfy the rows of config
