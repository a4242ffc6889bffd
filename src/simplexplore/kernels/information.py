"""What depends on the family of rewards: in closed form where there is one, else by a root.

Which one is a field of the setting. It is fixed for a run, so native.py compiles one branch.
"""

from __future__ import annotations

from . import exponential, gaussian, student_statistic
from .kernel import inlined
from .records import Run, Setting, Table, Vector


@inlined
def draw(setting: Setting, run: Run, mean: float, noise: float) -> float:
    """One reward."""
    if setting.closed_form:
        return gaussian.draw(setting, run, mean, noise)
    if setting.learning:
        return gaussian.draw(setting, run, mean, noise)
    return exponential.draw(setting, run, mean, noise)


@inlined
def learn(setting: Setting, run: Run, arm: int, before: float, after: float) -> None:
    """Take in a reward's deviations from its arm's mean before and after it, where they matter."""
    if setting.closed_form:
        return
    if setting.learning:
        student_statistic.learn(setting, run, arm, before, after)


@inlined
def respond(setting: Setting, table: Table, run: Run, edge: int, base: int, w: Vector) -> float:
    """Closest alternative across an edge: D_e(w), and its gradient by the edge's arms.

    The gradient of entry k lies at run.gradient[k - base].
    """
    if setting.closed_form:
        return gaussian.respond(setting, table, run, edge, base, w)
    if setting.learning:
        return gaussian.respond(setting, table, run, edge, base, w)
    return exponential.respond(setting, table, run, edge, base, w)


@inlined
def statistic(setting: Setting, table: Table, run: Run, edge: int) -> float:
    """The statistic of an edge of any table."""
    if setting.closed_form:
        return gaussian.respond(setting, table, run, edge, table.first_entry[edge], run.n)
    if setting.learning:
        return student_statistic.statistic(setting, table, run, edge)
    return exponential.respond(setting, table, run, edge, table.first_entry[edge], run.n)


@inlined
def refresh(setting: Setting, table: Table, run: Run) -> None:
    """Recompute gaps and statistics of all edges of the vertex."""
    run.scale[0] = 0.0
    for a in range(setting.size):
        run.scale[0] = max(run.scale[0], abs(run.clipped[a]))
    if setting.closed_form:
        gaussian.refresh(setting, table, run)
    elif setting.learning:
        student_statistic.refresh(setting, table, run)
    else:
        exponential.refresh(setting, table, run)


@inlined
def touch(setting: Setting, table: Table, run: Run, arm: int, moved: float, slower: float) -> None:
    """Update the edges that contain an arm whose mean and number of pulls changed."""
    if setting.closed_form:
        gaussian.touch(setting, table, run, arm, moved, slower)
    elif setting.learning:
        student_statistic.touch(setting, table, run, arm)
    else:
        exponential.touch(setting, table, run, arm)


@inlined
def mixture_evidence(
    setting: Setting, table: Table, run: Run, edge: int, statistic: float
) -> float:
    """Log of the evidence of conjugate mixtures that an edge is no improvement."""
    if setting.closed_form:
        return gaussian.mixture_evidence(setting, table, run, edge)
    return exponential.mixture_evidence(setting, table, run, edge, statistic)


@inlined
def closest(setting: Setting, table: Table, run: Run, edge: int, lam: Vector) -> None:
    """Write the closest alternative across an edge into lam, by the edge's arms."""
    if setting.closed_form or setting.learning:
        gaussian.closest(setting, table, run, edge, lam)
    else:
        exponential.closest(setting, table, run, edge, run.n, lam)


@inlined
def kk21_penalty(setting: Setting, n: float) -> float:
    """Kaufmann & Koolen's price of an arm's samples."""
    return gaussian.kk21_penalty(n) if setting.closed_form else exponential.kk21_penalty(n)


@inlined
def optimistic(setting: Setting, run: Run, arm: int, lam: float, f: float) -> float:
    """Largest divergence from lam over means that an arm's samples cannot rule out (CGE's U)."""
    if setting.closed_form or setting.learning:
        return gaussian.optimistic(setting, run, arm, lam, f)
    return exponential.optimistic(setting, run.clipped[arm], run.n[arm], lam, arm, f)


@inlined
def alternative(
    setting: Setting, table: Table, run: Run, w: Vector, slack: Vector, lam: Vector
) -> None:
    """Write the closest alternative at w over all edges of the vertex into lam."""
    if setting.closed_form or setting.learning:
        gaussian.alternative(setting, table, run, w, slack, lam)
    else:
        exponential.alternative(setting, table, run, w, lam)
