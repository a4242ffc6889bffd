"""Runs of all kinds, to the last bit: as machine code, or as Python where that is asked for.

    python tests/both_ways.py OWN

OWN is a file for the sampler of one's own.
"""

import itertools
import json
import sys
from pathlib import Path

import numpy as np

import simplexplore as sx
from reference import sampled

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
MEANS = [0.9, 0.5, 0.4, 0.85, 0.7]
PLAIN = sx.Problem(5, {"front": "a1 + a2 <= 0.5", "back": "a3 + a4 <= 0.5"}, means=MEANS, delta=0.2)
FAMILIES = {
    "gaussian": sx.Gaussian(1.0),
    "bernoulli": sx.Bernoulli(),
    "unequal": sx.Gaussian((0.5, 1.0, 0.7, 1.3, 0.9)),
    "poisson": sx.Poisson(),
    "domain": sx.Gaussian(1.0, domain=(-1.0, 2.0)),
    "bounded": sx.Bounded(0.0, 1.0),
    "unknown": sx.Gaussian("unknown", sigma_guess=1.0),
}
DOSE = sx.Measured("dose", "<= 0.3", sigma=0.5, tolerance=0.2, means=[0.5, 0.2, 0.1, 0.3, 0.1])
UNSURE = sx.Measured(
    "dose", "<= 0.3", sigma="unknown", sigma_guess=0.3, tolerance=0.2, means=[0.1] * 5
)
POWERS = """
import math
from numba import njit

@njit
def allocate(config, table, run, scratch):
    total = 0.0
    for a in range(config.size):
        run.w[a] = 0.0
        if config.interior_allocation[a] > 0.0:
            run.w[a] = math.exp(run.mean[0, a]) ** 1.5
        total += run.w[a]
    for a in range(-config.size, 0):
        run.w[a] /= total
"""


def cases(own):
    """Name: a problem, and what is explored with; `own` is a file of a sampler."""
    for i, (sampler, scenario) in enumerate(
        itertools.product(sx.SAMPLERS, ("end-of-time", "anytime"))
    ):
        families = list(FAMILIES)
        for name in dict.fromkeys((families[i % 7], families[(3 * i + 1) % 7])):
            known = name != "unknown"
            problem = PLAIN.replace(rewards=FAMILIES[name], scenario=scenario)
            given = {"sampler": sampler, "threshold": "gk16" if known else "tilt"}
            yield f"{sampler}, {scenario}, {name}", problem, given
    for threshold, name in itertools.product(("paper", "kk21", "mixture", "tilt"), FAMILIES):
        if name != "unknown" and (threshold, name) != ("kk21", "bounded"):
            given = {"sampler": "top-two", "threshold": threshold}
            yield f"{threshold}, {name}", PLAIN.replace(rewards=FAMILIES[name]), given
    for name, changes in {
        "good enough": {"epsilon": 0.2},
        "good enough, unsure": {"epsilon": 0.2, "rewards": FAMILIES["unknown"]},
        "small regret": {"stop_when": {"regret": 0.2}},
        "costs": {"costs": [3.0, 1.0, 0.5, 8.0, 2.0]},
        "limits": {"exploration": ["each >= 0.05"], "scenario": "exploration"},
        "measured": {"epsilon": 0.3, "measured": [DOSE]},
        "measured, unsure": {"epsilon": 0.3, "measured": [UNSURE]},
    }.items():
        yield name, PLAIN.replace(**changes), {"sampler": "top-two"}
    coins = sx.Problem(3, ["a1 <= 0.5"], sx.Bernoulli(), means=MEANS[:3], epsilon=0.3)
    yield "good enough coins", coins, {"sampler": "top-two"}
    game = PLAIN.replace(epsilon=0.3, measured=[DOSE])
    yield "measured, by a game", game, {"sampler": "ctns"}
    budget = PLAIN.replace(stop_when={"budget": 40})
    yield "a budget", budget, {"sampler": str(EXAMPLES / "samplers" / "halving.py")}
    for name, file in {
        "weakest edge": EXAMPLES / "weakest_edge.py",
        "inside": HERE / "data" / "inside.py",
        "powers": Path(own),
    }.items():
        yield name, PLAIN, {"sampler": str(file), "threshold": "gk16"}
    noisy = PLAIN.replace(rewards=FAMILIES["bounded"])
    yield "noise", noisy, {"sampler": "top-two", "noise": 0.2}
    yield "own rule", PLAIN, {"sampler": "uniform", "threshold": str(EXAMPLES / "cautious.py")}


def told(problem, given, steps):
    """An explorer after some rewards, and the arms it asked for."""
    given = {key: value for key, value in given.items() if key != "noise"}
    explorer, rng, arms = sx.Explorer(problem, **given, seed=5), np.random.default_rng(5), []
    sigma = problem.rewards.sigmas(problem.size)
    while len(arms) < steps and (arm := explorer.ask()) is not None:
        a = problem.arms.index(arm)
        (reward,) = sampled(problem.rewards, rng, problem.means[a : a + 1], sigma[a : a + 1])
        measured = {row.name: row.means[a] + 0.1 * rng.normal() for row in problem.measured}
        explorer.tell(arm, float(reward), measured or None)
        arms.append(arm)
    return explorer, arms


def printed(problem, given):
    """All that runs come to."""
    # Python takes long to find roots.
    steps = 45 if problem.rewards.name == "gaussian" and problem.rewards.knows_sigma else 15
    steps = 18 if problem.measured else steps
    runs = sx.simulate(problem, runs=1, seed=3, max_steps=steps, workers=1, **given)
    found = [runs.pulls.tolist(), runs.stopping_times.tolist(), runs.correct.tolist()]
    if given["sampler"] != "oracle":
        explorer, arms = told(problem, given, steps)
        looks = explorer.means, explorer.counts, explorer.policy
        found += [arms, explorer.confidence, explorer.regret_bound, explorer.measured]
        found += [None if look is None else look.tolist() for look in looks]
        found.append([edge["log_evidence"] for edge in explorer.edges()])
    return repr(found)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(POWERS)
    made = {name: printed(problem, given) for name, problem, given in cases(sys.argv[1])}
    sys.stdout.write(json.dumps(made))
