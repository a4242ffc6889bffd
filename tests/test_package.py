"""The package as a whole: public names, and what importing it costs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import simplexplore


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_public_name_can_be_had():
    for name in simplexplore.__all__:
        assert getattr(simplexplore, name) is not None
        assert name in dir(simplexplore)


def test_public_names_are_those_of_their_modules():
    from simplexplore.bound.bound import lower_bound
    from simplexplore.problem.problem import Problem

    assert simplexplore.Problem is Problem
    assert simplexplore.lower_bound is lower_bound


def test_no_test_file_needs_another():
    for file in Path(__file__).parent.glob("*.py"):
        assert not re.search(r"^\s*(from|import) test_", file.read_text(), re.MULTILINE), file


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'simplexplore' has no attribute 'Porblem'"):
        _ = simplexplore.Porblem


@pytest.mark.parametrize("statement", ["import simplexplore", "import simplexplore.cli.app"])
def test_import_is_light(statement):
    assert modules_after(statement).isdisjoint({"numpy", "scipy", "numba", "matplotlib", "rich"})


def test_a_bound_needs_no_pictures():
    statement = "import simplexplore as sx; sx.lower_bound(sx.Problem(2), [1.0, 0.0])"
    assert modules_after(statement).isdisjoint({"matplotlib", "typer", "rich"})
