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


def condition_number(polytope: Polytope, vertex: Vertex) -> float:
    """Ratio of extreme singular values of the active rows, each of length one."""
    problem = polytope.problem
    if problem.size == 1:
        return 1.0
    names = set(polytope.active(vertex))
    active = [row for row in problem.constraints if row.name in names]
    # Rows of arms at zero or at other limits of their own are unit vectors. Arms with the same
    # number of them are alike across what the few other rows span there, and only this span, q,
    # is left to look at.
    alone = np.array([row.arms[0] for row in active if len(row.arms) == 1], dtype=int)
    units = np.bincount(alone, minlength=problem.size) + (vertex.policy == 0)
    several = [row.coefficients for row in active if len(row.arms) > 1]
    rows = np.array([np.ones(problem.size), *several])
    rows /= np.abs(rows).max(axis=1, keepdims=True)  # squares of what is left do not overflow
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    seen, lengths, sizes = [], [], []
    for number in np.unique(units):
        own, length = rows[:, units == number], math.sqrt(number)
        q = np.linalg.qr(own.T)[0] if number else np.eye(own.shape[1])
        seen.append(own @ q)
        lengths += [length] * q.shape[1]
        sizes += [length] * (q.shape[1] < own.shape[1])
    both = np.vstack([np.hstack(seen), np.diag(lengths)])
    sizes += np.linalg.svd(both, compute_uv=False).tolist()
    return max(sizes) / min(sizes) if min(sizes) > 0 else math.inf
