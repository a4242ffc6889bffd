"""Errors as problem documents: each arrives as what it was."""

import json

import pytest

import simplexplore as sx
from simplexplore import errors, protocol

KINDS = [getattr(sx, name) for name in dir(sx) if name.endswith("Error")]
KINDS.remove(sx.SimplexploreError)


def there_and_back(error):
    return protocol.from_problem(json.loads(json.dumps(protocol.to_problem(error))))


def test_a_problem_document():
    document = {
        "type": "urn:simplexplore:setting",
        "title": "setting",
        "status": 422,
        "detail": "why",
    }
    assert protocol.to_problem(sx.SettingError("why")) == document
    placed = sx.SettingError("why", place=errors.Location(row=0))
    assert protocol.to_problem(placed) == document | {"row": 0}


def test_places_that_are_none():
    for wrong in ({}, {"row": None}, {"row": "2"}, {"line": True}, {"field": 3}):
        assert protocol.from_problem({"detail": "why", **wrong}).place is None


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_survives_the_journey(kind):
    more = (["a", "b"],) if kind is sx.InfeasibleError else ()
    error = kind("why", *more, place=errors.Location("secret.toml", 3, "arms", 7))
    back = there_and_back(error)
    assert (type(back), str(back)) == (kind, "why")
    assert getattr(back, "conflict", ()) == getattr(error, "conflict", ())
    assert back.place == errors.Location(None, 3, "arms", 7)  # files have other names elsewhere


def test_every_error_has_a_public_name():
    def leaves(kind):
        return {kind}.union(*map(leaves, kind.__subclasses__()))

    ours = {one for one in leaves(sx.SimplexploreError) if one.__module__ == errors.__name__}
    assert ours - {sx.SimplexploreError} == {*KINDS}
