"""Beyond the figures: what a promise costs, samples against delta by stopping rule."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from simplexplore.problem.catalog import instance, names
from simplexplore.problem.problem import Problem
from simplexplore.report.numbers import number, percent
from simplexplore.report.page import BLUE, GREEN, GREY, HEADING, INK, RED, SMALL, TEXT, Page
from simplexplore.simulation.results import clopper_pearson
from simplexplore.simulation.simulate import simulate

from .criteria import PROMISE, SEED, SURE
from .meal import frame
from .part import NOT_REPRODUCED, OPEN, OURS, REPRODUCED, Drawing, Evidence, Finding, Part, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELTAS = (0.3, 0.1, 0.01, 1e-3, 1e-4, 1e-6)
INSTANCES = names()
SAMPLER, RUNS = "top-two", 50

# A heuristic, and rules that are proven; with the colours and marks of their lines.
HEURISTIC, PROVEN = "gk16", ("kk21", "mixture", "tilt")
STYLES = {"gk16": (GREY, "v"), "kk21": (GREEN, "s"), "mixture": (BLUE, "D"), "tilt": (RED, "o")}

# Two arms that hardly differ: whoever stops is right half the time. So many runs for one above.
TIE_GAP, TIE_STEPS, TIE_DELTAS, TIE_RUNS = 1e-6, 10_000, (0.3, 0.1, 0.01), 40

COLUMNS, MARGIN, WIDTH, HEIGHT, GAP = 4, 0.3, 1.9, 1.5, 0.7


def _curve(name: str, threshold: str, runs: int, workers: int) -> list[dict[str, Any]]:
    """Mean samples of one rule on one instance, by delta."""
    found, rows = instance(name), []
    for delta in DELTAS:
        results = simulate(
            found.problem, sampler=SAMPLER, threshold=threshold, delta=delta, runs=runs, seed=SEED,
            noise=found.noise, workers=workers, scenario="end-of-time",
        )  # fmt: skip
        if results.runs < runs:
            raise KeyboardInterrupt  # simulate keeps what Ctrl-C left; that is not enough here
        times = results.stopping_times
        rows.append(
            {
                "delta": delta,
                "mean": float(times.mean()),
                "stderr": float(times.std(ddof=1) / np.sqrt(runs)) if runs > 1 else None,
                "wrong": int((~results.correct).sum()),
                "bound": results.lower_bound,
            }
        )
    return rows


def _tie(threshold: str, delta: float, runs: int, workers: int) -> dict[str, Any]:
    """How often a rule stops at the wrong one of two arms that hardly differ."""
    results = simulate(
        Problem(2), [TIE_GAP, 0.0], "uniform", threshold=threshold, delta=delta, runs=runs,
        seed=SEED, max_steps=TIE_STEPS, workers=workers,
    )  # fmt: skip
    if results.runs < runs:
        raise KeyboardInterrupt
    wrong = int((~results.correct & ~results.capped).sum())
    return {"delta": delta, "runs": runs, "wrong": wrong, "interval": clopper_pearson(wrong, runs)}


def _compute(workers: int, runs: int) -> dict[str, Any]:
    rules = (HEURISTIC, *PROVEN)
    return {
        "runs": runs,
        "curves": {
            name: {rule: _curve(name, rule, runs, workers) for rule in rules} for name in INSTANCES
        },
        "ties": {
            rule: [_tie(rule, delta, TIE_RUNS * runs, workers) for delta in TIE_DELTAS]
            for rule in rules
        },
    }


def _draw(evidence: Evidence) -> Figure:
    page = Page()
    curves = evidence.numbers["curves"]
    rows = -(-len(curves) // COLUMNS)
    left, top = MARGIN + 0.55, MARGIN + 2 * HEADING + 0.15
    tall = HEIGHT + HEADING + 0.15
    width = left + COLUMNS * (WIDTH + GAP) - GAP
    page.resize(width + MARGIN, top + rows * tall + 0.3)
    page.heading(
        MARGIN, MARGIN, "What a promise costs: samples until the best policy is known",
        f"means of {evidence.numbers['runs']} runs of {SAMPLER}, end-of-time, with 3 standard "
        "errors, against δ", width - MARGIN,
    )  # fmt: skip
    key = page.axes(MARGIN, MARGIN + HEADING, width - MARGIN, 0.22, "key")
    key.set_xlim(0, width - MARGIN)
    key.set_ylim(0, 1)
    key_names = {rule: f"{rule}, proven" if rule in PROVEN else rule for rule in STYLES}
    lines = [(name, *STYLES[rule], "-") for rule, name in key_names.items()]
    place = 0.15
    for words, colour, marker, line in [*lines, ("lower bound", INK, "", "--")]:
        key.plot([place - 0.13, place + 0.13], [0.5, 0.5], color=colour, linestyle=line)
        key.plot(place, 0.5, color=colour, marker=marker, markersize=4.5)
        key.text(place + 0.2, 0.5, words, size=SMALL, va="center_baseline", color=INK)
        place += page.width_of(words, SMALL) + 0.6
    for i, (name, by_rule) in enumerate(curves.items()):
        x = left + (i % COLUMNS) * (WIDTH + GAP)
        y = top + (i // COLUMNS) * tall
        page.write(x - 0.4, y - 0.19, name, size=TEXT, weight="bold")
        axes = page.axes(x, y, WIDTH, HEIGHT, name)
        frame(axes)
        axes.set_xscale("log")
        axes.invert_xaxis()
        for rule, rows_ in by_rule.items():
            colour, marker = STYLES[rule]
            axes.errorbar(
                [row["delta"] for row in rows_],
                [row["mean"] for row in rows_],
                [3 * (row["stderr"] or 0.0) for row in rows_],
                color=colour, marker=marker, markersize=3.5, linewidth=1.3,
            )  # fmt: skip
        bound = by_rule[HEURISTIC]
        axes.plot(
            [row["delta"] for row in bound], [row["bound"] for row in bound], color=INK,
            linestyle="--", linewidth=1.3,
        )  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        ticks = [delta for delta in DELTAS if delta in (0.1, 1e-3, 1e-6)] or list(DELTAS)
        axes.set_xticks(ticks, [_power(delta) for delta in ticks])
        axes.minorticks_off()
        if i + COLUMNS >= len(curves):
            axes.set_xlabel("δ", size=TEXT)
        if i % COLUMNS == 0:
            axes.set_ylabel("samples", size=TEXT)
    return page.figure


def _power(delta: float) -> str:
    return f"{delta:g}" if delta >= 1e-3 else f"{delta:.0e}".replace("e-0", "e-")


def _figures(evidence: Evidence) -> list[Drawing]:
    words = "Mean samples against delta by stopping rule, with the lower bound, on every instance"
    return [Drawing("promises", words, lambda: _draw(evidence))]


def _tables(evidence: Evidence) -> list[Table]:
    curves, ties = evidence.numbers["curves"], evidence.numbers["ties"]
    keys = ("delta", "mean", "stderr", "wrong", "bound")
    rows: list[list[object]] = [
        [name, rule, *(row[key] for key in keys)]
        for name, by_rule in curves.items()
        for rule, curve in by_rule.items()
        for row in curve
    ]
    shown = [
        [
            name,
            _power(delta),
            *(number(by_rule[rule][i]["mean"]) for rule in STYLES),
            f"{by_rule['tilt'][i]['mean'] / by_rule[HEURISTIC][i]['mean']:.2f}",
        ]
        for name, by_rule in curves.items()
        for i, delta in enumerate(DELTAS)
    ]
    ties_rows: list[list[object]] = [
        [rule, row["delta"], row["runs"], row["wrong"], *row["interval"]]
        for rule, found in ties.items()
        for row in found
    ]
    ties_shown = [
        [rule, *(f"{row['wrong']:,} of {row['runs']:,}" for row in found)]
        for rule, found in ties.items()
    ]
    return [
        Table(
            "promises", ("instance", "threshold", *keys), rows,
            ("instance", "δ", *STYLES, "tilt / gk16"), shown,
        ),
        Table(
            "ties", ("threshold", "delta", "runs", "wrong", "low", "high"), ties_rows,
            ("wrong of two arms that tie", *(f"δ = {delta:g}" for delta in TIE_DELTAS)), ties_shown,
        ),
    ]  # fmt: skip


def _findings(evidence: Evidence) -> list[Finding]:
    numbers = evidence.numbers
    return [
        _kept(numbers["ties"]),
        _fewest(numbers["curves"]),
        _price(numbers["curves"]),
        _falls(numbers["curves"]),
    ]


def _kept(ties: dict[str, Any]) -> Finding:
    proven = [row for rule in PROVEN for row in ties[rule]]
    verdict = OPEN
    if any(row["interval"][0] > row["delta"] for row in proven):
        verdict = NOT_REPRODUCED
    elif all(row["interval"][1] <= row["delta"] for row in proven):
        verdict = REPRODUCED
    said = "; ".join(
        f"{rule} {', '.join(str(row['wrong']) for row in found)} times"
        for rule, found in ties.items()
    )
    return Finding(
        "Under a tie the proven rules are wrong with probability at most δ.",
        verdict,
        f"Two arms that differ by {TIE_GAP:g}, {TIE_STEPS:,} samples, "
        f"{ties[HEURISTIC][0]['runs']:,} runs: stopped at the worse one with δ = "
        f"{', '.join(f'{delta:g}' for delta in TIE_DELTAS)}: {said}. {HEURISTIC} promises nothing, "
        "and errs more the longer it goes on.",
        OURS,
    )


def _fewest(curves: dict[str, Any]) -> Finding:
    """Whether tilt is the cheapest of the proven rules everywhere."""
    pairs = [
        (tilt, other)
        for by_rule in curves.values()
        for rule in PROVEN[:-1]
        for tilt, other in zip(by_rule["tilt"], by_rule[rule], strict=True)
    ]
    fewer = [
        tilt["mean"] <= other["mean"] + SURE * ((tilt["stderr"] or 0) + (other["stderr"] or 0))
        for tilt, other in pairs
    ]
    saved = {
        rule: [
            1 - tilt["mean"] / other["mean"]
            for by_rule in curves.values()
            for tilt, other in zip(by_rule["tilt"], by_rule[rule], strict=True)
        ]
        for rule in PROVEN[:-1]
    }
    said = " and ".join(
        f"{percent(min(found))} to {percent(max(found))} than {rule}"
        for rule, found in saved.items()
    )
    return Finding(
        "Of the proven rules tilt takes the fewest samples, on every instance and with every δ.",
        REPRODUCED if all(fewer) else NOT_REPRODUCED,
        f"Less by {said}; more than by chance in {sum(not one for one in fewer)} of {len(fewer)} "
        "comparisons.",
        OURS,
    )


def _prices(curves: dict[str, Any], delta: float) -> list[float]:
    """How many times the heuristic's samples tilt takes, by instance."""
    i = DELTAS.index(delta)
    rows = [(by_rule["tilt"][i], by_rule[HEURISTIC][i]) for by_rule in curves.values()]
    return [float(tilt["mean"] / heuristic["mean"]) for tilt, heuristic in rows]


def _price(curves: dict[str, Any]) -> Finding:
    low = [delta for delta in DELTAS if delta <= 0.1]
    prices = {delta: _prices(curves, delta) for delta in low}
    most = max(itertools.chain.from_iterable(prices.values()))
    said = "; ".join(f"δ = {_power(d)}: {min(p):.2f} to {max(p):.2f}" for d, p in prices.items())
    return Finding(
        f"With δ up to 0.1 a promise costs at most {PROMISE:g} times what the heuristic takes.",
        REPRODUCED if most <= PROMISE else NOT_REPRODUCED,
        f"tilt over {HEURISTIC}, {said}.",
        OURS,
    )


def _falls(curves: dict[str, Any]) -> Finding:
    first, last = (_prices(curves, delta) for delta in (DELTAS[0], DELTAS[-1]))
    falls = [b < a for a, b in zip(first, last, strict=True)]
    return Finding(
        "The smaller δ, the smaller the price of a promise.",
        REPRODUCED if all(falls) else NOT_REPRODUCED,
        f"tilt over {HEURISTIC} falls from δ = {_power(DELTAS[0])} to {_power(DELTAS[-1])} on "
        f"{sum(falls)} of {len(falls)} instances, on average from {np.mean(first):.2f} to "
        f"{np.mean(last):.2f}. The lower bound, T kl(δ, 1 - δ), is exact for δ → 0 only.",
        OURS,
    )


def promises() -> Part:
    """Samples against delta."""
    return Part(
        name="promises",
        title="What a promise costs",
        source="Not in the paper",
        note=f"The paper's threshold promises nothing. Ours: {SAMPLER}, end-of-time, {RUNS} runs "
        "unless asked otherwise, on every instance. kk21 is Kaufmann and Koolen's (2021), mixture "
        "and tilt are proven in our documentation.",
        compute=_compute,
        own_runs=RUNS,
        settings={
            "problems": {name: instance(name).problem.to_text() for name in INSTANCES},
            "deltas": DELTAS,
            "ties": [TIE_GAP, TIE_STEPS, TIE_DELTAS, TIE_RUNS],
            "sampler": SAMPLER,
            "thresholds": [HEURISTIC, *PROVEN],
            "seed": SEED,
        },
        figures=_figures,
        tables=_tables,
        findings=_findings,
    )
