"""Exploration within limits and with costs: samples, tails, excess, money saved, time per step.

    python benchmarks/limits.py FOLDER [--runs N] [--minutes M] [--workers W] [--base SRC]
                                       [--only PART]

Writes benchmarks/limits.md from the parts in FOLDER, and makes those that are missing (or PART
alone; the page's other sections stay as they are); instances and random tight problems go on where
they were, for M minutes, in W processes. SRC is the source folder of an older version to compare
the time per step with. Seeds were not used while anything was chosen.
"""

# ruff: noqa: E402 - threads must be limited before numpy is imported

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

SRC = str(Path(__file__).resolve().parent.parent / "src")
# The process that times an older version has that one on its path.
sys.path.insert(0, os.environ.get("TIMED_SRC", SRC))

import numpy as np

import simplexplore as sx

OUT = Path(__file__).with_suffix(".md")
SEED = 20261116
EXCESS_RUNS = 5
Rows = list[dict[str, Any]]


# What was measured once, beside code that is no more.
FORMERLY = """\
Against the designs these samplers were made from, with other seeds and gk16: ctns is the same
(five arms with an equality, 5,000 runs: 2,579 ± 13 both; gaussian-2: 11,732 ± 40 and 11,736 ±
87), `top-two` takes up to 2% more (2,468 ± 13 and 2,419 ± 12; gaussian-2 10,003 ± 173 and 9,930 ±
77), the price of no long runs.
"""


def problem_of(name: str) -> Any:
    """An instance of the catalogue or of the tables below, anytime."""
    own = {
        # Two arms that limits hardly ever allow.
        "a": sx.Problem(4, ["40*a1 + 40*a2 + a3 <= 0.5"], means=[1.0, 0.9, 0.6, 0.3]),
        "a10": sx.Problem(4, ["10*a1 + 10*a2 + a3 <= 0.5"], means=[1.0, 0.9, 0.6, 0.3]),
        "equality": sx.Problem(
            list("abcde"),
            ["a + b <= 0.5", "c + d == 0.4", "a >= 0.1 + e"],
            means=[1.0, 0.5, 0.8, 0.3, 0.6],
        ),
        "doses": sx.Problem(
            4,
            ["0.01*a1 + 0.05*a2 + 0.12*a3 + 0.3*a4 <= 0.06"],
            sx.Bernoulli(),
            means=[0.3, 0.45, 0.6, 0.68],
            delta=0.05,
        ),
        "eleven arms, no limits": sx.Problem(11, means=np.linspace(1.0, 0.0, 11) ** 0.5),
    }
    if name in own:
        return own[name].replace(scenario="anytime")
    instance = sx.catalog.instance(name)
    return instance.problem.replace(means=instance.means, scenario="anytime")


INSTANCES = (
    *("triangle", "star", "eight-arms", "gaussian-1", "gaussian-2", "bernoulli-1", "movies"),
    *("a", "a10", "equality", "doses", "eleven arms, no limits"),
)


# ---------------------------------------------------------------------- samples and tails


def of_instance(number: int, runs: int) -> dict[str, Any]:
    """Samples until stopping of one row, and by how much limits were exceeded."""
    threshold = ("gk16", "tilt")[number // (2 * len(INSTANCES))]
    name = INSTANCES[number // 2 % len(INSTANCES)]
    sampler = ("ctns", "top-two")[number % 2]
    problem = problem_of(name)
    noise = sx.catalog.instance(name).noise if name == "movies" else None
    given = {"threshold": threshold, "runs": runs, "seed": SEED, "noise": noise, "workers": 1}
    found = sx.simulate(problem, None, sampler, **given)
    row = {"number": number, "instance": name, "threshold": threshold, "sampler": sampler}
    row |= {"runs": runs, **tails(found.stopping_times)}
    row["capped"], row["wrong"] = int(found.capped.sum()), int((~found.correct).sum())
    row["excess"] = largest_excess(problem, sampler, threshold, EXCESS_RUNS)
    row["proven"] = found.excess_bound
    return row


def fill(
    file: Path, count: int, make: Callable[[int], dict[str, Any]], ends: float, workers: int
) -> None:
    """Make the rows that a file does not have, by so many processes, until the time is up."""
    lines = file.read_text().splitlines() if file.exists() else []
    done = {json.loads(line)["number"] for line in lines}
    left = (number for number in range(count) if number not in done)
    with file.open("a") as target, ProcessPoolExecutor(workers) as pool:
        waiting: set[Future[dict[str, Any]]] = set()
        while True:
            while len(waiting) < 2 * workers and time.time() < ends:
                number = next(left, None)
                if number is None:
                    break
                waiting.add(pool.submit(make, number))
            if not waiting:
                return
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                target.write(json.dumps(future.result()) + "\n")
            target.flush()


def tails(times: Any) -> dict[str, float]:
    """Mean with its error, the 95% quantile, and the longest run against the median."""
    return {
        "mean": float(times.mean()),
        "error": float(times.std(ddof=1) / len(times) ** 0.5),
        "q95": float(np.quantile(times, 0.95)),
        "tail": float(times.max() / np.median(times)),
    }


def largest_excess(problem: Any, sampler: str, threshold: str, runs: int) -> float:
    """Pulls by which a limit was ever exceeded, in whole runs, of the arm that uses it most."""
    rows = problem.limits_on_samples(problem.scenario)
    matrix = np.array([row.coefficients for row in rows]).reshape(len(rows), problem.size)
    scale = np.abs(matrix).max(axis=1, initial=0.0)
    upper = np.array([row.upper for row in rows])
    lower = np.array([row.lower for row in rows])
    rng, most = np.random.default_rng(SEED), 0.0
    for run in range(runs if len(rows) else 0):
        explorer = sx.Explorer(problem, sampler, threshold=threshold, seed=SEED + run)
        while (arm := explorer.ask()) is not None and explorer.pulls < 20_000:
            mean = problem.means[problem.arms.index(arm)]
            coin = isinstance(problem.rewards, sx.Bernoulli)
            explorer.tell(arm, float(rng.random() < mean) if coin else rng.normal(mean))
            used, pulls = matrix @ explorer.counts, explorer.pulls
            above = np.maximum(used - pulls * upper, pulls * lower - used) / scale
            most = max(most, float(above.max()))
    return most if most > 1e-6 else 0.0


# ---------------------------------------------------------------------- random tight problems


def tight_problem(number: int) -> Any:
    """A random problem whose limits leave some arms next to no samples; not a very long one."""
    rng = np.random.default_rng([SEED, number])
    while True:
        size, count = int(rng.integers(3, 11)), int(rng.integers(1, 4))
        coefficients = rng.random((count, size)) * 10 ** rng.uniform(0, 1.6, (count, size))
        coefficients *= rng.random((count, size)) < 0.7
        # Some arm alone keeps all limits, as a placebo does.
        limits = rng.uniform(0.3, 1.0, count)
        coefficients[:, int(rng.integers(size))] = 0.0
        if not coefficients.any(axis=1).all():
            continue
        problem = sx.Problem(
            size,
            (coefficients, limits),
            sx.Gaussian(1.0),
            means=rng.uniform(0, 2, size),
            delta=0.1,
            scenario="anytime",
        )
        bound = sx.lower_bound(problem)
        if not bound.ties and bound.edges and 20 < bound.samples < 3000:
            return problem


def of_tight_problem(number: int) -> dict[str, Any]:
    """200 runs of a random problem."""
    problem = tight_problem(number)
    given = {"runs": 200, "seed": SEED + number, "max_steps": 2_000_000, "workers": 1}
    found = sx.simulate(problem, threshold="gk16", **given)
    row = {"number": number, "arms": problem.size, **tails(found.stopping_times)}
    row["capped"] = int(found.capped.sum())
    return row


# ---------------------------------------------------------------------- money


COSTLY: dict[str, list[float]] = {
    "triangle": [1, 2, 1, 4, 1],
    "eight-arms": [5, 5, 1, 1, 1, 1, 1, 1],
    "gaussian-1": [1, 1, 8, 1, 1, 1, 1],
    "star": [1, 1, 1, 1, 10],
}


def money(runs: int) -> Rows:
    """What runs cost that mind costs and that do not, and what was to be expected."""
    rows = []
    for name, costs in COSTLY.items():
        for scenario in ("end-of-time", "anytime"):
            blind = problem_of(name).replace(scenario=scenario, delta=0.01)
            aware = blind.replace(costs=costs)
            bound = sx.lower_bound(aware)
            for sampler in ("top-two", "ctns"):
                row: dict[str, Any] = {"instance": name, "scenario": scenario, "sampler": sampler}
                row |= {"runs": runs, "bound": bound.cost}
                least = sx.lower_bound(blind)
                row["limit"] = 1 - bound.characteristic_time / bound.time_of(least.allocation)
                for what, problem in (("aware", aware), ("blind", blind)):
                    given = {"threshold": "gk16", "runs": runs, "seed": SEED}
                    found = sx.simulate(problem, None, sampler, **given)
                    spent = found.pulls @ np.array(costs)
                    row[what] = float(spent.mean())
                    row[f"{what} error"] = float(spent.std(ddof=1) / runs**0.5)
                    row[f"{what} samples"] = float(found.stopping_times.mean())
                rows.append(row)
                print(row, flush=True)
    return rows


# ---------------------------------------------------------------------- time


def per_step(problem: Any, few: int, many: int, runs: int) -> float:
    """CPU microseconds of a step after the first few; the machine may be busy with other work."""
    spent, made = [], []
    for steps, count in ((few, 1), (few, 1), (many, runs)):  # the first compiles
        began = time.process_time()
        given = {"threshold": "gk16", "delta": 1e-300, "runs": count, "workers": 1}
        found = sx.simulate(problem, sampler="top-two", seed=1, max_steps=steps, **given)
        spent.append(time.process_time() - began)
        made.append(int(found.stopping_times.sum()))
    return 1e6 * (spent[2] - spent[1]) / (made[2] - made[1])


def timed() -> dict[str, float]:
    """Microseconds a step of top-two within limits, of the version on the path."""
    names = ("triangle", "star", "eight-arms", "gaussian-1", "movies")
    return {name: per_step(problem_of(name), 2_000, 200_000, 10) for name in names}


def many_arms() -> dict[str, list[float]]:
    """The same with 1000 arms, each with a floor and a cap, and one row; and all policies known.

    By the engine itself: bounds, which `simulate` finds first, take longer than all steps.
    """
    # Not in a version before.
    from simplexplore.exploration.engine import Engine, streams  # noqa: PLC0415
    from simplexplore.exploration.plan import prepare  # noqa: PLC0415 - not in a version before

    size, found = 1000, {}
    group = " + ".join(f"a{i}" for i in range(1, 101))
    for cap in (0.4, 0.02):
        problem = sx.Problem(
            size,
            ["each >= 0.0002", f"each <= {cap}", f"{group} <= 0.3"],
            means=np.random.default_rng(SEED).uniform(0, 1, size),
            scenario="anytime",
        )
        given = (np.asarray(problem.means), np.ones(size), streams(1, range(1)))
        engine = Engine(prepare(problem, "top-two", "gk16", delta=1e-300))
        engine.compile()
        least: dict[tuple[int, bool], float] = {}
        for _ in range(5):
            for steps in (2_000, 7_000):
                one = engine.clone()
                for known in (False, True):
                    began = time.thread_time()
                    one.simulate(*given, steps)
                    spent = time.thread_time() - began
                    least[steps, known] = min(spent, least.get((steps, known), np.inf))
        found[f"caps of {cap:g}"] = [
            1e6 * (least[7_000, known] - least[2_000, known]) / 5_000 for known in (False, True)
        ]
    return found


def speed(base: str | None) -> dict[str, dict[str, float]]:
    """Times of both versions in processes of their own, by turns; the least of four."""
    found: dict[str, dict[str, float]] = {}
    for _ in range(4):
        for which, source in (("now", SRC), ("base", base)):
            if source is None:
                continue
            place = {"TIMED_SRC": source, "PYTHONPATH": source}
            made = subprocess.run(
                [sys.executable, __file__, ".", "--only", "timed"],
                env=os.environ | place,
                capture_output=True,
                text=True,
                check=True,
            )
            for name, value in json.loads(made.stdout.splitlines()[-1]).items():
                row = found.setdefault(name, {})
                row[which] = min(value, row.get(which, np.inf))
    return found


# ---------------------------------------------------------------------- the page


def cells(*given: object) -> str:
    return "| " + " | ".join(str(one) for one in given) + " |"


def page(folder: Path) -> Iterator[str]:
    """All that was measured, as Markdown; what FOLDER does not have stays as it is."""
    _, *sections = OUT.read_text().split("\n## ") if OUT.exists() else [""]
    before = dict(section.split("\n", 1) for section in sections)
    yield "# Exploration within limits and with costs\n"
    yield f"By `benchmarks/limits.py`, seed {SEED}; anytime unless it says otherwise.\n"
    for name, (title, write) in WRITERS.items():
        file = folder / name
        if file.exists():
            text = file.read_text()
            if name.endswith("l"):  # processes end in any order
                rows = [json.loads(line) for line in text.splitlines()]
                found = sorted(rows, key=lambda row: row["number"])
            else:
                found = json.loads(text)
            yield f"## {title}\n"
            yield from write(found)
        elif title in before:
            yield f"## {title}\n{before[title]}"


def of_instances(rows: Rows) -> Iterator[str]:
    yield f"{rows[0]['runs']} runs. Largest excess over {EXCESS_RUNS} whole runs, in pulls of the"
    yield "arm that uses the limit most, beside the bound that is proven."
    yield f"{len(rows)} of {4 * len(INSTANCES)} rows were run.\n"
    heads = "instance|threshold|sampler|mean ± s.e.|95%|max/median|excess|proven"
    yield cells(*heads.split("|"))
    yield cells(*["---"] * 8)
    for r in rows:
        mean, proven = f"{r['mean']:,.0f} ± {r['error']:,.0f}", r["proven"]
        proven = "no limits" if proven is None else f"{proven:.2f}"
        numbers = (f"{r['q95']:,.0f}", f"{r['tail']:.1f}", f"{r['excess']:.2f}", proven)
        yield cells(r["instance"], r["threshold"], r["sampler"], mean, *numbers)
    capped, wrong = (sum(r[what] for r in rows) for what in ("capped", "wrong"))
    yield f"\n{capped} runs were capped; {wrong} of {sum(r['runs'] for r in rows):,} were wrong.\n"
    yield FORMERLY


def of_tight(rows: Rows) -> Iterator[str]:
    tails = np.array([r["tail"] for r in rows])
    yield f"{len(rows):,} of 2,000 problems were run, `top-two` with `gk16`, 200 runs each: 3 to 10"
    yield "arms, 1 to 3 limits with coefficients from 0 to 40, one arm that uses none.\n"
    yield f"- capped runs: {sum(r['capped'] for r in rows)}"
    yield f"- longest run against the median: at most {tails.max():.1f}; above 10 in"
    yield f"  {int((tails > 10).sum())} of them ({', '.join(_longest(rows)) or 'none'})"
    quantiles = np.quantile(tails, [0.5, 0.95, 0.99])
    yield "- median, 95% and 99% of that ratio: " + ", ".join(f"{x:.1f}" for x in quantiles) + "\n"


def _longest(rows: Rows) -> list[str]:
    long = sorted((r for r in rows if r["tail"] > 10), key=lambda r: -r["tail"])
    return [f"number {r['number']}: {r['tail']:.1f}" for r in long[:10]]


def of_money(rows: Rows) -> Iterator[str]:
    yield "`gk16`, delta 0.01. *Limit*: saved as delta tends to 0. ± is the standard error.\n"
    heads = "instance|scenario|sampler|runs|cost, minded|not minded|saved|limit|samples"
    yield cells(*heads.split("|"))
    yield cells(*["---"] * 9)
    for r in rows:
        saved = 1 - r["aware"] / r["blind"]
        error = (1 - saved) * np.hypot(r["aware error"] / r["aware"], r["blind error"] / r["blind"])
        yield cells(
            r["instance"],
            r["scenario"],
            r["sampler"],
            r["runs"],
            f"{r['aware']:,.0f} ± {r['aware error']:,.0f}",
            f"{r['blind']:,.0f} ± {r['blind error']:,.0f}",
            f"{100 * saved:.1f} ± {100 * error:.1f}%",
            f"{100 * r['limit']:.1f}%",
            f"{r['aware samples']:,.0f}, {r['blind samples']:,.0f}",
        )
    yield ""


def of_speed(found: dict[str, dict[str, float]]) -> Iterator[str]:
    yield "CPU time, `top-two`, anytime, 10 runs of up to 200,000 steps, least of four;"
    yield "base: commit fcdaefe, the version before limits were kept pull by pull.\n"
    yield cells("instance", "base", "now", "now / base")
    yield cells(*["---"] * 4)
    for name, r in found.items():
        base = r.get("base", np.nan)
        yield cells(name, f"{base:.2f}", f"{r['now']:.2f}", f"{r['now'] / base:.2f}")
    yield ""


def of_many_arms(found: dict[str, list[float]]) -> Iterator[str]:
    yield "1,000 arms, each with a floor and a cap, and one row, steps 2,000 to 7,000, least of"
    yield "five; policies met for the first time included, whose edges take Python about 1 ms each:"
    each = (f"{name}: {a:.0f} us ({b:.0f} if all are known)" for name, (a, b) in found.items())
    yield "; ".join(each) + ".\n"


WRITERS: dict[str, tuple[str, Callable[[Any], Iterator[str]]]] = {
    "instances.jsonl": ("Samples, tails and excess", of_instances),
    "tight.jsonl": ("Random tight problems", of_tight),
    "money.json": ("Cost saved against sampling that does not mind costs", of_money),
    "speed.json": ("Microseconds a step", of_speed),
    "many_arms.json": ("Microseconds a step with many arms", of_many_arms),
}


def main() -> None:
    """Make what is missing, then the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--base")
    parser.add_argument("--only")
    given = parser.parse_args()
    if given.only == "timed":
        print(json.dumps(timed()))
        return
    given.folder.mkdir(exist_ok=True)
    parts: dict[str, Callable[[], object]] = {
        "speed": lambda: speed(given.base),
        "many_arms": many_arms,
        "money": lambda: money(4 * given.runs),
    }
    for name, make in parts.items():
        file = given.folder / f"{name}.json"
        if given.only in (None, name) and not file.exists():
            file.write_text(json.dumps(make()))
    ends = time.time() + 60 * given.minutes
    if given.only in (None, "instances"):
        make = partial(of_instance, runs=given.runs)
        file = given.folder / "instances.jsonl"
        fill(file, 4 * len(INSTANCES), make, ends, given.workers)
    if given.only in (None, "tight"):
        fill(given.folder / "tight.jsonl", 2000, of_tight_problem, ends, given.workers)
    OUT.write_text("\n".join(page(given.folder)))


if __name__ == "__main__":
    main()
