"""The list of mutants follows the code (benchmarks/mutants.py runs them)."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MUTANTS = tomllib.loads((ROOT / "benchmarks" / "mutants.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("area", MUTANTS)
def test_what_is_to_be_broken_stands_in_its_file_once(area):
    for mutant in MUTANTS[area]:
        text = (ROOT / "src" / "simplexplore" / mutant["file"]).read_text(encoding="utf-8")
        assert text.count(mutant["old"]) == 1, mutant
        named = [word for word in mutant["tests"].split() if word.endswith(".py")]
        assert named
        assert all((ROOT / name).exists() for name in named), mutant
