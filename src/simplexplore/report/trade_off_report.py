"""What it costs to accept a little loss, as a document."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from simplexplore.exploration.forecast import Forecast
from simplexplore.exploration.trade_off import TradeOff, WayOut

from .document import Document, Note, Section
from .numbers import number, rough
from .table import Column, Field, Table


def trade_off_document(found: TradeOff) -> Document:
    """Samples, cost and weeks by epsilon and delta; where these are absurd, ways out."""
    by = "by the loss to accept (epsilon) and the risk of error (delta)"
    tables = [_table(found, f"Samples to expect, {by}", lambda x: x.samples)]
    if found.problem.has_costs:
        tables.append(_table(found, "What they cost", lambda x: x.cost))
    if (pace := found.per_week) is not None:
        heading = f"Weeks at {number(pace)} samples a week"
        tables.append(_table(found, heading, lambda x: x.samples / pace))
    notes = dict.fromkeys(cell.note for cell in found.cells if cell.note)
    tables[-1] += [
        Note("means of simulated runs of top-two and tilt, about a second for each"),
        *(Note(f"-: {note}") for note in notes),
    ]
    return [*tables, _ways_out(found)] if found.is_absurd else tables


def _table(found: TradeOff, heading: str, amount: Callable[[Forecast], float]) -> Section:
    """A row for each epsilon, a column for each delta."""
    cells = {(cell.epsilon, cell.delta): cell.forecast for cell in found.cells}

    def written(delta: float, epsilon: float) -> str:
        expected = cells[epsilon, delta]
        return "-" if expected is None else rough(amount(expected))

    deltas = dict.fromkeys(cell.delta for cell in found.cells)
    fields: list[Field[float]] = [
        (Column("epsilon"), number),
        *((Column(f"delta {delta:g}"), partial(written, delta)) for delta in deltas),
    ]
    return [Table.of(heading, fields, list(dict.fromkeys(x.epsilon for x in found.cells)))]


def _ways_out(found: TradeOff) -> Section:
    """What takes far fewer samples than what was asked for."""
    assert found.need is not None
    weeks = found.weeks(found.need)
    pace = f", {rough(weeks)} weeks" if weeks is not None else ""
    words = f"As asked it takes about {rough(found.need)} samples{pace}."
    if found.need == float("inf"):
        words = "As asked no number of samples is enough."
    if not found.ways_out:
        more = "Neither a loss in this table nor one arm changes much: ask less."
        return [f"{words} {more}"]
    ways = [f"- {_way_out(found, way)}" for way in found.ways_out]
    return [f"{words} Ways out, if the means are as guessed:", *ways]


def _way_out(found: TradeOff, way: WayOut) -> str:
    cost = f" at a cost of {rough(way.forecast.cost)}" if found.problem.has_costs else ""
    weeks = found.weeks(way.forecast.samples)
    pace = f", {rough(weeks)} weeks" if weeks is not None else ""
    match way.kind:
        case "epsilon":
            words = f"accept a mix within {number(way.value)} of the best (epsilon)"
        case "arm":
            lost = f"loses {number(way.loss)}" if way.loss > 0 else "loses nothing"
            words = f"leave out {way.what}, whose mixes are nearly as good as the best: it {lost}"
        case "scenario":
            words = f"let samples go beyond the limits (scenario {way.what})"
    return f"{words}: about {rough(way.forecast.samples)} samples{cost}{pace}."
