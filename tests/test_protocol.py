"""Errors as problem documents: each arrives as what it was."""

import json

import pytest

import simplexplore as sx
from simplexplore import protocol
from simplexplore.errors import Place, SimplexploreError


def test_a_problem_document():
    document = {
        "type": "urn:simplexplore:setting",
        "title": "setting",
        "status": 422,
        "detail": "why",
    }
    assert protocol.to_problem(sx.SettingError("why")) == document
    placed = sx.SettingError("why", place=Place(row=0))
    assert protocol.to_problem(placed) == document | {"row": 0}


def test_places_that_are_none():
    for wrong in ({}, {"row": None}, {"row": "2"}, {"line": True}, {"field": 3}):
        assert protocol.from_problem({"detail": "why", **wrong}).place is None


@pytest.mark.parametrize("kind", sorted(protocol._BY_NAME))
def test_every_error_survives_the_journey(kind):
    one = protocol._BY_NAME[kind]
    more = (["a", "b"],) if one is sx.InfeasibleError else ()
    error = one("why", *more, place=Place("secret.toml", 3, "arms", 7))
    back = protocol.from_problem(json.loads(json.dumps(protocol.to_problem(error))))
    assert (type(back), str(back)) == (one, "why")
    assert getattr(back, "conflict", ()) == getattr(error, "conflict", ())
    assert back.place == Place(None, 3, "arms", 7)  # files have other names elsewhere


def test_every_class_has_a_name_on_the_wire():
    def leaves(kind):
        return {kind}.union(*map(leaves, kind.__subclasses__()))

    ours = {kind for kind in leaves(SimplexploreError) if kind.__module__ == "simplexplore.errors"}
    assert ours - {SimplexploreError} == set(protocol._BY_NAME.values())
