"""How often `health` raises an alarm: ``python benchmarks/health.py --help``.

Live studies of five kinds in a store of SQLite, with nothing wrong and with something wrong: pulls
are asked for 24 at a time, and a tenth of them is lost. Of each study its status at the end counts:
alarms stay. Alarms at another level are read off the e-values (but for outliers, which have none).

Writes two tables to benchmarks/health.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import simplexplore as sx
from simplexplore.exploration.proportion import clopper_pearson
from simplexplore.study.health import COMMON, DRIFT, MISSING, SPREAD

BATCH = 24
LOST = 0.1
WEIGHTS = {"drift": DRIFT + COMMON, "missing": MISSING, "spread": SPREAD}
LEVEL = 0.05  # the other one
TYPO = 200  # the reward that is one

Draw = Callable[[np.random.Generator, float], float]


class Kind(NamedTuple):
    """A kind of study with nothing wrong."""

    problem: sx.Problem
    means: tuple[float, ...]
    draw: Draw
    sampler: str = "top-two"


KINDS = {
    "gaussian": Kind(
        sx.Problem(5, rewards=sx.Gaussian(1.0)),
        (0.5, 0.375, 0.25, 0.125, 0.0),
        lambda rng, mean: rng.normal(mean),
    ),
    "gaussian, limits, ctns": Kind(
        sx.Problem(3, ["a1 <= 0.5"], sx.Gaussian([0.5, 1.0, 2.0])),
        (0.3, 0.2, 0.2),
        lambda rng, mean: rng.normal(mean, 0.5),
        "ctns",
    ),
    "bernoulli": Kind(
        sx.Problem(4, rewards=sx.Bernoulli()),
        (0.06, 0.05, 0.05, 0.02),
        lambda rng, mean: float(rng.random() < mean),
    ),
    "poisson": Kind(
        sx.Problem(3, rewards=sx.Poisson()), (3.0, 2.8, 2.0), lambda rng, mean: rng.poisson(mean)
    ),
    "bounded, uniform": Kind(
        sx.Problem(3, rewards=sx.Bounded(1.0, 5.0)),
        (3.2, 3.0, 2.5),
        lambda rng, mean: 1 + 4 * rng.beta(mean - 1, 5 - mean),
        "uniform",
    ),
}


class Wrong(NamedTuple):
    """Something wrong with a study of the first kind, from the middle on or all the time."""

    best: float = 0.0  # added to rewards of the best arm
    every: float = 0.0  # to those of all arms
    novelty: float = 0.0  # likewise, and wears off in 300 rewards
    sigma: float = 1.0
    lost: float = 1.0  # how often pulls of the best arm are lost, as a multiple
    typo: float = 0.0  # added to one reward
    is_late: bool = False  # whether it begins in the middle
    alone: str = "-"  # how often a prototype saw it

    def reward(self, t: float, arm: int, reward: float) -> float:
        """What comes of a reward; t is 1 in the middle of the study."""
        if self.is_late and t < 1:
            return reward
        added = self.every + self.best * (arm == 0) + self.novelty * float(np.exp(-t / 0.3))
        return self.sigma * reward + added


WRONG = {
    "best arm +0.5 from the middle": Wrong(best=0.5, is_late=True),
    "best arm -0.5 from the middle": Wrong(best=-0.5, is_late=True, alone="0.75"),
    "all arms -0.5 from the middle": Wrong(every=-0.5, is_late=True, alone="1.00"),
    "a novelty that wears off: + exp(-t/300)": Wrong(novelty=1.0, alone="1.00"),
    "sigma is 1.2": Wrong(sigma=1.2, alone="1.00"),
    "sigma is 1.5 from the middle": Wrong(sigma=1.5, is_late=True, alone="1.00"),
    "the best arm is lost 2 times as often": Wrong(lost=2.0, alone="1.00"),
    "the best arm is lost 3 times as often": Wrong(lost=3.0, alone="1.00"),
    "one reward 46 sigma off": Wrong(typo=46.0, alone="1.00"),
}


def health_of(kind: Kind, rewards: int, seed: int, wrong: Wrong, store: str) -> dict[str, dict]:
    """Of a study after so many rewards."""
    rng = np.random.default_rng([20, seed])
    study = sx.Study.create(
        store, f"s{time.monotonic_ns()}", kind.problem.replace(delta=1e-12), kind.sampler,
        expire_after=1e-3, seed=seed,
    )  # fmt: skip
    arms = kind.problem.arms
    t = 0
    while t < rewards and not study.stopped:
        told = []
        for pull in study.ask(BATCH):
            a = arms.index(pull.arm)
            if rng.random() >= LOST * (wrong.lost if a == 0 else 1.0):
                reward = kind.draw(rng, kind.means[a]) + wrong.typo * (t == TYPO)
                told.append((pull, wrong.reward(2 * t / rewards, a, float(reward))))
                t += 1
        study.tell_many(told)
    found = {check["check"]: check for check in study.replica.health()}
    study.close()
    return found


def alarms(found: dict[str, dict], level: float) -> set[str]:
    """Checks that raise one at a level."""
    if level == 0.001:
        return {name for name, check in found.items() if check["state"] == "alarm"}
    return {
        name
        for name, check in found.items()
        if check["e_value"] is not None and WEIGHTS[name] * check["e_value"] >= 1 / level
    }


def tables(studies: int, few: int, rewards: int, store: str) -> Iterator[str]:
    """Both tables, line by line."""
    yield f"## Nothing is wrong\n\n{studies} studies of each kind, {rewards:,} rewards each.\n"
    yield f"| kind | an alarm | at {LEVEL} |\n|---|---|---|"
    every, other = 0, 0
    for name, kind in KINDS.items():
        found = [health_of(kind, rewards, seed, Wrong(), store) for seed in range(studies)]
        some, more = (sum(bool(alarms(x, level)) for x in found) for level in (0.001, LEVEL))
        every, other = every + some, other + more
        yield f"| {name} | {some} of {studies} | {more} of {studies} |"
    runs = studies * len(KINDS)
    (_, most), (_, most_other) = clopper_pearson(every, runs), clopper_pearson(other, runs)
    yield (
        f"| all | {every} of {runs:,}, 95% limit {most:.2%} "
        f"| {other} of {runs:,}, {most_other:.2%} |"
    )
    yield (
        f"\n## Something is wrong\n\n{few} studies each, of the first kind, {2 * rewards:,} "
        "rewards: shares with an alarm. Alone: what a prototype found in 60 to 300 runs by the "
        "check that is for it, alone and at 0.001, with 2,000 rewards after the change.\n"
    )
    yield "| what | drift | missing | spread | outlier | alone |\n|---|---|---|---|---|---|"
    for name, wrong in WRONG.items():
        raised = [
            alarms(health_of(KINDS["gaussian"], 2 * rewards, seed, wrong, store), 0.001)
            for seed in range(few)
        ]
        shares = [
            f"{np.mean([check in one for one in raised]):.2f}"
            for check in ("drift", "missing", "spread", "outlier")
        ]
        yield f"| {name} | {' | '.join(shares)} | {wrong.alone} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=200, help="of each kind, nothing wrong")
    parser.add_argument("--few", type=int, default=20, help="of each thing that is wrong")
    parser.add_argument("--rewards", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    how = f"--studies {given.studies} --few {given.few} --rewards {given.rewards}"
    lines = ["# What the checks of a study find\n", f"    python benchmarks/health.py {how}\n"]
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/studies.db"
        for line in tables(given.studies, given.few, given.rewards, store):
            print(line, flush=True)
            lines.append(line)
            given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
