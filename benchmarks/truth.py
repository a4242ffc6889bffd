"""No false word: evidence and bounds against 60-digit arithmetic, many times over.

    python benchmarks/truth.py [--states 10000] [--problems 5000] [--recomputed 500]
                               [--certificates 6000]

1. Random states of explorers (families, 2 to 8 arms, counts 1 to 1e6, starting multipliers from
   anywhere): the relative error of a statistic, above and below.
2. Random Bernoulli problems with rates between 1e-4 and 1: how many bounds are refused, the widest
   certificate, and, for some, whether the time recomputed at the reported allocation is inside.
3. Random comparisons by `tilt` (counts 1 to 1e6, coefficients from 1e-12, means at the ends of the
   range): that its certified evidence is nowhere above the value at a feasible point, by extended
   precision and fractions.

Exits with 1 if anything is refused or wrong. The tests run a small number of each.
"""

from __future__ import annotations

import argparse
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import certificates
import precise
from simplexplore.bound.bound import lower_bound
from simplexplore.errors import NotConvergedError
from simplexplore.problem.families import Bernoulli
from simplexplore.problem.problem import SCENARIOS, Problem
from simplexplore.problem.rational import rational
from test_evidence import check_states


def check_problems(count: int, recomputed: int, seed: int) -> tuple[int, float, int]:
    """Problems refused, widest certificate, times outside theirs."""
    rng = np.random.default_rng(seed)
    refused, widest, wrong = 0, 0.0, 0
    for i in range(count):
        size = int(rng.integers(2, 9))
        means = 10.0 ** rng.uniform(-4, 0, size)
        rows = () if size == 2 or rng.random() < 0.5 else (f"a1 + a{size} <= 0.6",)
        try:
            bound = lower_bound(Problem(size, rows, Bernoulli()), means)
        except NotConvergedError as error:
            print(f"refused: {means.tolist()} {rows}: {error}")
            refused += 1
            continue
        for scenario in SCENARIOS:
            found = bound.scenarios[scenario]
            widest = max(widest, found.relative_gap)
            if i < recomputed:
                exact = [rational(float(x)) for x in means]
                true = precise.time(bound, found.allocation.tolist(), exact)
                off = abs(Decimal(found.characteristic_time) / true - 1)
                wrong += off > Decimal(found.relative_gap)
    return refused, widest, wrong


def check_certificates(count: int, seed: int) -> bool:
    """Whether a certificate is above a value, by more than the value's own rounding."""
    wrong = False
    each = -(-count // len(certificates.FAMILIES))
    for family in certificates.FAMILIES:
        points, excess, whole, losses = certificates.check_certificates(family, each, seed)
        wrong |= excess > certificates.ROUNDING or whole > certificates.SLACK
        print(
            f"certificates, {family}: {each} states, {points} points, largest excess {excess:.1e}, "
            f"of the rule's evidence {whole:.1e} of it; tight to 1e-6 in "
            f"{np.mean(losses < 1e-6):.2%}, largest loss {losses.max(initial=0.0):.1e}"
        )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=10_000)
    parser.add_argument("--problems", type=int, default=5_000)
    parser.add_argument("--recomputed", type=int, default=500)
    parser.add_argument("--certificates", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    errors = check_states(given.states, given.seed) if given.states else {}
    for name, found in errors.items():
        over, under = sum(x > 1e-9 for x in found), sum(x < -1e-9 for x in found)
        worst = max(map(abs, found), default=0.0)
        print(
            f"evidence, {name}: {len(found)} states, largest error {worst:.1e}, "
            f"{over} overstated, {under} understated by more than 1e-9"
        )
    off = any(abs(x) > 1e-9 for found in errors.values() for x in found)
    refused, widest, wrong = check_problems(given.problems, given.recomputed, given.seed)
    print(f"{given.problems} bounds: {refused} refused, widest certificate {widest:.1e}")
    print(f"{given.recomputed} recomputed: {wrong} times outside their certificate")
    above = check_certificates(given.certificates, given.seed)
    return int(off or above or refused > 0 or wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
