"""Bounds on the characteristic time that need no solver: the paper's corollaries, corrected."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.edges import Edges
from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.vertex import Vertex
from simplexplore.problem.families import Gaussian
from simplexplore.problem.problem import Problem

from .information import Information

Array = npt.NDArray[np.float64]

# Of more arms no condition number is computed.
MAX_ARMS = 500


def corollaries(
    problem: Problem,
    polytope: Polytope,
    vertex: Vertex,
    edges: Edges,
    gaps: Array,
    mu: Array,
) -> dict[str, float | None]:
    """Corollaries 1 and 2 of the paper, corrected.

    Corollary 1: each edge alone bounds T from below and uniform sampling bounds it from
    above, so both ends are maxima over edges (the printed upper end is a minimum, which
    fails). Corollary 2(b): Cauchy-Schwarz gives T >= H without the condition number, which
    depends on how rows are scaled; we report it for rows of length one. With costs all are in
    units of cost: variances count c_a times (docs/theory/costs_and_limits.md).
    """
    kappa = None if problem.question else condition_number(polytope, vertex)
    if len(edges) == 0:
        return {"distance_lower": 0.0, "distance_upper": 0.0, "kappa": kappa, "H": None}
    if (gaps == 0).any():
        return {"distance_lower": math.inf, "distance_upper": math.inf, "kappa": kappa, "H": None}
    costs = problem.costs
    information = Information(edges, gaps, mu, problem.rewards, costs=costs)
    uniform = costs / costs.sum()  # of samples, in shares of what is spent
    hardness: float | None = None
    if isinstance(problem.rewards, Gaussian) and not problem.question:
        losses = (mu.max() - mu) / (problem.rewards.sigmas(problem.size) * np.sqrt(costs))
        hardness = float(2.0 / (losses @ losses)) if losses.any() else None
    return {
        "distance_lower": float(information.edge_times().max()),
        "distance_upper": float(1.0 / information.closest(uniform).value.min()),
        "kappa": kappa,
        "H": hardness,
    }


def condition_number(polytope: Polytope, vertex: Vertex) -> float | None:
    """Ratio of extreme singular values of the active rows, each of length one.

    None where arms are many: it would take longer than the bound.
    """
    problem = polytope.problem
    if problem.size > MAX_ARMS:
        return None
    names = set(polytope.active(vertex))
    active = [row.coefficients for row in problem.constraints if row.name in names]
    rows = np.array([np.ones(problem.size), *active, *np.eye(problem.size)[vertex.policy == 0]])
    rows /= np.abs(rows).max(axis=1, keepdims=True)  # squares of what is left do not overflow
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sizes = np.linalg.svd(rows, compute_uv=False)
    return float(sizes[0] / sizes[-1]) if sizes[-1] > 0 else math.inf
