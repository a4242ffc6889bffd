"""Geometry of the picture for three arms, against the exact geometry."""

import numpy as np
import pytest

import simplexplore as sx
from optimum import Polytope
from simplexplore.report.ternary import CORNERS, feasible_polygon, in_plane, normal_cone


def polygon_of(problem):
    return feasible_polygon(Polytope(problem))


def random_problems(count):
    """Three arms, one to four rows in tenths, feasible at a random point."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        rows = rng.integers(-3, 4, size=(rng.integers(1, 5), 3))
        point = rng.dirichlet(np.ones(3))
        upper = np.ceil(10 * rows @ point) / 10
        yield sx.Problem(3, (rows, upper)), rng


def contains(cone, angle):
    start, end = cone
    return (angle - start) % 360 <= end - start


def test_map_to_the_plane_keeps_angles():
    rng = np.random.default_rng(0)
    u, v = (x - x.mean() for x in rng.normal(size=(2, 3)))
    # Sides have length sqrt(2) in space and 1 in the picture.
    assert in_plane(u) @ in_plane(v) == pytest.approx(u @ v / 2)
    assert in_plane(u + 5) == pytest.approx(in_plane(u))


def test_whole_triangle():
    assert polygon_of(sx.Problem(3)) == pytest.approx(np.eye(3))


def test_quadrilateral():
    problem = sx.Problem(3, ["a1 <= 0.5"])
    expected = [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1], [0.5, 0, 0.5]]
    assert polygon_of(problem) == pytest.approx(np.array(expected))


def test_segment_and_point():
    assert sorted(polygon_of(sx.Problem(3, ["a1 == 1/3"])).tolist()) == [
        pytest.approx([1 / 3, 0, 2 / 3]),
        pytest.approx([1 / 3, 2 / 3, 0]),
    ]
    point = polygon_of(sx.Problem(3, ["a1 == 1/3", "a2 == 1/3"]))
    assert point == pytest.approx(np.full((1, 3), 1 / 3))


def test_limit_through_a_corner_keeps_it():
    assert len(polygon_of(sx.Problem(3, ["a1 <= 0"]))) == 2
    assert len(polygon_of(sx.Problem(3, ["a1 <= 1"]))) == 3
    assert len(polygon_of(sx.Problem(3, ["a1 - a2 <= 0"]))) == 3


def test_polygon_is_counterclockwise_and_holds_every_optimum():
    for problem, rng in random_problems(60):
        polygon = polygon_of(problem)
        x, y = (polygon @ CORNERS).T
        assert x @ np.roll(y, -1) - y @ np.roll(x, -1) >= -1e-9  # twice the area
        for means in rng.normal(size=(5, 3)):
            policy = Polytope(problem).optimal_vertex(means).policy
            assert np.abs(polygon - policy).max(axis=1).min() < 1e-7


def test_normal_cone_holds_the_means_of_its_vertex_only():
    for problem, rng in random_problems(60):
        polygon = polygon_of(problem)
        if len(polygon) < 3:
            continue
        for means in rng.normal(size=(5, 3)):
            policy = Polytope(problem).optimal_vertex(means).policy
            x, y = in_plane(means)
            angle = float(np.degrees(np.arctan2(y, x)))
            for vertex in polygon:
                best = np.abs(vertex - policy).max() < 1e-7
                assert contains(normal_cone(polygon, vertex), angle) == best


def test_normal_cone_of_flat_sets():
    segment = polygon_of(sx.Problem(3, ["a1 == 1/3"]))
    start, end = normal_cone(segment, segment[0])
    assert end - start == pytest.approx(180)
    towards_other = (segment[1] - segment[0]) @ CORNERS
    angle = float(np.degrees(np.arctan2(towards_other[1], towards_other[0])))
    assert not contains((start, end), angle)
    assert contains((start, end), angle + 180)
    assert normal_cone(segment[:1], segment[0]) == (0, 360)
