"""The records of a run: made in Python, read and written by kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.geometry.polytope import Polytope
from simplexplore.kernels.projection import project
from simplexplore.kernels.records import (
    AVERAGED,
    CUMULATIVE,
    DIRECT,
    FOCUSED,
    SAMPLED,
    Memory,
    Projection,
    Run,
    Setting,
    Table,
)
from simplexplore.kernels.slots import Slots

from .plan import Plan
from .stopping import kk21_levels
from .vertex_table import AnswerTable, VertexTable, best_arm_table, empty_table

Array = npt.NDArray[np.float64]
State = tuple[Table, Run, Memory]

_TRACKING = {
    "cumulative": CUMULATIVE,
    "averaged": AVERAGED,
    "direct": DIRECT,
    "sampled": SAMPLED,
    "focused": FOCUSED,
}

# How far a fixed allocation leans inwards when it would starve an arm.
LEAN = 0.05


def make_setting(
    plan: Plan, polytope: Polytope, table: VertexTable | AnswerTable, slots: Slots
) -> Setting:
    """What stays fixed during a run."""
    problem, rewards = plan.problem, plan.problem.rewards
    allowed = AllocationSet.of(polytope, plan.scenario)
    log_union = -np.log(plan.delta)
    levels = np.zeros(1)
    if plan.threshold.function in ("kk21", "mixture"):
        log_union += table.union_size()[0]
    if plan.threshold.function == "kk21":
        largest = problem.size if problem.epsilon else len(polytope.form.rows) + 2
        levels = kk21_levels(rewards.closed_form, log_union, largest)
    low, high = rewards.to_unit(rewards.range_of_means())
    domain = rewards.unit_domain() or (-np.inf, np.inf)
    arms = np.flatnonzero(allowed.inside > 0)
    sampler = plan.sampler.in_scenario(plan.scenario)
    setting = Setting(
        size=problem.size,
        closed_form=rewards.closed_form,
        family=rewards.code,
        anytime=plan.scenario == "anytime",
        tracking=_TRACKING[plan.tracking or plan.sampler.tracking[plan.scenario]],
        sticking=bool(problem.epsilon),
        delta=float(plan.delta),
        # One's own threshold may be anything; ours are never below log(1 / delta).
        least_level=0.0 if plan.threshold.file else float(-np.log(plan.delta)),
        log_union=float(log_union),
        variance=rewards.sigmas(problem.size) ** 2,
        lowest=float(max(low, domain[0])),
        highest=float(min(high, domain[1])),
        domain_low=float(domain[0]),
        domain_high=float(domain[1]),
        lowest_tilt=float(rewards.lowest_tilt),
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
        first_arms=arms,
        fixed=allowed.inside.copy(),
        levels=levels,
        pairs=best_arm_table(problem.size, arms) if sampler.pairs else empty_table(),
        slots=slots,
    )
    return setting._replace(fixed=_fixed_allocation(plan, setting))


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
    rows, size = len(setting.start), setting.size
    w = np.zeros(size)
    system, price = np.zeros((rows, rows)), np.zeros(size)
    with np.errstate(all="ignore"):
        project(setting, Projection(target, np.ones(size), np.zeros((5, rows)), system, price, w))
    return w


def make_state(plan: Plan, setting: Setting, table: VertexTable | AnswerTable) -> State:
    """What changes, for the vertices known now."""
    size, rows = setting.size, len(setting.start)
    sampler = plan.sampler.in_scenario(plan.scenario)
    run = Run(
        n=np.zeros(size),
        mean=np.zeros(size),
        clipped=np.zeros(size),
        target=np.zeros(size),
        average=np.zeros(size),
        w=np.zeros(size),
        gap=np.zeros(0),
        spread=np.zeros(0),
        value=np.zeros(0),
        time=np.zeros(0),
        gradient=np.zeros(0),
        scale=np.zeros(1),
        rate=np.zeros(len(table.answers) if isinstance(table, AnswerTable) else 0),
        root=np.zeros(0),
        integers=np.zeros(9, dtype=np.int64),
        rewards=np.zeros(4, dtype=np.uint64),
        choices=np.zeros(4, dtype=np.uint64),
    )
    memory = Memory(
        arms=np.zeros((sampler.arm_vectors, size)),
        # The last one is for the weights of answers' comparisons (kernels/recommend_answer.py).
        edges=np.zeros((sampler.edge_vectors + bool(plan.problem.epsilon), 0)),
        rows=np.zeros((5, rows)),
        scratch=np.zeros((4, size)),
        system=np.zeros((rows, rows)),
    )
    return fitted(table.arrays(), setting.pairs, run, memory)


def fitted(table: Table, pairs: Table, run: Run, memory: Memory) -> State:
    """The same records with room for every vertex of the tables, contents kept."""
    # The roots of the pairs' edges come first: their number never changes.
    table = table._replace(first_root=len(pairs.following))
    edges = max(len(table.following), len(pairs.following))
    roots = len(table.following) + len(pairs.following)
    widest = max(_most(table.first_edge), _most(pairs.first_edge))
    entries = max(_most_entries(table), _most_entries(pairs))
    run = run._replace(
        gap=_longer(run.gap, widest),
        spread=_longer(run.spread, widest),
        value=_longer(run.value, widest),
        time=_longer(run.time, widest),
        gradient=_longer(run.gradient, entries),
        root=_longer(run.root, roots),
    )
    if memory.edges.shape[1] < edges:
        longer = np.zeros((len(memory.edges), edges))
        longer[:, : memory.edges.shape[1]] = memory.edges
        memory = memory._replace(edges=longer)
    return table, run, memory


def _longer(array: Array, size: int) -> Array:
    if len(array) >= size:
        return array
    longer = np.zeros(size)
    longer[: len(array)] = array
    return longer


def _most(first: npt.NDArray[np.int64]) -> int:
    """Most edges at one vertex; unused room at the end counts for nothing."""
    return int(np.diff(first).max(initial=1))


def _most_entries(table: Table) -> int:
    """Most entries that the edges of one vertex have."""
    return int(np.diff(table.first_entry[table.first_edge]).max(initial=1))
