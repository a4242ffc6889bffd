"""The records of a run: made in Python, read and written by kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.geometry.circuits import count_directions
from simplexplore.geometry.polytope import Polytope
from simplexplore.kernels.maximin import MAX_ITERATIONS
from simplexplore.kernels.projection import project
from simplexplore.kernels.records import (
    AVERAGED,
    CUMULATIVE,
    DIRECT,
    EDGES,
    FOCUSED,
    PAIRS,
    POLICIES,
    SAMPLED,
    Limits,
    Memory,
    Projection,
    Run,
    Setting,
    Table,
)
from simplexplore.kernels.search import LOOKS
from simplexplore.kernels.slots import Slots
from simplexplore.kernels.student_mixture import ROWS as STUDENT_ROWS
from simplexplore.kernels.tilt import TILTS
from simplexplore.problem.families import Bounded, Gaussian
from simplexplore.problem.family import Family
from simplexplore.samplers import Sampler

from .plan import Plan
from .stopping import kk21_levels
from .tilts import make_tilts
from .vertex_table import AnswerTable, VertexTable, best_arm_table, empty_table, one_edge

Array = npt.NDArray[np.float64]
State = tuple[Table, Run, Memory]

_TRACKING = {
    "cumulative": CUMULATIVE,
    "averaged": AVERAGED,
    "direct": DIRECT,
    "sampled": SAMPLED,
    "focused": FOCUSED,
}

# Thresholds with a union bound over what the vertices have in common: they are counted.
COUNTING = ("kk21", "mixture")

# The share of delta for edges that a search does not cross.
CROSSINGS = 0.05

# Policies of more dimensions have too many neighbours to search among them.
MOST_DIMENSIONS = 64

# Rewards of each arm before its variance is used where sigma is unknown: that of two is below a
# hundredth of the true one in 11% of all cases, that of three in 1.5%. One more deviation of the
# usual size (kernels/student_statistic.py) takes care of the rest.
FIRST_PULLS = 3.0

# How far a fixed allocation leans inwards when it would starve an arm.
LEAN = 0.05


def first_pulls(rewards: Family) -> float:
    """Rewards of each arm before anything is computed."""
    return 1.0 if rewards.knows_sigma else FIRST_PULLS


def make_setting(
    plan: Plan,
    polytope: Polytope,
    allowed: AllocationSet,
    table: VertexTable | AnswerTable,
    slots: Slots,
) -> Setting:
    """What stays fixed during a run."""
    problem, rewards = plan.problem, plan.problem.rewards
    log_union = log_policy = -np.log(plan.delta_of_rule)
    levels = np.zeros(1)
    rule = EDGES
    if plan.threshold.function in COUNTING:
        log_union += table.union_size()[0]
    if plan.threshold.function == "kk21":
        largest = problem.size if problem.epsilon else len(polytope.form.rows) + 2
        levels = kk21_levels(rewards.closed_form, log_union, largest)
    betting = plan.threshold.function == "tilt" and isinstance(rewards, Bounded)
    if plan.threshold.function == "tilt":
        rule, log_policy, log_union = tilt_levels(plan, polytope, table)
    low, high = rewards.to_unit(rewards.range_of_means())
    domain = rewards.unit_domain() or (-np.inf, np.inf)
    arms = np.flatnonzero(allowed.inside > 0)
    scenario = scenario_of_rule(allowed)
    priced = bool(np.ptp(allowed.costs))
    shares = _limits(allowed)
    setting = Setting(
        size=problem.size,
        closed_form=rewards.closed_form,
        family=rewards.code,
        anytime=scenario != "end-of-time",
        tracking=_TRACKING[plan.tracking or plan.sampler.tracking[scenario]],
        sticking=bool(problem.epsilon),
        delta=float(plan.delta_of_rule),
        budget=problem.budget or 0,
        # One's own threshold may be anything; ours are never below log(1 / delta).
        # Bets on bounded rewards may know more than the statistic.
        # A small regret may be known long before.
        least_level=0.0
        if plan.threshold.file or betting or problem.stop_when or not rewards.knows_sigma
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
        above=shares.above,
        limit=shares.limit,
        equal=shares.equal,
        total=shares.total,
        limited=shares.limited,
        floor=shares.floor,
        cap=shares.cap,
        room=problem.room,
        # Counts are whole numbers: an equality holds up to one pull.
        steps=np.abs(allowed.equal - allowed.total[:, None])[:, arms].max(axis=1),
        inside=shares.inside,
        shares=shares,
        pulls_for_one=allowed.pulls_for_one,
        priced=priced,
        costs=allowed.costs / allowed.costs.mean() if priced else np.ones(problem.size),
        spend=_limits(allowed.as_rows().in_spend()) if priced else shares,
        first_arms=arms,
        fixed=allowed.inside.copy(),
        levels=levels,
        tilts=make_tilts(rewards),
        betting=betting,
        learning=not rewards.knows_sigma,
        pooled=isinstance(rewards, Gaussian) and rewards.equal_sigma,
        first_pulls=first_pulls(rewards),
        at_once=MAX_ITERATIONS,
        rule=rule,
        log_policy=float(log_policy),
        policies=np.array([vertex.policy for vertex in table.vertices])
        if plan.sampler.policies and isinstance(table, VertexTable)
        else np.zeros((0, problem.size)),
        pairs=best_arm_table(problem.size, arms)
        if plan.sampler.in_scenario(scenario).pairs
        else empty_table(),
        slots=slots,
    )
    return setting._replace(fixed=_fixed_allocation(plan, setting))


def _limits(allowed: AllocationSet) -> Limits:
    return Limits(
        size=len(allowed.floor),
        above=np.ascontiguousarray(allowed.above),
        limit=np.ascontiguousarray(allowed.limit),
        equal=np.ascontiguousarray(allowed.equal),
        total=np.ascontiguousarray(allowed.total),
        limited=bool(allowed.floor.any() or np.isfinite(allowed.cap).any()),
        floor=np.ascontiguousarray(allowed.floor),
        cap=np.ascontiguousarray(allowed.cap),
        start=allowed.start,
        inside=allowed.inside,
        deep=allowed.deep,
    )


def scenario_of_rule(allowed: AllocationSet) -> str:
    """The scenario whose rule samples follow: what matters is whether they have limits."""
    return "end-of-time" if allowed.is_simplex else "anytime"


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
        return EDGES, level, level
    if len(polytope.form.rows) == 1:
        level = sure + np.log(polytope.dimension)
        return PAIRS, level, level
    union = math.log(count_directions(polytope.form))  # the number may be too large for numpy
    if polytope.dimension > MOST_DIMENSIONS:
        return EDGES, sure + union, sure + union
    return POLICIES, sure - np.log1p(-CROSSINGS), sure + union - np.log(CROSSINGS)


def _fixed_allocation(plan: Plan, setting: Setting) -> Array:
    """Where every sampler starts, and where the ones that never move stay."""
    if plan.allocation is not None:
        return np.array(plan.allocation, dtype=float)
    if plan.sampler.name == "uniform" and setting.anytime:
        projected = _projected(setting, np.full(setting.size, 1.0 / setting.size))
        # An arm that the projection leaves out would never be sampled again, and a run
        # that needs it never end: lean inwards a little.
        starved = (projected < LEAN * setting.inside).any()
        return (1 - LEAN) * projected + LEAN * setting.inside if starved else projected
    return setting.inside.copy()


def _projected(setting: Setting, target: Array) -> Array:
    """Euclidean projection onto the allocation set, by the samplers' own kernel."""
    rows, size = len(setting.shares.start), setting.size
    w = np.zeros(size)
    system, price = np.zeros((rows, rows)), np.zeros(size)
    with np.errstate(all="ignore"):
        project(
            setting.shares, Projection(target, np.ones(size), np.zeros((5, rows)), system, price, w)
        )
    return w


def make_state(
    plan: Plan, sampler: Sampler, setting: Setting, table: VertexTable | AnswerTable
) -> State:
    """What changes, for the vertices known now."""
    size, rows = setting.size, max(len(setting.shares.start), len(setting.spend.start))
    run = Run(
        n=np.zeros(size),
        mean=np.zeros(size),
        lost=np.zeros(size),
        clipped=np.zeros(size),
        target=np.zeros(size),
        average=np.zeros(size),
        w=np.zeros(size),
        filler=np.zeros(size),
        given_up=np.zeros(size),
        gap=np.zeros(0),
        spread=np.zeros(0),
        value=np.zeros(0),
        time=np.zeros(0),
        gradient=np.zeros(0),
        scale=np.zeros(1),
        bets=np.zeros((size, 2 * len(setting.tilts.strength)) if setting.betting else (0, 0)),
        squares=np.zeros(size + 1 if setting.learning else 0),
        variance=np.zeros(size if setting.learning else 0),
        rate=np.zeros(len(table.answers) if isinstance(table, AnswerTable) else 0),
        root=np.zeros(0),
        integers=np.zeros(10, dtype=np.int64),
        rewards=np.zeros(4, dtype=np.uint64),
        choices=np.zeros(4, dtype=np.uint64),
    )
    memory = Memory(
        arms=np.zeros((sampler.arm_vectors, size)),
        # The last one is for the weights of answers' comparisons (kernels/recommend_answer.py).
        edges=np.zeros((sampler.edge_vectors + bool(plan.problem.epsilon), 0)),
        rows=np.zeros((5, rows)),
        scratch=np.zeros((5, size)),
        system=np.zeros((rows, rows)),
        excess=np.zeros(len(setting.shares.start) + 3),
        **_tilt_memory(plan, setting, table),
    )
    return fitted(table.arrays(), setting.pairs, run, memory)


def _tilt_memory(plan: Plan, setting: Setting, table: VertexTable | AnswerTable) -> dict[str, Any]:
    """What `tilt` needs; next to nothing for other thresholds."""
    is_used = plan.threshold.function == "tilt"
    widest = setting.size  # arms of a comparison; an edge has one more than rows that bind
    if isinstance(table, VertexTable):
        widest = min(widest, len(table.polytope.form.rows) + 1)
    widest = max(2, widest) if is_used else 0
    return {
        "looks": np.zeros((2 * LOOKS if is_used else 0, 0)),
        "edge": one_edge(widest),
        "tilting": np.zeros((3 + widest, 3 * TILTS)),
        "newton": np.zeros((6, widest)),
        "hessian": np.zeros((widest, widest)),
        "student": np.zeros((STUDENT_ROWS, widest if setting.learning else 0)),
        "queue": np.zeros((2, 0), dtype=np.int64),
    }


def fitted(table: Table, pairs: Table, run: Run, memory: Memory) -> State:
    """The same records with room for every vertex of the tables, contents kept."""
    # The roots of the pairs' edges and of the one edge aside come first: they never change place.
    before = len(pairs.following)
    table = _with(table, first_root=before + 1)
    edges = max(len(table.following), len(pairs.following))
    roots = before + 1 + len(table.following)
    widest = max(_most(table.first_edge), _most(pairs.first_edge))
    entries = max(_most_entries(table), _most_entries(pairs))
    run = _with(
        run,
        gap=_longer(run.gap, widest),
        spread=_longer(run.spread, widest),
        value=_longer(run.value, widest),
        time=_longer(run.time, widest),
        gradient=_longer(run.gradient, entries),
        root=_longer(run.root, roots),
    )
    queue = memory.queue
    if queue.shape[1] < len(table.first_edge):
        queue = np.zeros((2, len(table.first_edge)), dtype=np.int64)
    memory = _with(
        memory,
        edges=_wider(memory.edges, edges),
        looks=_wider(memory.looks, len(table.following)),
        queue=queue,
    )
    if memory.edge.first_root != before:
        memory = memory._replace(edge=memory.edge._replace(first_root=before))
    return table, run, memory


def _with(record: Any, **changed: Any) -> Any:
    """A record with other fields; the same one if they are what it has."""
    same = all(getattr(record, name) is field for name, field in changed.items())
    return record if same else record._replace(**changed)


def _longer(array: Array, size: int) -> Array:
    if len(array) >= size:
        return array
    longer = np.zeros(size)
    longer[: len(array)] = array
    return longer


def _wider(array: Array, size: int) -> Array:
    if array.shape[1] >= size:
        return array
    wider = np.zeros((len(array), size))
    wider[:, : array.shape[1]] = array
    return wider


def _most(first: npt.NDArray[np.int64]) -> int:
    """Most edges at one vertex; unused room at the end counts for nothing."""
    return int(np.diff(first).max(initial=1))


def _most_entries(table: Table) -> int:
    """Most entries that the edges of one vertex have."""
    return int(np.diff(table.first_entry[table.first_edge]).max(initial=1))
