"""The arrays that compiled code works on, by name.

All memory is allocated in Python and passed in; kernels only read and write it. What changes in a
run is in `Run` and `Memory`, what is fixed in `Setting` and `Table`.

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

from .slots import Slots

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

# Places in Run.integers.
PULLS, VERTEX, ARM, WARM, STATUS, MISSING_EDGE, CAPPED, ITERATIONS, LOOK, SEARCH = range(10)

# Families with a variance function of their own.
GAUSSIAN, BERNOULLI, POISSON = Gaussian.code, Bernoulli.code, Poisson.code

# What must be ruled out before a run stops by `tilt` (search.py): all edges, all pairs of an arm
# that has more than its least share and one that has less than its most, or policies one by one.
EDGES, PAIRS, POLICIES = range(3)

# Tracking rules.
CUMULATIVE, AVERAGED, DIRECT, SAMPLED, FOCUSED = range(5)


class Table(NamedTuple):
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
    first_root: int  # where the roots of its edges begin in Run.root


class Tilts(NamedTuple):
    """The mixture of tilt.py: constants, the same for every problem with rewards of a kind.

    Rows are for arms that the recommended policy would lose (0) or win (1) by; the last tilt is
    none.
    """

    strength: Vector  # (31,)
    slope: Matrix  # (2, 31) how fast a tilt's fair price rises with the mean
    scale: Vector  # (20,) prior of the scales
    step: IndexRows  # (2, 8) tilts of an arm, strongest first, counted from the scale; last, none
    share: Matrix  # (2, 8) their prior


class Limits(NamedTuple):
    """A set of allocations, for the solvers: maximin.py, projection.py."""

    size: int
    above: Matrix  # rows A w <= b
    limit: Vector
    equal: Matrix  # rows E w = f
    total: Vector
    limited: bool  # whether some arm has a floor or a cap
    floor: Vector  # (K,)
    cap: Vector  # (K,) inf where there is none
    start: Vector  # multipliers of all rows that give every arm the price 1
    inside: Vector  # (K,) an allocation that gives every arm its part
    deep: Vector  # (K,) one that is strictly inside all rows


class Setting(NamedTuple):
    """What stays fixed during a run."""

    size: int
    closed_form: bool  # Gaussian rewards without a domain: gaussian.py, else exponential.py
    family: int
    anytime: bool
    tracking: int
    sticking: bool  # whether answers within epsilon are good enough (recommend_answer.py)
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
    above: Matrix  # rows A w <= b of the allocation set
    limit: Vector
    equal: Matrix  # rows E w = f
    total: Vector
    limited: bool  # whether some arm has a floor or a cap
    floor: Vector  # (K,) least share of each arm
    cap: Vector  # (K,) largest share of each arm; inf where there is none
    room: float  # pulls by which limits may be exceeded while arms are tried for the first time
    steps: Vector  # by equality: the largest part of a pull by which whole pulls must miss it
    inside: Vector  # allocation in the set that gives each arm a fair part of what it could get
    shares: Limits  # the same set: shares of samples
    pulls_for_one: Vector  # (K,) pulls that limits take to pay for one of an arm, itself included
    priced: bool  # whether some samples cost more than others
    costs: Vector  # (K,) in units of their mean; ones where all cost the same
    spend: Limits  # the same set in shares of what is spent (costs.py)
    first_arms: Indices  # arms to play before anything else
    fixed: Vector  # (K,) allocation of samplers that never change it
    levels: Vector  # threshold constants by size of an edge's support
    tilts: Tilts
    betting: bool  # whether Run.bets are kept: bounded rewards
    learning: bool  # whether Run.squares are kept: unknown sigma (student_statistic.py)
    pooled: bool  # whether it is the same for all arms (pooled.py)
    first_pulls: float  # of each arm, before anything is computed
    at_once: int  # iterations after which maximin.balance comes back, unfinished or not
    rule: int  # what `tilt` must rule out: EDGES, PAIRS or POLICIES
    log_policy: float  # level for one of a policy's edges, less the log of their number
    policies: Matrix  # (V, K) all vertices, for samplers that ask for them
    pairs: Table  # edges of the best-arm problem, one vertex per arm (empty if unused)
    slots: Slots  # the functions that a run binds


class Run(NamedTuple):
    """What changes: everything needed to go on after an interruption."""

    n: Vector  # (K,) pulls
    mean: Vector  # (K,) empirical means, in unit coordinates
    lost: Vector  # (K,) what rounding has left out of them (running_mean.py)
    clipped: Vector  # (K,) the means within the range of means
    target: Vector  # (K,) sum of the allocations tracked
    average: Vector  # (K,) their average, late ones weighing more (averaged tracking)
    w: Vector  # (K,) the allocation tracked now
    filler: Vector  # (K,) the one that is followed where limits forbid every arm of w
    given_up: Vector  # (K,) pulls that were handed out and have expired
    gap: Vector  # by edge of the vertex: v . mean + offset
    spread: Vector  # by edge: sum of variance v^2 / n (closed-form families)
    value: Vector  # by edge: the statistic
    time: Vector  # by edge: scratch
    gradient: Vector  # by entry of the vertex: scratch for information per arm
    scale: Vector  # (1,) size of the means: what counts as an improvement
    bets: Matrix  # (K, 62) sums of log(1 + b x) over an arm's rewards x (bounded rewards)
    squares: Vector  # (K + 1,) sums of squared deviations by arm, and of all (unknown sigma)
    variance: Vector  # (K,) what samplers take for the variances (unknown sigma)
    rate: Vector  # by answer: information per sample at the last look (empty if unused)
    root: Vector  # by edge of all tables: multipliers of the last projections, over total weight
    integers: Indices  # (10,)
    rewards: Words  # (4,) random stream of the environment
    choices: Words  # (4,) random stream of the sampler


class Memory(NamedTuple):
    """A sampler's own memory, set to zero at the start of a run."""

    arms: Matrix  # (a, K)
    edges: Matrix  # (b, E): by edge of the whole table
    rows: Matrix  # (c, number of rows)
    scratch: Matrix  # (d, K): nothing is kept there
    system: Matrix  # (rows, rows): scratch for small linear systems
    excess: Vector  # scratch of guard.py, by row and three more
    looks: Matrix  # (8, E): what `tilt` knows of the edges, see search.py
    edge: Table  # one edge: scratch
    tilting: Matrix  # scratch of tilt.py
    newton: Matrix  # the same, by arm of an edge
    hessian: Matrix  # the same
    student: Matrix  # scratch of student.py and pooled.py, by arm of an edge
    queue: IndexRows  # (2, V): scratch of search.py


class Job(NamedTuple):
    """Simulated runs: what they need, and where their results go."""

    means: Vector  # (K,) true ones, in unit coordinates
    noise: Vector  # (K,) standard deviations of the rewards drawn, in unit coordinates
    cap: int  # pulls after which a run is capped
    seeds: Streams  # (runs, 2, 4)
    progress: Indices  # (3,) the run at hand, whether it is under way, the vertex to start from
    pulls: Indices  # (runs,) negative if capped
    vertices: Indices  # (runs,)
    counts: Matrix  # (runs, K)


class Events(NamedTuple):
    """Events of a live study to take in."""

    pending: Vector  # (K,) pulls in flight
    aside: Matrix  # (3, E) scratch
    kinds: Indices
    arms: Indices  # -1 where a pull is asked for and not given an arm yet
    rewards: Vector
    progress: Indices  # (2,) the event at hand, whether it was observed but not judged
    until_stopped: bool


class Projection(NamedTuple):
    """A point to project on the allocation set; see projection.py."""

    y: Vector
    loose: Vector
    rows: Matrix
    system: Matrix
    price: Vector
    w: Vector


class Shares(NamedTuple):
    """Weights of edges and the allocation that answers them; see maximin.py."""

    q: Vector
    w: Vector
