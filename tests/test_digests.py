"""A share of the cases of `benchmarks/digests.py`, against pinned values.

    python tests/test_digests.py

pins them anew, into tests/data/digests.json, after a change that is meant to change them. Machines
differ in the last bits of a logarithm: of eight simulated runs one may differ, and numbers of
bounds and studies by 1e-8, relatively.
"""

import itertools
import json
from pathlib import Path

import pytest

import digest_bounds
import digest_runs
import digest_studies
from digest_values import differences, value_of

PINNED = Path(__file__).parent / "data" / "digests.json"
TOLERANCE = 1e-8
INSTANCES = ("star", "bernoulli-2", "meal-b")


def cases():
    """By name: cases that are quick, and share machine code with many tests."""
    names = {
        digest_runs.catalogue: [
            f"{name}, {sampler}, {scenario}, {threshold}"
            for name, scenario, (sampler, threshold) in itertools.product(
                INSTANCES, digest_runs.SCENARIOS, (("top-two", "tilt"), ("ctns", "gk16"))
            )
        ],
        digest_runs.settings: [
            "regret 0.1, top-two, anytime",
            "costs, top-two, end-of-time",
            "an equality, uniform, anytime",
            "budget 40, uniform, end-of-time",
            "traffic.toml, top-two",
            "trial.toml, top-two",
        ],
        digest_runs.families: [
            f"{family}, top-two, end-of-time, tilt" for family in digest_runs.FAMILIES
        ],
        digest_runs.explorers: ["star, top-two", "star, ctns", "meal, uniform", "poisson"],
        digest_bounds.bounds: [
            *INSTANCES,
            *("meal.toml", "trial.toml", "laboratory.toml", "traffic.toml"),
            *(f"family {family}" for family in ("own sigmas", "bernoulli", "poisson", "bounded")),
            *("costs", "budget", "exploration", "ties", "degenerate", "redundant", "one arm"),
        ],
        digest_studies.studies: [
            f"sqlite, {script}, bernoulli" for script in ("elsewhere", "switched", "refused")
        ],
    }
    for group, wanted in names.items():
        missing = set(wanted)
        for name, case in group():  # a case can be run until the next one is asked for
            if name in missing:
                missing.remove(name)
                yield f"{group.__name__}: {name}", case
        assert not missing


@pytest.fixture(scope="module")
def pinned():
    return json.loads(PINNED.read_text(encoding="utf-8"))


def runs_that_differ(one, other):
    """Numbers of the runs whose samples or answers differ."""
    pairs = (zip(one[what], other[what], strict=True) for what in other)
    return {i for each in pairs for i, (a, b) in enumerate(each) if a != b}


def test_cases_are_as_pinned(pinned):
    found = {name: value_of(case) for name, case in cases()}
    assert found.keys() == pinned.keys()
    different = {}
    for name, value in found.items():
        if "pulls" in value:
            runs = runs_that_differ(value, pinned[name])
            trouble = runs if len(runs) > 1 else None
        else:
            trouble = list(differences(pinned[name], value, TOLERANCE))
        if trouble:
            different[name] = trouble
    assert not different


if __name__ == "__main__":
    lines = [
        f"{json.dumps(name)}: {json.dumps(value_of(case), separators=(',', ':'))}"
        for name, case in cases()
    ]
    PINNED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
