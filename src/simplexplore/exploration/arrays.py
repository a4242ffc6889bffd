"""The records of a run: made in Python, read and written by kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.geometry.edge_directions import count_directions
from simplexplore.geometry.faces import Simplices
from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.question_polytope import QuestionPolytope
from simplexplore.kernels import records
from simplexplore.kernels.functions import RunFunctions
from simplexplore.kernels.measured_search import (
    LOSS,
    LOSS_OF_TRIANGLES,
    MAX_DEPTH,
    NO_REWARDS,
    NO_ROW,
    SCALES,
)
from simplexplore.kernels.packed_record import zeros
from simplexplore.kernels.projection import project
from simplexplore.kernels.tilt_mixture import OWN, TILTS
from simplexplore.kernels.unknown_variance import CORNERS, PLACES, SLOTS
from simplexplore.problem.families import Bounded, Family
from simplexplore.problem.measured import spreads
from simplexplore.problem.problem import Problem
from simplexplore.samplers import TRACKINGS, Sampler

from .limits import Safety, safety
from .plan import Plan
from .stopping import kk21_levels
from .vertex_table import (
    AnswerTable,
    GrowingTable,
    TargetTable,
    VertexTable,
    best_arm_table,
    one_edge,
)

Array = npt.NDArray[np.float64]
State = tuple[records.EdgeTable, records.RunState, records.Scratch]
Tables = VertexTable | AnswerTable | TargetTable

# Thresholds with a union bound over what the vertices have in common: they are counted.
COUNTING = ("kk21", "mixture")


# The mixture of tilts that stopping by `tilt` rests on. Its constants were chosen once, on
# synthetic prices of two-arm comparisons, and hold for every problem: any choice is proven, this
# one is cheap over a wide range (docs/theory/stopping.md).
#
# Each tilt is weaker than the one before by this factor.
RATIO = 1.6

# Prior of the scales: flat, less at both ends.
TILT_SCALES = (0.4, 0.7, *[1.0] * 9, *(0.8**i for i in range(1, 10)))

# How much weaker an arm's own tilt is than its scale, with its prior; -1 is no tilt at all. Arms
# that the policy has too little of carry the scale; of those that it has, there may be more.
LOSE = {0: 0.39, 1: 0.30, 2: 0.10, 3: 0.09, 5: 0.06, 8: 0.03, -1: 0.03}
WIN = {0: 0.22, 1: 0.22, 2: 0.17, 3: 0.13, 5: 0.12, 7: 0.07, 10: 0.04, -1: 0.03}

# The share of delta for edges that a search does not cross.
CROSSINGS = 0.05

# Policies of more dimensions have too many neighbours to search among them.
MAX_DIMENSIONS = 64

# Rewards of each arm before its variance is used where sigma is unknown: that of two is below a
# hundredth of the true one in 11% of all cases, that of three in 1.5%. One more deviation of the
# usual size (kernels/student_statistic.py) takes care of the rest.
FIRST_PULLS = 3.0

# How far a fixed allocation leans inwards when it would starve an arm.
LEAN = 0.05

# Parts of delta for limits that are exceeded; the rest is for policies that are better, and for
# answers inside faces: others are right only where no measured limit binds.
FOR_ROWS = 0.5
FOR_INSIDE = 0.75

# About what the mixtures of one row, or of the rewards, cost in nats: a guess, by which answers and
# samples are chosen so that both kinds of evidence are enough at about the same time.
MIXTURES_COST = 2.5

# And where deviations are unknown.
HULLS_COST = 5.0


def first_pulls(problem: Problem) -> float:
    """Rewards of each arm before anything is computed."""
    return FIRST_PULLS if problem.measured or not problem.rewards.knows_sigma else 1.0


def make_config(
    plan: Plan,
    polytope: Polytope,
    allowed: AllocationSet,
    table: Tables,
    functions: RunFunctions,
) -> records.RunConfig:
    """What stays fixed during a run."""
    problem, rewards = plan.problem, plan.problem.rewards
    log_union = log_policy = -np.log(plan.delta_of_rule)
    levels = np.zeros(1)
    rule, tracks_wealth, faces = records.EDGES, False, None
    if isinstance(table, TargetTable):
        faces = table.faces
    elif plan.has_e_values:
        rule, log_policy, log_union = tilt_levels(plan, polytope, table)
        tracks_wealth = isinstance(rewards, Bounded)
    elif plan.threshold.function in COUNTING:
        log_union += table.log_union()
    if plan.threshold.function == "kk21":
        largest = problem.size if problem.epsilon else polytope.edge_width
        levels = kk21_levels(rewards.closed_form, log_union, largest)
    low, high = rewards.to_unit(rewards.range_of_means())
    domain = rewards.unit_domain() or (-np.inf, np.inf)
    arms = np.flatnonzero(allowed.interior_allocation > 0)
    scenario = scenario_of_rule(allowed)
    priced = bool(np.ptp(allowed.costs))
    shares = _limits(allowed)
    config = records.RunConfig(
        size=problem.size,
        channels=1 + len(problem.measured),
        measuring=bool(problem.measured),
        closed_form=rewards.closed_form,
        family=rewards.code,
        anytime=scenario != "end-of-time",
        tracking=TRACKINGS[plan.tracking or plan.sampler.tracking[scenario]],
        has_epsilon=bool(problem.epsilon),
        delta=float(plan.delta_of_rule),
        budget=problem.budget or 0,
        # One's own threshold may be anything; ours are never below log(1 / delta).
        # Bets on bounded rewards may know more than the statistic.
        # A small regret may be known long before.
        least_level=0.0
        if plan.threshold.file or tracks_wealth or problem.stop_when or not rewards.knows_sigma
        else float(-np.log(plan.delta_of_rule)),
        log_union=float(log_union),
        variance=rewards.sigmas(problem.size) ** 2
        if rewards.knows_sigma
        else np.ones(problem.size),
        lowest=float(max(low, domain[0])),
        highest=float(min(high, domain[1])),
        domain_low=float(domain[0]),
        domain_high=float(domain[1]),
        lowest_tilt=float(rewards.lowest_tilt),
        allowed_excess=problem.initial_excess,
        # Counts are whole numbers: an equality holds up to one pull.
        steps=np.abs(shares.A - shares.b[:, None])[:, arms].max(axis=1),
        interior_allocation=allowed.interior_allocation,
        shares=shares,
        pulls_per_use=allowed.pulls_per_use,
        priced=priced,
        costs=allowed.costs / allowed.costs.mean() if priced else np.ones(problem.size),
        spend=_limits(allowed.as_rows().in_spend()) if priced else shares,
        useful_arms=arms,
        initial_allocation=allowed.interior_allocation.copy(),
        levels=levels,
        tilts=make_tilts(rewards),
        tracks_wealth=tracks_wealth,
        learns_variance=not rewards.knows_sigma,
        first_pulls=first_pulls(problem),
        rule=rule,
        log_policy=float(log_policy),
        policies=np.array([vertex.policy for vertex in table.vertices])
        if plan.sampler.policies and isinstance(table, VertexTable)
        else np.zeros((0, problem.size)),
        pairs=best_arm_table(problem.size, arms)
        if plan.sampler.in_scenario(scenario).pairs
        else GrowingTable(1).arrays,
        measured=make_measured_limits(plan, faces),
        functions=functions,
    )
    return config._replace(initial_allocation=_initial_allocation(plan, config))


def _limits(allowed: AllocationSet) -> records.AllocationConstraints:
    return records.AllocationConstraints(
        size=len(allowed.lower),
        A=np.vstack([allowed.A_ub, allowed.A_eq]),
        b=np.concatenate([allowed.b_ub, allowed.b_eq]),
        inequalities=len(allowed.b_ub),
        limited=bool(allowed.lower.any() or np.isfinite(allowed.upper).any()),
        lower=np.ascontiguousarray(allowed.lower),
        upper=np.where(allowed.interior_allocation > 0, allowed.upper, 0.0),
        start=allowed.start,
        interior_allocation=allowed.interior_allocation,
        max_slack=allowed.max_slack,
    )


def scenario_of_rule(allowed: AllocationSet) -> str:
    """The scenario whose rule samples follow: what matters is whether they have limits."""
    return "end-of-time" if allowed.is_simplex else "anytime"


def make_tilts(rewards: Family) -> records.TiltMixture:
    """The constants for a family of rewards, in unit coordinates."""
    count = len(TILT_SCALES) + max(*LOSE, *WIN)
    strength = rewards.strongest_tilt * RATIO ** -np.arange(count + 1.0)
    strength[-1] = 0.0
    signed = np.vstack([-strength, strength])
    step, share = np.zeros((2, OWN + 1), dtype=np.int64), np.zeros((2, OWN + 1))
    for side, prior in enumerate((LOSE, WIN)):
        places = [*range(len(prior) - 1), OWN]  # no tilt is the last one
        step[side, places] = list(prior)
        share[side, places] = np.array(list(prior.values())) / sum(prior.values())
    return records.TiltMixture(
        strength=strength,
        slope=signed if rewards.code == records.GAUSSIAN else np.expm1(signed),
        scale=np.array(TILT_SCALES) / sum(TILT_SCALES),
        step=step,
        share=share,
    )


def tilt_levels(
    plan: Plan, polytope: Polytope, table: VertexTable | AnswerTable
) -> tuple[int, float, float]:
    """What `tilt` must rule out, and at which levels (docs/theory/stopping.md).

    The first level is for one of a policy's edges, less the log of their number; the second for
    an edge that is never crossed again. Where there is one level for all they are the same.
    """
    sure = -np.log(plan.delta_of_rule)
    if isinstance(table, AnswerTable):
        level = sure + np.log(table.answers.signed_union)
        return records.EDGES, level, level
    if isinstance(polytope, QuestionPolytope):
        level = sure + np.log(polytope.union)
        return records.EDGES, level, level
    if len(polytope.form.rows) == 1:
        level = sure + np.log(polytope.dimension)
        return records.PAIRS, level, level
    union = math.log(count_directions(polytope.form))  # the number may be too large for numpy
    if polytope.dimension > MAX_DIMENSIONS:
        return records.EDGES, sure + union, sure + union
    return records.POLICIES, sure - np.log1p(-CROSSINGS), sure + union - np.log(CROSSINGS)


def _initial_allocation(plan: Plan, config: records.RunConfig) -> Array:
    """Where every sampler starts, and where the ones that never move stay."""
    if plan.allocation is not None:
        return np.array(plan.allocation, dtype=float)
    if plan.sampler.name == "uniform" and config.anytime:
        projected = _projected(config, np.full(config.size, 1.0 / config.size))
        # An arm that the projection leaves out would never be sampled again, and a run
        # that needs it never end: lean inwards a little.
        starved = (projected < LEAN * config.interior_allocation).any()
        return (1 - LEAN) * projected + LEAN * config.interior_allocation if starved else projected
    return config.interior_allocation.copy()


def _projected(config: records.RunConfig, target: Array) -> Array:
    """Euclidean projection onto the allocation set, by the samplers' own kernel."""
    size, duals = config.size, make_duals(len(config.shares.start))
    price, w = np.zeros(size), np.zeros(size)
    with np.errstate(all="ignore"):
        project(config.shares, duals, target, np.ones(size), price, w)
    return w


def make_duals(rows: int) -> records.Duals:
    """Multipliers for so many rows."""
    vectors = dict.fromkeys(("x", "step", "trial", "residual", "free"), rows)
    return zeros(records.Duals, **vectors, system=(rows, rows))


def make_state(plan: Plan, sampler: Sampler, config: records.RunConfig, table: Tables) -> State:
    """What changes, for the vertices known now."""
    size, rows = config.size, max(len(config.shares.start), len(config.spend.start))
    channels = config.channels, size
    measured, tilts = size if config.measuring else 0, 2 * len(config.tilts.strength)
    learns = config.learns_variance or config.measuring
    uses_tilt = plan.has_e_values and not config.measuring
    run = zeros(
        records.RunState,
        **dict.fromkeys(("n", "clipped_mean", "target", "w", "expired"), size),
        fallback_allocation=size,
        reported=config.channels,
        **dict.fromkeys(("mean", "compensation"), channels),
        log_wealth=(size, tilts) if config.tracks_wealth else (0, 0),
        squares=(config.channels, size + 1) if learns else (0, 0),
        variance=channels if learns else (0, 0),
        upper=config.measured.upper.shape,
        **dict.fromkeys(("counted", "answer", "closest"), measured),
        rate=len(table.answers) if isinstance(table, AnswerTable) else 0,
        duals=make_duals(rows),
        arm_state=(sampler.arm_state, size),
        # The last one is for the weights of answers' comparisons (kernels/recommend_answer.py).
        edge_state=(sampler.edge_state + config.has_epsilon, 0),
        looks=(2 if uses_tilt else 0, 0),
        integers=records.INTEGERS,
        rewards=4,
        choices=4,
    )
    run.upper[:] = config.measured.upper
    if config.measuring:
        run.variance[:] = config.measured.variance
    widest = size  # arms of a comparison; an edge has one more than rows that bind
    if isinstance(table, VertexTable):
        widest = table.polytope.edge_width
    widest = max(2, widest) if uses_tilt else 0
    scratch = zeros(
        records.Scratch,
        arms=(5, size),
        excess=len(config.shares.b),
        counts=3,
        edge=one_edge(widest),
        tilting=(3 + widest, 3 * TILTS),
        newton=(7, widest),
        hessian=(widest, widest),
        hulls=make_hulls(widest if config.learns_variance else 0),
        queue=(2, 0),
        reach=(2, 0),
        aside=(3, 0),
        measured=make_scratch(config.measured),
    )
    return fitted(table.arrays, config.pairs, run, scratch)


def fitted(
    table: records.EdgeTable,
    pairs: records.EdgeTable,
    run: records.RunState,
    scratch: records.Scratch,
) -> State:
    """The same records with room for every vertex of the tables, contents kept."""
    # The roots of the pairs' edges and of the one edge aside come first: they never change place.
    before = len(pairs.following)
    table = table._replace(first_root=before + 1)
    own, both = len(table.following), (table, pairs)
    # Room at the end that is not used yet counts for nothing.
    widest = max(int(np.diff(one.first_edge).max(initial=1)) for one in both)
    entries = max(int(np.diff(one.first_entry[one.first_edge]).max(initial=1)) for one in both)
    lengths = {
        **dict.fromkeys(("gap", "spread", "value", "time"), widest),
        "gradient": entries,
        "root": before + 1 + own,
        "edge_state": max(own, before),
        "looks": own,
    }
    vertices = len(table.first_edge)
    scratch = _wider(scratch, queue=vertices, reach=vertices, aside=widest)
    edge = scratch.edge._replace(first_root=before)
    return table, _wider(run, **lengths), scratch._replace(edge=edge)


def _wider(record: Any, **lengths: int) -> Any:
    """A record with arrays whose last axes are at least as long; the same ones if they are."""
    grown = {}
    for name, length in lengths.items():
        array = getattr(record, name)
        if (missing := length - array.shape[-1]) > 0:
            grown[name] = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)])
    return record._replace(**grown)


# ---------------------------------------------------------------------- measured limits


def levels(delta: float, rows: int) -> tuple[float, float]:
    """Evidence that is needed for each row, and against every competitor."""
    return math.log(rows / FOR_ROWS) - math.log(delta), -math.log1p(-FOR_ROWS) - math.log(delta)


def make_measured_limits(plan: Plan, faces: Simplices | None) -> records.MeasuredLimits:
    """Measured limits as kernels see them; empty without any."""
    problem = plan.problem
    if faces is None:
        return zeros(records.MeasuredLimits)
    rows = problem.measured
    row_level, value_level = levels(plan.delta, len(rows))
    inside, outside = map(len, faces.supports)
    unit = problem.rewards.width
    families = [problem.rewards, *(row.noise for row in rows)]
    deviations = np.array(
        [spreads(x, problem.size) if x.knows_sigma else np.ones(problem.size) for x in families]
    )
    deviations[0] /= unit
    costs = [MIXTURES_COST if x.knows_sigma else HULLS_COST for x in families]
    log_inside = math.log(inside / FOR_INSIDE) if outside else math.log(inside)
    log_patterns = np.log(faces.patterns)
    independent = np.array([row.independent for row in rows], dtype=np.int64)
    log_averaged = math.log(1 + len(rows) - int(independent.sum()))
    # One channel must be able to make up for all others, which say nothing.
    doubts = int(independent.sum()) * math.log(min(NO_REWARDS, NO_ROW))
    alone = -math.log(1 - NO_ROW) + log_averaged - doubts
    return records.MeasuredLimits(
        size=problem.size,
        rows=len(rows),
        corners=faces.cells.shape[1],
        epsilon=problem.epsilon / unit,
        row_level=row_level,
        value_level=value_level,
        row_need=row_level + log_inside + max(costs[1:]),
        value_need=value_level + float(log_patterns.mean()) + sum(costs),
        log_inside=log_inside,
        log_outside=math.log(max(outside, 1) / (1 - FOR_INSIDE)),
        variance=deviations**2,
        unknown=np.array([not x.knows_sigma for x in families], dtype=np.int64),
        most=max(row_level + log_inside, value_level + float(log_patterns.max()) + alone),
        loss=LOSS if faces.cells.shape[1] < 3 else LOSS_OF_TRIANGLES,
        limit=np.array([row.bound for row in rows]),
        tolerance=np.array([row.tolerance for row in rows]),
        costs=np.array(problem.costs, dtype=float),
        useful_arms=np.flatnonzero((faces.vertices > 0).any(axis=0)),
        vertices=np.ascontiguousarray(faces.vertices),
        cells=np.ascontiguousarray(faces.cells),
        used=np.ascontiguousarray(faces.used, dtype=float),
        log_patterns=log_patterns,
        independent=independent,
        log_averaged=log_averaged,
        **_guard(plan),
    )


def _guard(plan: Plan) -> dict[str, Any]:
    """What keeps samples within limits, where they are to keep them."""
    problem = plan.problem
    shape = len(problem.measured), problem.size
    enforces = plan.scenario != "end-of-time"
    nothing = Safety(np.zeros(shape), np.zeros((0, problem.size)), np.zeros(problem.size, bool))
    known = safety(problem) if enforces else nothing
    bound = np.array([row.bound for row in problem.measured])
    return {
        "enforces_limits": int(enforces),
        # Pulls handed out before delta was made smaller were promised no more than this.
        "guard_level": math.log(shape[0] * shape[1]) - math.log(problem.delta),
        "upper": known.upper,
        "worst": np.maximum(known.upper.max(axis=1) - bound, 1e-300),
        "moves": np.ascontiguousarray(known.moves),
        "alone": known.alone.astype(np.int64),
    }


def make_scratch(limits: records.MeasuredLimits) -> records.MeasuredScratch:
    """Scratch of runs with measured limits."""
    size, corners, channels = limits.size, limits.corners, 1 + limits.rows
    return zeros(
        records.MeasuredScratch,
        stack=((MAX_DEPTH + 3) * corners + 2, corners),
        corner=(corners, size),
        price=(size, SCALES),
        values=(channels, len(limits.vertices)),
        bounds=(2, limits.rows),
        **dict.fromkeys(("pays", "least"), (channels, SCALES)),
        **dict.fromkeys(("sign", "loss", "policy", "found", "shares", "n"), size),
        **dict.fromkeys(("slot", "deviation"), (channels, size)),
        hulls=make_hulls(channels * size if limits.unknown.any() else 0),
    )


def make_hulls(arms: int) -> records.Hulls:
    """Room for hulls of so many arms at hand, and of some more that may be asked for again."""
    slots = max(SLOTS, 2 * arms) if arms else 0
    return zeros(
        records.Hulls,
        arm=PLACES,
        **dict.fromkeys(("samples", "reach", "corners", "least", "end"), slots),
        **dict.fromkeys(("y", "value"), (slots, CORNERS)),
        **dict.fromkeys(("slot", "coefficient"), arms),
    )
