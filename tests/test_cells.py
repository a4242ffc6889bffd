"""What is finished is kept, and made anew when anything that it depends on changes."""

import pytest

import simplexplore as sx
from simplexplore.simulation.compare import kept
from simulated import made_up


def star_runs(**changes):
    return made_up(sx.catalog.instance("star").problem, **changes)


def test_a_changed_setting_is_a_new_cell(tmp_path):
    first = kept(tmp_path, "x", {"a": 1}, lambda: star_runs(seed=1))
    again = kept(tmp_path, "x", {"a": 1}, lambda: star_runs(seed=2))
    assert again.stopping_times.tolist() == first.stopping_times.tolist()
    assert kept(tmp_path, "x", {"a": 2}, lambda: star_runs(seed=2)).seed == 2


def test_half_a_simulation_is_not_kept(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        kept(tmp_path, "x", {}, lambda: star_runs(asked=99))
    assert kept(tmp_path, "x", {}, lambda: star_runs(seed=3)).seed == 3
