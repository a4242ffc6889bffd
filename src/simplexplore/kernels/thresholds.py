"""When the evidence is enough. Each function asks one edge; all must agree.

Heuristics use one level for all edges; the proven ones price each arm of the edge.
"""

from __future__ import annotations

import math

from .information import kk21_penalty, mixture_evidence
from .kernel import kernel
from .records import GO_ON, PULLS, STOPPED, VERTEX, Memory, Run, Setting, Table


@kernel
def every_edge(setting: Setting, table: Table, run: Run, memory: Memory, weakest: int) -> int:
    """Stop when every edge of the recommended vertex is ruled out, the weakest one first."""
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    if not setting.slots.reached(setting, table, run, first + weakest, run.value[weakest]):
        return GO_ON
    for edge in range(first, table.first_edge[vertex + 1]):
        if not setting.slots.reached(setting, table, run, edge, run.value[edge - first]):
            return GO_ON
    return STOPPED


@kernel
def all_spent(setting: Setting, table: Table, run: Run, memory: Memory, weakest: int) -> int:
    """Stop when there is no sample left, whatever the evidence."""
    return STOPPED if run.integers[PULLS] >= setting.budget else GO_ON


@kernel
def gk16(setting: Setting, table: Table, run: Run, edge: int, statistic: float) -> bool:
    """log((1 + log t) / delta): what the authors' code uses. Not proven."""
    return statistic >= math.log((1.0 + math.log(run.integers[PULLS])) / setting.delta)


@kernel
def paper(setting: Setting, table: Table, run: Run, edge: int, statistic: float) -> bool:
    """log((1 + log log t) / delta) as printed. Not proven; read as 0 while t <= e."""
    t = float(run.integers[PULLS])
    inner = math.log(math.log(t)) if t > math.e else 0.0
    return statistic >= math.log((1.0 + inner) / setting.delta)


@kernel
def kk21(setting: Setting, table: Table, run: Run, edge: int, statistic: float) -> bool:
    """Kaufmann & Koolen (2021), over the support of the edge. Proven."""
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    level = setting.levels[last - first]
    for k in range(first, last):
        level += kk21_penalty(setting, run.n[table.arm[k]])
    return statistic >= level


@kernel
def mixture(setting: Setting, table: Table, run: Run, edge: int, statistic: float) -> bool:
    """Conjugate mixtures over the support of the edge. Proven in docs/theory/stopping.md."""
    return mixture_evidence(setting, table, run, edge, statistic) >= setting.log_union
