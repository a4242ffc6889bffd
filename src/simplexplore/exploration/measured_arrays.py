"""The records of runs with measured limits: made in Python, read and written by kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.simplices import Simplices
from simplexplore.kernels.measured_episode import advance
from simplexplore.kernels.measured_records import (
    CTNS,
    INTEGERS,
    TOP_TWO,
    UNIFORM,
    MeasuredRun,
    MeasuredSetting,
    MeasuredWork,
)
from simplexplore.kernels.measured_search import DEEPEST, SCALES
from simplexplore.kernels.measured_student import CORNERS
from simplexplore.kernels.student_mixture import ROWS
from simplexplore.problem.measured import spreads

from .measured_safety import Safety, safety
from .plan import Plan

Array = npt.NDArray[np.float64]

SAMPLERS = {"top-two": TOP_TWO, "ctns": CTNS, "uniform": UNIFORM}

# Parts of delta for limits that are exceeded; the rest is for policies that are better, and for
# answers inside faces: others are right only where no measured limit binds.
FOR_ROWS = 0.5
FOR_INSIDE = 0.75

# About what the mixtures of one row, or of the rewards, cost in nats: a guess, by which answers and
# samples are chosen so that both kinds of evidence are enough at about the same time.
MIXTURES_COST = 2.5

# And where deviations are unknown; and evidence of one arm that makes up for what the others pay.
HULLS_COST = 5.0
FURTHER = 25.0

# Pulls of each arm before estimates are of use.
FIRST_PULLS = 3.0


def levels(delta: float, rows: int) -> tuple[float, float]:
    """Evidence that is needed for each row, and against every competitor."""
    return math.log(rows / FOR_ROWS) - math.log(delta), -math.log1p(-FOR_ROWS) - math.log(delta)


def make_setting(plan: Plan, faces: Simplices) -> MeasuredSetting:
    """What stays fixed during a run."""
    problem = plan.problem
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
    return MeasuredSetting(
        size=problem.size,
        rows=len(rows),
        corners=faces.cells.shape[1],
        sampler=SAMPLERS[plan.sampler.name],
        epsilon=problem.epsilon / unit,
        row_level=row_level,
        value_level=value_level,
        row_need=row_level + log_inside + max(costs[1:]),
        value_need=value_level + float(log_patterns.mean()) + sum(costs),
        log_inside=log_inside,
        log_outside=math.log(max(outside, 1) / (1 - FOR_INSIDE)),
        variance=deviations[0] ** 2,
        spread=deviations[1:] ** 2,
        unknown=np.array([not x.knows_sigma for x in families], dtype=np.int64),
        reach=max(row_level + log_inside, value_level + float(log_patterns.max())) + FURTHER,
        limit=np.array([row.bound for row in rows]),
        tolerance=np.array([row.tolerance for row in rows]),
        costs=np.array(problem.costs, dtype=float),
        first_arms=np.flatnonzero((faces.vertices > 0).any(axis=0)),
        first_pulls=FIRST_PULLS,
        vertices=np.ascontiguousarray(faces.vertices),
        cells=np.ascontiguousarray(faces.cells),
        used=np.ascontiguousarray(faces.used, dtype=float),
        log_patterns=log_patterns,
        **_guard(plan),
        advance=advance,
    )


def _guard(plan: Plan) -> dict[str, Any]:
    """What keeps samples within limits, where they are to keep them."""
    problem = plan.problem
    shape = (len(problem.measured), problem.size)
    if plan.scenario == "end-of-time":
        known = Safety(np.zeros(shape), np.zeros((0, problem.size)), np.zeros(problem.size) > 0)
    else:
        known = safety(problem)
    bound = np.array([row.bound for row in problem.measured])
    return {
        "is_guarded": int(plan.scenario != "end-of-time"),
        # Pulls handed out before delta was made smaller were promised no more than this.
        "guard_level": math.log(shape[0] * shape[1]) - math.log(problem.delta),
        "upper": known.upper,
        "worst": np.maximum(known.upper.max(axis=1) - bound, 1e-300),
        "moves": np.ascontiguousarray(known.moves),
        "alone": known.alone.astype(np.int64),
    }


def make_run(setting: MeasuredSetting) -> MeasuredRun:
    """What changes in a run, empty."""
    size = setting.size
    return MeasuredRun(
        n=np.zeros(size),
        mean=np.zeros(size),
        measured=np.zeros((setting.rows, size)),
        lost=np.zeros((1 + setting.rows, size)),
        variance=np.vstack([setting.variance, setting.spread]),
        squares=np.zeros((1 + setting.rows, size + 1)),
        upper=setting.upper.copy(),
        counted=np.zeros(size),
        target=np.zeros(size),
        w=np.zeros(size),
        given_up=np.zeros(size),
        answer=np.zeros(size),
        closest=np.zeros(size),
        integers=np.zeros(INTEGERS, dtype=np.int64),
        rewards=np.zeros(4, dtype=np.uint64),
        choices=np.zeros(4, dtype=np.uint64),
    )


def make_work(setting: MeasuredSetting) -> MeasuredWork:
    """Scratch."""
    size, rows, corners = setting.size, setting.rows, setting.corners
    hulls = CORNERS if setting.unknown.any() else 1
    return MeasuredWork(
        stack=np.zeros(((DEEPEST + 3) * corners + 2, corners)),
        corner=np.zeros((corners, size)),
        sign=np.zeros(size),
        price=np.zeros((size, SCALES)),
        pays=np.zeros((1 + rows, SCALES)),
        least=np.zeros((1 + rows, SCALES)),
        values=np.zeros((1 + rows, len(setting.vertices))),
        bounds=np.zeros((2, rows)),
        policy=np.zeros(size),
        found=np.zeros(size),
        shares=np.zeros(size),
        n=np.zeros(size),
        student=np.zeros((ROWS, 1)),
        reach=np.zeros((2 * size, hulls)),
        grown=np.zeros((2 * size, hulls)),
        corners=np.zeros(2 * size, dtype=np.int64),
        built=np.full(2 * size, -1.0),
        least_of=np.zeros(2 * size),
        ends=np.zeros(2 * size),
        slot=np.zeros((1 + rows, size), dtype=np.int64),
        deviation=np.zeros((1 + rows, size)),
        coefficient=np.zeros(size),
    )
