"""How often what is said with a probability is wrong: ``python benchmarks/rates.py --help``.

What `error_rates.py`, `small_deltas.py` and `crossings.py` do not measure, where a claim is tested
hardest: means that are as good as equal.

1. `p_best`, `p_pays` of 30 arms, looked at every `LOOK` samples: runs in which the best policy is
   ever shown as a neighbour with p_best <= alpha, and runs in which a move that pays is ever shown
   with p_pays <= alpha; beside them runs in which e^-log_evidence of such a move is, of which
   nothing is claimed.
2. A delta chosen later: at each look somebody may announce the answer with what could be promised
   then, 1 - confidence, and waits for luck: until 1 - confidence, once it was 0.5 or less, has
   doubled again. E[1{wrong}/delta'] <= 1.
3. Answers that are taken back: after an answer a coin strikes out half of the rewards, whatever
   they are, twice at most. Any answer wrong: at most (1 + r) delta for r strikes.
4. Reward and measurement of a pull with the same noise: e-values of both, multiplied and averaged,
   at the truth: paths on which they ever reach 1/alpha.

Rewards are Gaussian with sigma 1. Writes a table to benchmarks/rates.md.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

import simplexplore as sx
from simplexplore.exploration.proportion import clopper_pearson

ALPHAS = (0.1, 0.05, 0.01)
LOOK = 25


def row(what: str, alpha: float | str, claim: str, count: int, runs: int) -> str:
    low, high = clopper_pearson(count, runs)
    return f"| {what} | {alpha} | {claim} | {count} of {runs:,} | {low:.2%} to {high:.2%} |"


def neighbours(runs: int, pulls: int, seed: int) -> Iterator[str]:
    """Thirty arms, the best one 0.01 ahead or all of them spread over 0.3."""
    for name, means in (
        ("all within 0.01", np.linspace(0.01, 0.0, 30)),
        ("from 0.3 to 0", np.linspace(0.3, 0.0, 30)),
    ):
        problem = sx.Problem(30, rewards=sx.Gaussian(1.0), delta=0.1)
        seen = {what: np.ones(runs) for what in ("p_best", "p_pays", "e^-log_evidence")}
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            explorer = sx.Explorer(problem, seed=run, threshold="tilt")
            order = rng.permutation(30)
            mu = means[order]
            best = f"a{int(mu.argmax()) + 1}"
            value = dict(zip(problem.arms, mu, strict=True))
            for t in range(pulls):
                arm = explorer.ask() or problem.arms[int(rng.integers(30))]
                explorer.tell(arm, float(rng.normal(value[arm])))
                if t < 30 or t % LOOK:
                    continue
                for edge in explorer.edges():
                    pays = sum(value[a] * x for a, x in edge["direction"].items()) > 0
                    if edge["neighbour"] == {best: 1.0}:
                        seen["p_best"][run] = min(seen["p_best"][run], edge["p_best"])
                    if pays:
                        bare = math.exp(-edge["log_evidence"])
                        seen["p_pays"][run] = min(seen["p_pays"][run], edge["p_pays"])
                        seen["e^-log_evidence"][run] = min(seen["e^-log_evidence"][run], bare)
        for what, least in seen.items():
            claim = "none" if what.startswith("e") else "at most alpha"
            for alpha in ALPHAS:
                hits = int((least <= alpha).sum())
                yield row(f"{what}, 30 arms {name}, {pulls:,} samples", alpha, claim, hits, runs)


def later(runs: int, pulls: int, seed: int) -> Iterator[str]:
    """Three arms that are as good as equal; somebody waits for the luckiest delta."""
    problem = sx.Problem(3, rewards=sx.Gaussian(1.0), delta=1e-9)
    values = np.zeros(runs)
    announced = np.zeros(runs, dtype=bool)
    for run in range(runs):
        rng = np.random.default_rng([seed, 1, run])
        explorer = sx.Explorer(problem, seed=run, threshold="tilt")
        least = 1.0
        for t in range(pulls):
            arm = explorer.ask()
            explorer.tell(arm, float(rng.normal(1e-4 if arm == "a1" else 0.0)))
            if t < 10 or t % 5:
                continue
            p = 1.0 - explorer.confidence
            least = min(least, p)
            if least <= 0.5 and p >= 2 * least:
                announced[run] = True
                values[run] = (explorer.policy[0] != 1.0) / min(p, 1.0)
                break
    error = values.std(ddof=1) / math.sqrt(runs)
    yield (
        f"| a delta chosen later, 3 arms within 0.0001, {pulls:,} samples | chosen "
        f"| E[1{{wrong}}/delta'] <= 1 | {values.mean():.3f} ± {error:.3f} "
        f"({int(announced.sum())} of {runs:,} announced) | |"
    )


def struck(runs: int, pulls: int, seed: int) -> Iterator[str]:
    """Answers on all rewards, then on random halves of them."""
    delta = 0.3
    problem = sx.Problem(2, rewards=sx.Gaussian(1.0), delta=delta)
    wrong = np.zeros((runs, 3), dtype=bool)
    for run in range(runs):
        rng = np.random.default_rng([seed, 2, run])
        rewards = rng.normal(size=(pulls, 2)) + np.array([1e-4, 0.0])
        for r in range(3):
            kept = rewards if r == 0 else rewards[rng.random(pulls) < 0.5]
            explorer = sx.Explorer(problem, sampler="uniform", seed=run, threshold="tilt")
            used = np.zeros(2, dtype=int)
            while not explorer.stopped and used.max() < len(kept):
                arm = explorer.ask()
                a = problem.arms.index(arm)
                explorer.tell(arm, float(kept[used[a], a]))
                used[a] += 1
            wrong[run, r] = explorer.stopped and explorer.policy[0] != 1.0
    for r in range(3):
        hits = int(wrong[:, : r + 1].any(axis=1).sum())
        what = (
            f"any answer wrong after {r} rounds of strikes, two arms within 0.0001, {pulls:,} pulls"
        )
        yield row(what, delta, f"at most {(1 + r) * delta:g}", hits, runs)


def correlated(runs: int, pulls: int, seed: int) -> Iterator[str]:
    """The mixtures of docs/theory/measured_stopping.md at the truth, of one arm."""
    shifts = 2.0 / 3.0 ** np.arange(6)
    n = np.arange(1, pulls + 1)
    most: dict[tuple[float, str], list[float]] = {}
    for rho in (1.0, 0.5, 0.0):
        for run in range(runs):
            rng = np.random.default_rng([seed, 3, run])
            first, second = rng.normal(size=(2, pulls))
            both = first, rho * first + math.sqrt(1 - rho**2) * second
            parts = []
            for noise in both:
                y = noise.cumsum() / n
                s = 1 + n * (0.7 * shifts[:, None]) ** 2
                logs = n * y * y / 2 - n * (y - shifts[:, None]) ** 2 / (2 * s) - np.log(s) / 2
                mixed = logsumexp(logs, axis=0) - math.log(6)
                parts.append(np.logaddexp(math.log(0.1), math.log(0.9) + mixed))
            for how, value in (
                ("multiplied", parts[0] + parts[1]),
                ("averaged", np.logaddexp(*parts) - math.log(2)),
            ):
                most.setdefault((rho, how), []).append(float(value.max()))
    for (rho, how), found in most.items():
        for alpha in (0.1, 0.01, 0.001):
            hits = sum(value >= -math.log(alpha) for value in found)
            claim = "at most alpha" if how == "averaged" or rho == 0.0 else "none"
            what = f"reward and measurement with correlation {rho:g}, {how}, {pulls:,} pulls"
            yield row(what, alpha, claim, hits, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--runs", type=int, default=200, help="of each row; ten times as many of 4."
    )
    parser.add_argument("--pulls", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    began = time.process_time()
    how = f"--runs {given.runs} --pulls {given.pulls} --seed {given.seed}"
    lines = [
        "# How often what is said is wrong\n",
        f"    python benchmarks/rates.py {how}\n",
        "| what | alpha | claim | seen | 95% interval |\n|---|---|---|---|---|",
    ]
    for part in (
        correlated(10 * given.runs, given.pulls, given.seed),
        later(given.runs, given.pulls, given.seed),
        struck(given.runs, given.pulls // 2, given.seed),
        neighbours(given.runs, given.pulls, given.seed),
    ):
        for line in part:
            print(line, flush=True)
            lines.append(line)
            given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{time.process_time() - began:.0f} s")


if __name__ == "__main__":
    main()
