"""Letters that matplotlib's own font lacks come from other fonts, or are named once."""

import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import font_manager

import simplexplore as sx

# A letter that DejaVu Sans lacks and STIX has, and one that both lack.
IN_STIX, NOWHERE = "\u1d81", "寿"
STIX = Path(mpl.get_data_path(), "fonts", "ttf", "STIXGeneral.ttf")


def drawn(path, names):
    problem = sx.Problem(names, means=[0.5, 0.3])
    sx.plot_bound(sx.lower_bound(problem, delta=0.1), path)
    return path.read_bytes()


def test_letters_come_from_another_font_of_the_machine(tmp_path, monkeypatch, recwarn, caplog):
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(STIX)])
    before = list(mpl.rcParams["font.family"])
    assert b"STIX" not in drawn(tmp_path / "plain.pdf", ["a", "b"])
    assert b"STIX" in drawn(tmp_path / "other.pdf", [IN_STIX, "b"])
    assert mpl.rcParams["font.family"] == before
    assert not recwarn.list
    assert not caplog.records


def test_letters_of_no_font_are_named_once(tmp_path, monkeypatch):
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(broken), str(STIX)])
    with pytest.warns(UserWarning, match=f"no font on this machine has the letters {NOWHERE}:"):
        drawn(tmp_path / "picture.png", [f"{NOWHERE}\u0301 {NOWHERE}", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn(tmp_path / "joined.png", ["a\u200db", "b"])  # parts of letters need no picture
