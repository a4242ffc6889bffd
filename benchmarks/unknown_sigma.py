"""Exploring with an unknown sigma: ``python benchmarks/unknown_sigma.py errors`` or as below.

`errors`: ties and near-ties, where a rule that promises too much errs most, with equal and unequal
deviations. `samples`: mean samples against a known sigma on the paper's instances. `speed`:
microseconds per step. `laws`: the same rewards given to `bounded` and to an unknown sigma, of laws
that are not Gaussian. A second argument is the number of runs. Run at low priority: it takes
minutes. Prints tables.
"""

import sys
import time
from collections.abc import Callable

import numpy as np

import simplexplore as sx
from simplexplore.problem.catalog import instance
from simplexplore.problem.families import Family, Gaussian
from simplexplore.problem.problem import Problem
from simplexplore.simulation.results import clopper_pearson

MEANS = {"tie": (0.5, 0.5, 0.5), "tie but for 0.01": (0.5, 0.49, 0.49), "far": (1.0, 0.5, 0.0)}
SIGMAS = {"equal": (1.0, 1.0, 1.0), "unequal": (0.4, 1.0, 2.0)}
MOST = 4000


def known_and_not(sigma: tuple[float, ...]) -> dict[str, Family]:
    """Families of the same rewards."""
    families = {"known": Gaussian(sigma), "each its own": Gaussian("unknown", sigma_guess=sigma)}
    if len(set(sigma)) == 1:
        families["one for all"] = Gaussian("unknown", equal_sigma=True, sigma_guess=sigma[0])
    return families


def errors(runs: int) -> None:
    """Whoever stops at a tie is wrong: no arm is the best."""
    print(f"{runs} runs each, top-two, tilt, at most {MOST} samples\n")
    print("| means | sigmas | sigma is | delta | wrong | upper 95% | not decided | mean samples |")
    print("|---|---|---|---|---|---|---|---|")
    for name, means in MEANS.items():
        for kind, sigma in SIGMAS.items():
            for what, rewards in known_and_not(sigma).items():
                for delta in (0.1, 0.3):
                    problem = sx.Problem(3, rewards=rewards, means=list(means), delta=delta)
                    results = sx.simulate(problem, runs=runs, seed=71, max_steps=MOST)
                    stopped = ~results.capped
                    wrong = int((stopped if name == "tie" else stopped & ~results.correct).sum())
                    print(
                        f"| {name} | {kind} | {what} | {delta} | {wrong} | "
                        f"{clopper_pearson(wrong, runs)[1]:.4f} | {int(results.capped.sum())} | "
                        f"{results.stopping_times.mean():.0f} |",
                        flush=True,
                    )


def paper() -> dict[str, Problem]:
    """The paper's instances, and one with deviations of its own."""
    star = instance("star").problem
    unequal = star.replace(rewards=Gaussian((1.0, 0.5, 2.0, 1.5, 0.7)))
    names = ("triangle", "star", "eight-arms")
    found = {name: instance(name).problem for name in names} | {"star, unequal": unequal}
    return {name: problem.replace(scenario="end-of-time") for name, problem in found.items()}


def samples(runs: int) -> None:
    """Mean samples, their standard errors, and wrong answers."""
    print("| instance | sigma is | delta | mean samples | wrong |\n|---|---|---|---|---|")
    for name, problem in paper().items():
        sigma = tuple(problem.rewards.sigmas(problem.size).tolist())
        for what, rewards in known_and_not(sigma).items():
            for delta in (0.1, 0.01):
                results = sx.simulate(
                    problem.replace(rewards=rewards), runs=runs, seed=72, delta=delta
                )
                times = results.stopping_times
                error = times.std() / runs**0.5
                wrong = int((~results.correct).sum())
                print(
                    f"| {name} | {what} | {delta} | {times.mean():.0f} ({error:.0f}) | {wrong} |",
                    flush=True,
                )


def speed(runs: int) -> None:
    """Of top-two, in one process, compiled before; the best of three."""
    print("| instance | sigma is | microseconds per step |\n|---|---|---|")
    for name, problem in paper().items():
        sigma = tuple(problem.rewards.sigmas(problem.size).tolist())
        for what, rewards in known_and_not(sigma).items():
            asked = problem.replace(rewards=rewards)
            sx.simulate(asked, runs=2, seed=0)
            took = []
            for _ in range(3):
                began = time.process_time()
                results = sx.simulate(asked, runs=runs, seed=73)
                took.append((time.process_time() - began) / results.stopping_times.sum())
            print(f"| {name} | {what} | {1e6 * min(took):.2f} |", flush=True)


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


def explored(rewards: Family, law: Law, means: tuple[float, float], runs: int) -> str:
    """Mean samples and wrong answers of a family over the same rewards as any other."""
    problem = sx.Problem(2, rewards=rewards, delta=0.1)
    counts, wrong, waiting = [], 0, 0
    for run in range(runs):
        rng = np.random.default_rng(1000 + run)
        drawn = [law(rng, mean, MOST) for mean in means]
        explorer = sx.Explorer(problem, seed=run)
        explorer._engine._program.compile("step")  # runs are short, and there are many
        explorer._engine._stopwatch.skip()
        taken = [0, 0]
        while (arm := explorer.ask()) is not None and max(taken) < MOST:
            a = problem.arms.index(arm)
            explorer.tell(arm, float(drawn[a][taken[a]]))
            taken[a] += 1
        counts.append(sum(taken))
        waiting += explorer.ask() is not None
        wrong += explorer.ask() is None and explorer.policy[0] < 0.5
    late = f", {waiting} not decided" if waiting else ""
    return f"{np.mean(counts):.0f}, {wrong} wrong{late}"


def laws(runs: int) -> None:
    """The same rewards, told as bounded and as Gaussian with an unknown sigma."""
    print(f"{runs} runs each, two arms, delta = 0.1, at most {MOST} samples an arm\n")
    print("| rewards | means | bounded | unknown sigma |\n|---|---|---|---|")
    for name, (law, means) in (LAWS | WITHOUT_LIMITS).items():
        row = [f"{means[0]:g}, {means[1]:g}"]
        row.append("-" if name in WITHOUT_LIMITS else explored(sx.Bounded(0, 1), law, means, runs))
        row.append(explored(Gaussian("unknown"), law, means, runs))
        print(f"| {name} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "errors"
    default = {"errors": 2000, "samples": 300, "speed": 200, "laws": 200}[what]
    globals()[what](int(sys.argv[2]) if len(sys.argv) > 2 else default)
