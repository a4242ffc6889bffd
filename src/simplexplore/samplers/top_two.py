"""Ours: the empirical best policy against its closest edge (docs/theory/tracking.md).

The challenger is the edge with the least evidence, plus a small logarithmic price on arms that
have hardly been tried; between its arms, samples go where they inform most. Two policies that
tie could keep each other busy for ever while a third is underrated, so now and then, about
sqrt(t) times in all for each arm, the arms are played in turn. Where exploration must satisfy
the constraints, information-directed shares have no meaning without the rows' prices: there
the target is the exact allocation within the set (ctns.py), solved for at every other step and
tracked with a short memory.
"""

from __future__ import annotations

import math

from simplexplore.kernels.information import respond
from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.records import PULLS, VERTEX, Memory, Run, Setting, Table

ARM_VECTORS = 0
EDGE_VECTORS = 0
TRACKING = {"end-of-time": "focused", "anytime": "averaged"}
WITHIN_CONSTRAINTS = "ctns.py"

# Of the prices 0, 1/4, 1/2, 0.7, 1 and the turns 0, 1/4, 1/2, 1 these were chosen on exp1, exp2,
# ptns8 and gauss 1 (6000 runs each): less of either leaves long tails on exp1, more costs samples.
PRICE = 0.5  # of a logarithm of pulls, beside evidence
TURNS = 0.5  # of the forced exploration that cumulative tracking uses


@kernel
def turns(setting: Setting, pulls: float) -> int:
    """Forced pulls due after so many in all."""
    size = float(setting.size)
    return int(TURNS * size * (math.sqrt(size * size + pulls) - size))


@kernel
def allocate(setting: Setting, table: Table, run: Run, memory: Memory) -> None:
    """Share the next sample among the challenger's arms by what each would tell."""
    for a in range(setting.size):
        run.w[a] = 0.0
    pulls = float(run.integers[PULLS])
    turn = turns(setting, pulls)
    if turn > turns(setting, pulls - 1.0):
        run.w[setting.first_arms[turn % setting.first_arms.size]] = 1.0
        return
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    challenger = first
    least = math.inf
    for edge in range(first, table.first_edge[vertex + 1]):
        rarest = math.inf
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            rarest = min(rarest, run.n[table.arm[k]])
        score = run.value[edge - first] + PRICE * math.log(rarest)
        if score < least:
            least = score
            challenger = edge
    base, end = table.first_entry[challenger], table.first_entry[challenger + 1]
    value = respond(setting, table, run, challenger, base, run.n)
    for k in range(base, end):
        a = table.arm[k]
        # Tied means tell nothing yet: share evenly.
        run.w[a] = run.n[a] * run.gradient[k - base] / value if value > 0.0 else 1.0 / (end - base)
