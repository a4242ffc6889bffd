"""Edges by the empirical means: what they lose, and how well that is known."""

from __future__ import annotations

from .kernel import inlined
from .records import EdgeTable, RunConfig, RunState, Vector


@inlined
def variance(config: RunConfig, run: RunState, arm: int) -> float:
    """The variance of an arm's rewards: known, or learned."""
    if config.closed_form:
        return config.variance[arm]
    if config.learns_variance:
        return run.variance[0, arm]
    return config.variance[arm]


@inlined
def gap_of(table: EdgeTable, run: RunState, edge: int) -> float:
    """What an edge loses for each unit of it."""
    gap = table.offset[edge]
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        gap += table.v[k] * run.clipped_mean[table.arm[k]]
    return gap


@inlined
def gap_and_spread(
    config: RunConfig, table: EdgeTable, run: RunState, edge: int, n: Vector
) -> tuple[float, float]:
    """The same, and its variance with so many samples."""
    gap = table.offset[edge]
    spread = 0.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        gap += table.v[k] * run.clipped_mean[a]
        spread += variance(config, run, a) * table.v[k] * table.v[k] / n[a]
    return gap, spread


@inlined
def is_pair(table: EdgeTable, edge: int) -> bool:
    """Whether an edge gives to one arm what it takes from another, and nothing else."""
    k = table.first_entry[edge]
    if table.first_entry[edge + 1] - k != 2 or table.offset[edge] != 0.0:
        return False
    return table.v[k] + table.v[k + 1] == 0.0
