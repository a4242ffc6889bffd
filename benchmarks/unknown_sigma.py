"""Exploring with an unknown sigma: ``python benchmarks/unknown_sigma.py TABLE``, one of these.

`errors`: ties and near-ties, where a rule that promises too much errs most, with equal and unequal
deviations. `samples`: mean samples against a known sigma on the paper's instances, and what
`forecast` says of them. `speed`: microseconds per step. `bound`: milliseconds of a bound.
`laws`: the same rewards given to `bounded` and to an unknown sigma, of laws that are not Gaussian.

``--runs`` and ``--workers`` say how many; results do not depend on the latter. ``--out FILE``
writes the table there, too. Run at low priority: it takes minutes.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import simplexplore as sx
from simplexplore.exploration.proportion import clopper_pearson
from simplexplore.problem.catalog import instance
from simplexplore.problem.families import Family, Gaussian
from simplexplore.problem.problem import Problem

MEANS = {"tie": (0.5, 0.5, 0.5), "tie but for 0.01": (0.5, 0.49, 0.49), "far": (1.0, 0.5, 0.0)}
SIGMAS = {"equal": (1.0, 1.0, 1.0), "unequal": (0.4, 1.0, 2.0)}
MOST = 4000


def known_and_not(sigma: tuple[float, ...]) -> dict[str, Family]:
    """Families of the same rewards."""
    return {"known": Gaussian(sigma), "unknown": Gaussian("unknown", sigma_guess=sigma)}


def errors(runs: int, workers: int) -> Iterator[str]:
    """Whoever stops at a tie is wrong: no arm is the best."""
    yield f"{runs} runs each, top-two, tilt, at most {MOST} samples\n"
    yield "| means | sigmas | sigma is | delta | wrong | upper 95% | not decided | mean samples |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, means in MEANS.items():
        for kind, sigma in SIGMAS.items():
            for what, rewards in known_and_not(sigma).items():
                for delta in (0.1, 0.3):
                    problem = sx.Problem(3, rewards=rewards, means=list(means), delta=delta)
                    results = sx.simulate(
                        problem, runs=runs, seed=71, max_steps=MOST, workers=workers
                    )
                    stopped = ~results.capped
                    wrong = int((stopped if name == "tie" else stopped & ~results.correct).sum())
                    yield (
                        f"| {name} | {kind} | {what} | {delta} | {wrong} | "
                        f"{clopper_pearson(wrong, runs)[1]:.4f} | {int(results.capped.sum())} | "
                        f"{results.stopping_times.mean():.0f} |"
                    )


def paper() -> dict[str, Problem]:
    """The paper's instances, and one with deviations of its own."""
    star = instance("star").problem
    unequal = star.replace(rewards=Gaussian((1.0, 0.5, 2.0, 1.5, 0.7)))
    names = ("triangle", "star", "eight-arms")
    found = {name: instance(name).problem for name in names} | {"star, unequal": unequal}
    return {name: problem.replace(scenario="end-of-time") for name, problem in found.items()}


def samples(runs: int, workers: int) -> Iterator[str]:
    """Mean samples, their standard errors, the estimate of them, and wrong answers."""
    yield "| instance | sigma is | delta | mean samples | expected | wrong |"
    yield "|---|---|---|---|---|---|"
    for name, problem in paper().items():
        sigma = tuple(problem.rewards.sigmas(problem.size).tolist())
        for what, rewards in known_and_not(sigma).items():
            for delta in (0.1, 0.01):
                asked = problem.replace(rewards=rewards, delta=delta)
                results = sx.simulate(asked, runs=runs, seed=72, workers=workers)
                times, expected = results.stopping_times, sx.forecast(sx.lower_bound(asked)).samples
                error = times.std() / runs**0.5
                wrong = int((~results.correct).sum())
                yield (
                    f"| {name} | {what} | {delta} | {times.mean():.0f} ({error:.0f}) | "
                    f"{expected:.0f} | {wrong} |"
                )


def speed(runs: int, _workers: int) -> Iterator[str]:
    """Of top-two, in one process, compiled before; the best of three."""
    yield "| instance | sigma is | microseconds per step |\n|---|---|---|"
    for name, problem in paper().items():
        sigma = tuple(problem.rewards.sigmas(problem.size).tolist())
        for what, rewards in known_and_not(sigma).items():
            asked = problem.replace(rewards=rewards)
            sx.simulate(asked, runs=2, seed=0, workers=1)
            took = []
            for _ in range(3):
                began = time.process_time()
                results = sx.simulate(asked, runs=runs, seed=73, workers=1)
                took.append((time.process_time() - began) / results.stopping_times.sum())
            yield f"| {name} | {what} | {1e6 * min(took):.2f} |"


def bound(runs: int, _workers: int) -> Iterator[str]:
    """Processor time of `lower_bound`, all scenarios: the best of so many."""
    kinds = ("known", "unknown")
    yield f"| instance | {' | '.join(kinds)} |\n|---|---|---|"
    for name in sx.catalog.names():
        problem = instance(name).problem
        if not isinstance(problem.rewards, Gaussian):
            continue
        families = known_and_not(tuple(problem.rewards.sigmas(problem.size).tolist()))
        row = []
        for kind in kinds:
            took = []
            for _ in range(runs):
                began = time.process_time()
                sx.lower_bound(problem.replace(rewards=families[kind]))
                took.append(time.process_time() - began)
            row.append(f"{1e3 * min(took):.0f}")
        yield f"| {name} | {' | '.join(row)} |"


# Laws of rewards in [0, 1] around a mean, and how far apart the two arms' means are.
Law = Callable[[np.random.Generator, float, int], np.ndarray]


def beta(strength: float) -> Law:
    """A Beta law; weaker is wider."""
    return lambda rng, mean, size: rng.beta(strength * mean, strength * (1 - mean), size)


def clipped(draw: Law) -> Law:
    """A law cut off at 0 and 1, shifted so that its mean is right."""

    def cut(rng: np.random.Generator, mean: float, size: int) -> np.ndarray:
        sample = np.clip(draw(np.random.default_rng(0), mean, 400_000), 0, 1)
        return np.clip(np.clip(draw(rng, mean, size), 0, 1) + mean - sample.mean(), 0, 1)

    return cut


def rare(rng: np.random.Generator, mean: float, size: int) -> np.ndarray:
    """The better arm pays 1 once in a while, the other one a little every time."""
    if mean > 0.025:
        return (rng.random(size) < mean).astype(float)
    return beta(400.0)(rng, mean, size)


LAWS: dict[str, tuple[Law, tuple[float, float]]] = {
    "0 or 1": (lambda rng, mean, size: (rng.random(size) < mean).astype(float), (0.6, 0.4)),
    "Beta, sd 0.25": (beta(3.0), (0.55, 0.45)),
    "Beta, sd 0.07": (beta(50.0), (0.52, 0.48)),
    "Beta, skewed": (beta(1.0), (0.15, 0.05)),
    "lognormal, clipped": (
        clipped(lambda rng, mean, size: mean * rng.lognormal(-0.5, 1.0, size)),
        (0.2, 0.14),
    ),
    "t with 2 degrees, clipped": (
        clipped(lambda rng, mean, size: mean + 0.03 * rng.standard_t(2, size)),
        (0.52, 0.48),
    ),
    "rare successes": (rare, (0.03, 0.02)),
}
WITHOUT_LIMITS: dict[str, tuple[Law, tuple[float, float]]] = {
    "normal": (lambda rng, mean, size: mean + rng.normal(size=size), (0.5, 0.0)),
    "t with 3 degrees": (lambda rng, mean, size: mean + rng.standard_t(3, size), (0.5, 0.0)),
    "lognormal": (lambda rng, mean, size: mean * rng.lognormal(-0.5, 1.0, size), (1.5, 1.0)),
}


FAMILIES = {"bounded": sx.Bounded(0, 1), "unknown sigma": Gaussian("unknown")}


def explored(task: tuple[str, str, int]) -> tuple[int, bool, bool]:
    """Samples of one run, whether it did not end, and whether it was wrong.

    A run's rewards do not depend on the family that they are told to.
    """
    name, family, run = task
    law, means = (LAWS | WITHOUT_LIMITS)[name]
    problem = sx.Problem(2, rewards=FAMILIES[family], delta=0.1)
    rng = np.random.default_rng(1000 + run)
    drawn = [law(rng, mean, MOST) for mean in means]
    explorer = sx.Explorer(problem, seed=run)
    taken = [0, 0]
    while (arm := explorer.ask()) is not None and max(taken) < MOST:
        a = problem.arms.index(arm)
        explorer.tell(arm, float(drawn[a][taken[a]]))
        taken[a] += 1
    waits = explorer.ask() is not None
    return sum(taken), waits, not waits and explorer.policy[0] < 0.5


def laws(runs: int, workers: int) -> Iterator[str]:
    """The same rewards, told as bounded and as Gaussian with an unknown sigma."""
    yield f"{runs} runs each, two arms, delta = 0.1, at most {MOST} samples an arm\n"
    yield "| rewards | means | bounded | unknown sigma |\n|---|---|---|---|"
    for family in FAMILIES:
        explored(("Beta, sd 0.07", family, 0))  # compiled before others want it
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for name, (_, means) in (LAWS | WITHOUT_LIMITS).items():
            row = [f"{means[0]:g}, {means[1]:g}"]
            for family in FAMILIES:
                if family == "bounded" and name in WITHOUT_LIMITS:
                    row.append("-")
                    continue
                tasks = [(name, family, run) for run in range(runs)]
                found = list(pool.map(explored, tasks, chunksize=max(1, runs // (8 * workers))))
                counts, waits, wrong = (np.array(column) for column in zip(*found, strict=True))
                text = f"{counts.mean():.0f}, {wrong.sum()} wrong"
                row.append(text + (f", {waits.sum()} not decided" if waits.any() else ""))
            yield f"| {name} | {' | '.join(row)} |"


RUNS = {errors: 2000, samples: 300, speed: 200, bound: 10, laws: 200}


def main() -> None:
    """Print a table, line by line as it is made."""
    tables = {table.__name__: table for table in RUNS}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", choices=tables)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    table = tables[options.table]
    lines = []
    for line in table(options.runs or RUNS[table], options.workers):
        print(line, flush=True)
        lines.append(line)
        if options.out:
            options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
