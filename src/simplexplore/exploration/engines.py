"""Which engine explores a plan."""

from __future__ import annotations

from typing import TypeAlias

from .engine import Engine
from .measured_engine import MeasuredEngine
from .plan import Plan

# What simulation, `Explorer` and live studies drive; see `Engine`.
ExplorationEngine: TypeAlias = Engine | MeasuredEngine


def engine_of(plan: Plan) -> ExplorationEngine:
    """An engine for a plan."""
    return MeasuredEngine(plan) if plan.problem.measured else Engine(plan)
