"""What depends on the family of rewards: in closed form where there is one, else by a root.

Which one is a field of RunConfig. It is fixed for a run, so native.py compiles one branch.
"""

from __future__ import annotations

from . import exponential, gaussian, student_statistic
from .edges import gap_of
from .kernel import inlined, kernel
from .records import VERTEX, EdgeTable, RunConfig, RunState, Vector


@inlined
def learns_variance(config: RunConfig, channel: int) -> bool:
    """Whether deviations of what a channel reports are unknown."""
    if config.measuring:
        return config.measured.unknown[channel] != 0
    return config.learns_variance


@inlined
def edge_information(
    config: RunConfig, table: EdgeTable, run: RunState, edge: int, base: int, w: Vector
) -> float:
    """Closest alternative across an edge: D_e(w), and its gradient by the edge's arms.

    The gradient of entry k lies at run.gradient[k - base].
    """
    if config.closed_form or config.learns_variance:
        return gaussian.edge_information(config, table, run, edge, base, w)
    return exponential.edge_information(config, table, run, edge, base, w)


@inlined
def statistic(config: RunConfig, table: EdgeTable, run: RunState, edge: int) -> float:
    """The statistic of an edge of any table."""
    if config.closed_form:
        return gaussian.edge_information(config, table, run, edge, table.first_entry[edge], run.n)
    if config.learns_variance:
        return student_statistic.statistic(config, table, run, edge)
    return exponential.edge_information(config, table, run, edge, table.first_entry[edge], run.n)


@inlined
def refresh_edge(config: RunConfig, table: EdgeTable, run: RunState, edge: int, e: int) -> None:
    """Recompute gap and statistic of an edge, the e-th of its vertex."""
    if config.closed_form:
        gaussian.refresh_edge(config, table, run, edge, e)
    else:
        run.gap[e] = gap_of(table, run, edge)
        run.value[e] = statistic(config, table, run, edge)


@kernel
def recompute_statistics(config: RunConfig, table: EdgeTable, run: RunState) -> None:
    """Recompute gaps and statistics of all edges of the vertex."""
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    for edge in range(first, table.first_edge[vertex + 1]):
        refresh_edge(config, table, run, edge, edge - first)


@inlined
def update_statistics(
    config: RunConfig, table: EdgeTable, run: RunState, arm: int, moved: float, slower: float
) -> None:
    """Update the edges that contain an arm whose mean and 1 / n changed."""
    if config.closed_form:
        gaussian.update_statistics(config, table, run, arm, moved, slower)
    else:
        vertex = run.integers[VERTEX]
        for k in range(table.first_column[vertex, arm], table.first_column[vertex, arm + 1]):
            e = table.column_edge[k]
            refresh_edge(config, table, run, table.first_edge[vertex] + e, e)


@inlined
def mixture_evidence(
    config: RunConfig, table: EdgeTable, run: RunState, edge: int, statistic: float
) -> float:
    """Log of the evidence of conjugate mixtures that an edge is no improvement."""
    if config.closed_form:
        return gaussian.mixture_evidence(config, table, run, edge)
    return exponential.mixture_evidence(config, table, run, edge, statistic)


@inlined
def closest(config: RunConfig, table: EdgeTable, run: RunState, edge: int, lam: Vector) -> None:
    """Write the closest alternative across an edge into lam, by the edge's arms."""
    if config.closed_form or config.learns_variance:
        gaussian.closest(config, table, run, edge, lam)
    else:
        exponential.closest(config, table, run, edge, run.n, lam)


@inlined
def ucb_divergence(config: RunConfig, run: RunState, arm: int, lam: float, f: float) -> float:
    """Largest divergence from lam over means that an arm's samples cannot rule out (CGE's U)."""
    if config.closed_form or config.learns_variance:
        return gaussian.ucb_divergence(config, run, arm, lam, f)
    return exponential.ucb_divergence(config, run, arm, lam, f)


@inlined
def alternative(
    config: RunConfig, table: EdgeTable, run: RunState, w: Vector, slack: Vector, lam: Vector
) -> None:
    """Write the closest alternative at w over all edges of the vertex into lam."""
    if config.closed_form or config.learns_variance:
        gaussian.alternative(config, table, run, w, slack, lam)
    else:
        exponential.alternative(config, table, run, w, lam)
