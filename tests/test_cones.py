"""Extreme rays by double description against trying all subsets of rows."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightly import examples
from reference_polytope import cone_rays
from simplexplore.errors import TooLargeError
from simplexplore.geometry import cones
from simplexplore.geometry.cones import extreme_rays, rays_of_row, rays_of_two_rows


def scaled(rays, size):
    """Rays as vectors whose first positive entry is 1."""
    found = []
    for ray in rays:
        first = ray.entries[min(ray.entries)]
        found.append(tuple(Fraction(ray.entries.get(c, 0), first) for c in range(size)))
    return found


@st.composite
def small_cones(draw):
    size = draw(st.integers(1, 5))
    row = st.lists(st.integers(-2, 2), min_size=size, max_size=size)
    rows = draw(st.lists(row, max_size=4))
    if rows and draw(st.booleans()):
        rows.append(draw(st.sampled_from(rows)))  # a repeated row changes nothing
    return size, rows


@examples(80)
@given(small_cones())
def test_rays_are_those_of_all_subsets(cone):
    size, rows = cone
    found = scaled(extreme_rays(size, rows), size)
    assert len(set(found)) == len(found)
    assert set(found) == cone_rays(size, rows)


def listed(place, weight):
    return [
        [(c, x) for c, x in zip(*ray, strict=True) if x]
        for ray in zip(place.tolist(), weight.tolist(), strict=True)
    ]


@examples(40)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=7))
def test_rays_of_one_row_are_those_of_any_rows(row):
    expected = [list(ray.entries.items()) for ray in extreme_rays(len(row), [row])]
    assert listed(*rays_of_row(row)) == expected


@examples(60)
@given(st.integers(1, 6), st.integers(2, 4), st.sampled_from([1, 3, 10**20]), st.data())
def test_rays_of_two_rows_are_those_of_any_rows(size, count, largest, data):
    entry = st.integers(-largest, largest)
    rows = [data.draw(st.lists(entry, min_size=size, max_size=size)) for _ in range(count)]
    expected = extreme_rays(size, rows)
    if count == 2:
        found = listed(*rays_of_two_rows(rows))
        assert found == [list(ray.entries.items()) for ray in expected]
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cones, "FEW_COLUMNS", 0)
            assert extreme_rays(size, rows) == expected


def test_signatures_say_what_is_positive():
    rows = [[1, -1, 0], [0, 1, -1]]
    for ray in extreme_rays(3, rows):
        y = [ray.entries.get(c, 0) for c in range(3)]
        heights = y + [sum(r * x for r, x in zip(row, y, strict=True)) for row in rows]
        assert ray.signature == sum(1 << i for i, h in enumerate(heights) if h > 0)


def test_cone_that_is_only_its_apex():
    assert extreme_rays(2, [[-1, -1]]) == []


def test_orthant_and_no_columns():
    assert scaled(extreme_rays(2, []), 2) == [(1, 0), (0, 1)]
    assert extreme_rays(0, []) == []


def test_many_degenerate_rows():
    # {(y, z) >= 0 : y_i >= z_j}: each y_i alone, and all of y with any nonempty part of z.
    n = 5
    rows = [
        [int(c == i) - int(c == n + j) for c in range(2 * n)] for i in range(n) for j in range(n)
    ]
    alone = {tuple(int(c == i) for c in range(2 * n)) for i in range(n)}
    together = {(1,) * n + part for part in itertools.product((0, 1), repeat=n) if any(part)}
    found = scaled(extreme_rays(2 * n, rows), 2 * n)
    assert len(found) == n + 2**n - 1
    assert set(found) == alone | together


def test_too_many_rays_are_refused(monkeypatch):
    monkeypatch.setattr(cones, "MAX_RAYS", 3)
    with pytest.raises(TooLargeError, match="more than 3 edges"):
        extreme_rays(4, [[1, 1, -1, -1]])
    with pytest.raises(TooLargeError, match="more than 3 edges"):
        rays_of_row([1, 1, -1, -1])
    with pytest.raises(TooLargeError, match="more than 3 edges"):
        rays_of_two_rows([[0, 0, 0, 0], [1, 1, -1, -1]])


def test_too_many_steps_are_refused_and_the_vertex_is_described(monkeypatch):
    monkeypatch.setattr(cones, "MAX_STEPS", 3)
    with pytest.raises(TooLargeError, match=r"5 constraints bind there, where 4 would do.*3 steps"):
        extreme_rays(4, [[1, 1, -1, -1]])


def test_vertices_have_one_budget_together(monkeypatch):
    rows = [[1, 1, -1, -1], [1, -1, 1, -1]]
    alone = cones.Effort()
    extreme_rays(4, rows, alone)
    assert alone.steps > 0
    monkeypatch.setattr(cones, "MAX_STEPS_TOGETHER", 3 * alone.steps)
    effort = cones.Effort()
    for _ in range(3):
        extreme_rays(4, rows, effort)
    with pytest.raises(TooLargeError, match="many vertices are degenerate"):
        extreme_rays(4, rows, effort)
