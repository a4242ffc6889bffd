"""What is finished is kept, and made anew when anything that it depends on changes."""

import subprocess
import sys
from pathlib import Path

import pytest

import simplexplore as sx
from simplexplore.reproduction import report
from simplexplore.simulation.cells import ROOMS, Cells, hash_of_rooms
from simulated import made_up


def test_a_changed_setting_is_a_new_cell(tmp_path):
    cells = Cells(tmp_path)
    made = []

    def make(value):
        return lambda: made.append(value) or {"value": value}

    assert cells.numbers("x", {"a": 1}, make(1)) == {"value": 1}
    assert cells.numbers("x", {"a": 1}, make(2)) == {"value": 1}
    assert cells.numbers("x", {"a": 2}, make(3)) == {"value": 3}
    assert made == [1, 3]
    assert cells.has("x", {"a": 2})
    assert not cells.has("x", {"a": 3})


def test_a_changed_program_is_a_new_cell(tmp_path, monkeypatch):
    cells = Cells(tmp_path)
    cells.numbers("x", {}, dict)
    monkeypatch.setattr("simplexplore.simulation.cells.program", lambda: "another")
    assert not cells.has("x", {})


def test_the_program_is_what_the_rooms_hold_whatever_files_are_called(tmp_path):
    package = Path(report.__file__).parent.parent
    for room in ROOMS:
        assert (package / room / "__init__.py").is_file()
        (tmp_path / room).mkdir()
    (tmp_path / "report").mkdir()
    solver = tmp_path / "bound" / "solver.py"
    solver.write_text("x = 1")
    before = hash_of_rooms(tmp_path)
    (tmp_path / "report" / "words.py").write_text("shown")
    assert hash_of_rooms(tmp_path) == before
    moved = solver.rename(tmp_path / "geometry" / "newton.py")
    assert hash_of_rooms(tmp_path) == before
    moved.write_text("x = 2")
    assert hash_of_rooms(tmp_path) != before


def test_rooms_are_all_that_simulations_import():
    """So no change to numbers can hide in a room that is not looked at."""
    code = (
        "import sys, simplexplore.simulation.simulate\n"
        "print(*{m.split('.')[1] for m in sys.modules if m.startswith('simplexplore.')})"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) - {"errors", "files", "defaults", "tabular"} == set(ROOMS)


def test_a_damaged_cell_is_named(tmp_path):
    cells = Cells(tmp_path)
    cells.numbers("x", {}, dict)
    (path,) = (tmp_path / "cells").iterdir()
    path.write_text("{")
    with pytest.raises(sx.SettingError, match=r"x-\w+\.json is damaged .*; delete it to run it"):
        cells.numbers("x", {}, dict)


def test_half_a_simulation_is_not_kept(tmp_path):
    cells = Cells(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cells.results("x", {}, lambda: made_up(sx.catalog.instance("star").problem, asked=99))
    assert not cells.has("x", {})
