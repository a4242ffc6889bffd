"""When the evidence is enough. Each function asks one edge; all must agree.

Heuristics use one level for all edges; the proven ones price each arm of the edge.
"""

from __future__ import annotations

import math

from .information import mixture_evidence
from .kernel import inlined, kernel
from .records import GO_ON, PULLS, STOPPED, VERTEX, EdgeTable, RunConfig, RunState, Scratch


@kernel
def every_edge(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, weakest: int
) -> int:
    """Stop when every edge of the recommended vertex is ruled out, the weakest one first."""
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    if not config.functions.reached(config, table, run, first + weakest, run.value[weakest]):
        return GO_ON
    for edge in range(first, table.first_edge[vertex + 1]):
        if not config.functions.reached(config, table, run, edge, run.value[edge - first]):
            return GO_ON
    return STOPPED


@kernel
def all_spent(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, weakest: int
) -> int:
    """Stop when there is no sample left, whatever the evidence."""
    return STOPPED if run.integers[PULLS] >= config.budget else GO_ON


@kernel
def gk16(config: RunConfig, table: EdgeTable, run: RunState, edge: int, statistic: float) -> bool:
    """log((1 + log t) / delta): what the authors' code uses. Not proven."""
    return statistic >= math.log((1.0 + math.log(run.integers[PULLS])) / config.delta)


@kernel
def paper(config: RunConfig, table: EdgeTable, run: RunState, edge: int, statistic: float) -> bool:
    """log((1 + log log t) / delta) as printed. Not proven; read as 0 while t <= e."""
    t = float(run.integers[PULLS])
    inner = math.log(math.log(t)) if t > math.e else 0.0
    return statistic >= math.log((1.0 + inner) / config.delta)


@inlined
def kk21_penalty(closed_form: bool, n: float) -> float:
    """Kaufmann & Koolen's price of an arm's samples: of Gaussian rewards, or of any family."""
    if closed_form:
        return 2.0 * math.log(4.0 + math.log(n))
    return 3.0 * math.log1p(math.log(n))


@kernel
def kk21(config: RunConfig, table: EdgeTable, run: RunState, edge: int, statistic: float) -> bool:
    """Kaufmann & Koolen (2021), over the support of the edge. Proven."""
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    level = config.levels[last - first]
    for k in range(first, last):
        level += kk21_penalty(config.closed_form, run.n[table.arm[k]])
    return statistic >= level


@kernel
def mixture(
    config: RunConfig, table: EdgeTable, run: RunState, edge: int, statistic: float
) -> bool:
    """Conjugate mixtures over the support of the edge. Proven in docs/theory/stopping.md."""
    return mixture_evidence(config, table, run, edge, statistic) >= config.log_union
