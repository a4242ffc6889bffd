"""What it costs to be surer, or to accept a little loss: forecasts side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from simplexplore.bound.result import Bound
from simplexplore.errors import SettingError, SimplexploreError
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.problem import SCENARIOS, Problem, check_problem
from simplexplore.tabular import Row, Tabular

from .forecast import Forecast, forecast
from .lower_bound import lower_bound

# Error probabilities that stand beside the problem's own.
DELTAS = (0.1, 0.05, 0.01)

# Losses to accept, of which 0 is one; and edges that are looked at for them.
MAX_EPSILONS, MAX_EDGES = 5, 50

# Seconds of the processor after which no other forecast is begun.
SECONDS = 20.0

# Needs beyond these are absurd: there are ways out.
MAX_SAMPLES, MAX_WEEKS = 100_000, 52.0

# What takes more than this part of the need is no way out.
WORTHWHILE = 0.8

# Smaller losses are rounding.
ROUNDING = 1e-9

NOT_REACHED = "not reached in time"
NEVER = "never: no number of samples is enough"


@dataclass(frozen=True)
class TradeOffCell:
    """What to expect with one epsilon and delta.

    Attributes
    ----------
    epsilon, delta : float
    forecast : Forecast or None
        None where there is none; `note` says why.
    note : str
    """

    epsilon: float
    delta: float
    forecast: Forecast | None
    note: str = ""


@dataclass(frozen=True)
class WayOut:
    """One change of the question that takes far fewer samples.

    Attributes
    ----------
    kind : str
        What changes: "epsilon", an "arm" that is left out, or the "scenario" of the samples.
    what : str
        Name of the arm or scenario; empty for epsilon.
    value : float or None
        The new epsilon.
    before : float or None
        What that was.
    loss : float
        How much less the best mix earns then, if the means are as guessed.
    forecast : Forecast
    """

    kind: Literal["epsilon", "arm", "scenario"]
    what: str
    value: float | None
    before: float | None
    loss: float
    forecast: Forecast


@dataclass(frozen=True)
class TradeOff(Tabular):
    """What `trade_off` finds.

    Attributes
    ----------
    problem : Problem
    per_week : float or None
        Samples that can be taken in a week.
    cells : tuple of TradeOffCell
        By epsilon, then by delta.
    need : float or None
        Samples with the problem's own epsilon and delta: expected, or else the lower bound; None
        where that is not known either.
    ways_out : tuple of WayOut
        What takes far less, where the need is absurd.
    """

    problem: Problem
    per_week: float | None
    cells: tuple[TradeOffCell, ...]
    need: float | None
    ways_out: tuple[WayOut, ...]

    @property
    def is_absurd(self) -> bool:
        """Whether the need is more than 100,000 samples or a year."""
        return self.need is not None and _is_absurd(self.need, self.per_week)

    def weeks(self, samples: float) -> float | None:
        """How long so many samples take, if a pace is known."""
        return None if self.per_week is None else samples / self.per_week

    def rows(self) -> list[Row]:
        """One row per cell."""
        return [
            {
                "epsilon": cell.epsilon,
                "delta": cell.delta,
                **self._expected(cell.forecast),
                "note": cell.note,
            }
            for cell in self.cells
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python numbers under the names of the command's JSON output."""
        return {
            "per_week": self.per_week,
            "cells": self.rows(),
            "need": self.need,
            "is_absurd": self.is_absurd,
            "ways_out": [
                {name: value for name, value in vars(way).items() if name != "forecast"}
                | self._expected(way.forecast)
                for way in self.ways_out
            ],
        }

    def _expected(self, found: Forecast | None) -> dict[str, float | None]:
        columns = ["samples", "low", "high"]
        columns += ["cost"] * self.problem.has_costs + ["weeks"] * (self.per_week is not None)
        if found is None:
            return dict.fromkeys(columns)
        weeks = self.weeks(found.samples)
        return {name: weeks if name == "weeks" else getattr(found, name) for name in columns}


def trade_off(
    problem: Problem,
    means: npt.ArrayLike | None = None,
    *,
    epsilons: Sequence[float] | None = None,
    deltas: Sequence[float] | None = None,
    per_week: float | None = None,
    seconds: float = SECONDS,
) -> TradeOff:
    """What it costs to be surer, or to accept a little loss.

    Parameters
    ----------
    problem : Problem
        A budget or a goal of regret is left aside: runs end by evidence.
    means : sequence of float, optional
        The guessed mean of each arm; default: the problem's own guess.
    epsilons : sequence of float, optional
        Losses to accept. Default: the problem's own, 0, half of what the second-best mix loses, and
        what it and others of the best mixes lose, rounded up to two digits.
    deltas : sequence of float, optional
        Error probabilities; default: the problem's own, 0.1, 0.05 and 0.01.
    per_week : float, optional
        Samples that can be taken in a week: then it also says how many weeks.
    seconds : float
        Seconds of the processor after which no other forecast is begun; each takes about one at
        most. What is not reached says so.

    Returns
    -------
    TradeOff

    Raises
    ------
    SimplexploreError
        As `lower_bound` does.

    Examples
    --------
    >>> from simplexplore import Problem
    >>> found = trade_off(Problem(["a", "b"], means=[1, 0]), epsilons=[0, 0.5], deltas=[0.1])
    >>> strict, relaxed = (cell.forecast.samples for cell in found.cells)
    >>> strict > relaxed
    True
    """
    ends = time.thread_time() + seconds
    problem = check_problem(problem).replace(stop_when=None)
    if per_week is not None and not 0 < per_week < math.inf:
        raise SettingError(f"the samples per week must be a positive number; got {per_week:g}.")
    if problem.question:
        raise SettingError("a question besides the best mix has no epsilon to trade for delta.")
    own = lower_bound(problem, means)
    if epsilons is None:
        first = [] if problem.measured else [0.0]  # without a loss no run would end
        epsilons = [*first, problem.epsilon, *_losses(own)]
    if deltas is None:
        deltas = sorted({own.delta, *DELTAS}, reverse=True)
    deltas = list(dict.fromkeys(problem.replace(delta=delta).delta for delta in deltas))
    epsilons = sorted({problem.replace(epsilon=epsilon).epsilon for epsilon in epsilons})

    @cache
    def bound_with(epsilon: float) -> Bound:
        same = epsilon == problem.epsilon
        return own if same else lower_bound(problem, own.means, epsilon=epsilon)

    @cache
    def cell(epsilon: float, delta: float) -> TradeOffCell:
        if time.thread_time() >= ends:
            return TradeOffCell(epsilon, delta, None, NOT_REACHED)
        try:
            found = forecast(bound_with(epsilon), delta=delta)
        except SimplexploreError as error:
            return TradeOffCell(epsilon, delta, None, str(error))
        return TradeOffCell(epsilon, delta, found, NEVER if found is None else "")

    # What is asked for comes first, then other questions, then what is nearest to it in the table.
    asked = cell(problem.epsilon, own.delta).forecast
    need = asked.samples if asked else own.samples
    is_absurd, others = _is_absurd(need, per_week), []
    for kind, what, loss, bound, scenario in _other_questions(own) if is_absurd else ():
        with suppress(SimplexploreError):  # without a forecast it is no way out
            if time.thread_time() < ends and (found := forecast(bound, scenario)):
                others.append(WayOut(kind, what, None, None, loss, found))
    for at in sorted(product(epsilons, deltas), key=lambda at: at[1] != own.delta):
        cell(*at)
    cells = [cell(*at) for at in product(epsilons, deltas)]
    ways_out = [*_larger_losses(own, cells, per_week), *others]
    return TradeOff(
        problem=problem,
        per_week=per_week,
        cells=tuple(cells),
        need=None if math.isnan(need) else need,
        ways_out=tuple(
            way for way in ways_out if is_absurd and way.forecast.samples < WORTHWHILE * need
        ),
    )


def _is_absurd(samples: float, per_week: float | None) -> bool:
    return samples > MAX_SAMPLES or (per_week is not None and samples > MAX_WEEKS * per_week)


def _losses(bound: Bound) -> list[float]:
    """Losses to accept: by each a few more of the best mixes are good enough."""
    gaps = bound._edges.gaps(bound.means)
    nearest = np.argsort(gaps, kind="stable")[:MAX_EDGES].tolist()
    lost = (bound.value - float(bound.means @ bound.edges[e].neighbour) for e in nearest)
    losses = sorted(loss for loss in lost if loss > ROUNDING * max(1.0, abs(bound.value)))
    if not losses:
        return []
    steps = [losses[0] / 2]
    for loss in losses:
        if loss >= 2 * steps[-1]:
            steps.append(loss)
    while len(steps) < MAX_EPSILONS - 1:
        steps.append(2 * steps[-1])
    return [_rounded_up(loss) for loss in steps[: MAX_EPSILONS - 1]]


def _rounded_up(value: float) -> float:
    """To two digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.2g}")


# ---------------------------------------------------------------------- ways out


def _larger_losses(
    own: Bound, cells: Sequence[TradeOffCell], per_week: float | None
) -> list[WayOut]:
    """The least loss of the table that makes the need no longer absurd, or else the largest."""
    asked = own.problem.epsilon
    found = [
        WayOut("epsilon", "", cell.epsilon, asked, cell.epsilon - asked, cell.forecast)
        for cell in cells
        if cell.delta == own.delta and cell.epsilon > asked and cell.forecast
    ]
    enough = [way for way in found if not _is_absurd(way.forecast.samples, per_week)]
    return enough[:1] or found[-1:]


def _other_questions(
    own: Bound,
) -> Iterator[tuple[Literal["arm", "scenario"], str, float, Bound, str]]:
    """Kind, name, loss, bound and scenario of questions that may be much easier."""
    problem, scenario = own.problem, own.problem.scenario
    if scenario != SCENARIOS[0] and SCENARIOS[0] in own.scenarios:
        yield "scenario", SCENARIOS[0], 0.0, own, SCENARIOS[0]
    if problem.measured or not own.edges:
        return
    # The arm that the hardest comparison brings in, if possible one that the best mix does without.
    hardest = own.edges[int(np.argmin(own._edges.gaps(own.means)))]
    arm = int(np.argmax(hardest.direction * np.where(own.policy > 0, 1e-6, 1.0)))
    none = Constraint("left out", {arm: 1.0}, upper=0.0, size=problem.size)
    try:
        bound = lower_bound(problem.replace(constraints=(*problem.constraints, none)), own.means)
    except SimplexploreError:
        return
    yield "arm", problem.arms[arm], max(0.0, own.value - bound.value), bound, scenario
