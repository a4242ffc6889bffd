"""Three arms in one picture: all mixes as a triangle, and the normal cone at the best one.

After the paper's Figures 1 and 2A.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.patches import Polygon, Wedge

from .page import (
    BLUE,
    DIM,
    GUTTER,
    HEADING,
    INK,
    ORANGE,
    PALE,
    RED,
    SKY,
    SMALL,
    TEXT,
    Labels,
    Page,
    Spot,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from simplexplore.bound.result import Bound
    from simplexplore.problem.problem import Problem

Array = npt.NDArray[np.float64]

# Inches.
WIDTH, TRIANGLE_HEIGHT, CONE_HEIGHT = 3.8, 2.9, 1.9
NAME_WIDTH = 1.5
HEIGHT = HEADING + TRIANGLE_HEIGHT + GUTTER + HEADING + CONE_HEIGHT

# Corners of the simplex in the plane. The map is a similarity: angles are true.
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])

# Radius of the small cone in the triangle, whose sides have length 1.
CONE = 0.16

# Policies nearer than this are one point of the picture.
SAME = 1e-7


def feasible_polygon(matrix: Array, lower: Array, upper: Array) -> Array:
    """Return the vertices of the feasible policies of three arms, counterclockwise.

    The triangle is clipped with one half-plane after the other (Sutherland and Hodgman).

    Examples
    --------
    >>> inf = np.inf
    >>> feasible_polygon(np.array([[1.0, 1.0, 0.0]]), np.array([-inf]), np.array([0.5]))
    array([[0. , 0.5, 0.5],
           [0. , 0. , 1. ],
           [0.5, 0. , 0.5]])
    """
    polygon = np.eye(3)
    for row, low, high in zip(matrix, lower, upper, strict=True):
        for normal, limit in ((row, high), (-row, -low)):
            scale = float(np.abs(normal).max())
            if not np.isfinite(limit) or scale == 0:
                continue
            # A limit through a corner keeps the corner, whatever the rounding.
            excess = (polygon @ normal - limit) / scale - 1e-9
            kept: list[Array] = []
            for i, point in enumerate(polygon):
                j = (i + 1) % len(polygon)
                if excess[i] <= 0:
                    kept.append(point)
                if (excess[i] > 0) != (excess[j] > 0):
                    t = excess[i] / (excess[i] - excess[j])
                    kept.append(point + t * (polygon[j] - point))
            polygon = np.array(kept).reshape(-1, 3)
    distinct = [
        point
        for i, point in enumerate(polygon)
        if not any(np.abs(point - other).max() < SAME for other in polygon[:i])
    ]
    return np.round(np.array(distinct).reshape(-1, 3), 8)


def normal_cone(polygon: Array, policy: Array) -> tuple[float, float]:
    """Return the angles, in degrees, between which lie the means that make a policy best."""
    points = polygon @ CORNERS
    if len(points) == 1:
        return 0.0, 360.0
    here = _nearest(polygon, policy)
    before = points[here] - points[here - 1]
    after = points[(here + 1) % len(points)] - points[here]
    # Outward normals of the two sides, the polygon being counterclockwise.
    start, end = (float(np.degrees(np.arctan2(-d[0], d[1]))) for d in (before, after))
    return start, start + (end - start) % 360


def in_plane(vector: Array) -> Array:
    """Return the part of a vector that lies in the plane of the simplex, seen in that plane."""
    return np.asarray((vector - vector.mean()) @ CORNERS)


def shown_names(page: Page, problem: Problem) -> dict[str, str]:
    """Arms and constraints as the triangle, and everything beside it, calls them."""
    return page.short_names([*problem.arms, *problem.names], NAME_WIDTH)


def draw_triangle(page: Page, bound: Bound, left: float, top: float) -> None:
    """Draw all mixes as a triangle and below it the normal cone at the best one.

    Makes axes ``simplex`` and ``cone``, together `WIDTH` by `HEIGHT` inches.
    """
    problem = bound.problem
    names = shown_names(page, problem)
    polygon = feasible_polygon(problem.matrix, problem.lower, problem.upper)
    page.heading(
        left,
        top,
        "All mixes of the three arms",
        "shaded: allowed; dot: the best; arrow: where reward grows",
        WIDTH,
    )
    _draw_simplex(page, bound, polygon, names, left, top + HEADING)
    top += HEADING + TRIANGLE_HEIGHT + GUTTER
    ring = "" if _alternative(bound) is None else "; ring: the closest alternative"
    page.heading(left, top, "Normal cone", f"means in here make this mix the best{ring}", WIDTH)
    _draw_cone(page, bound, polygon, names, left, top + HEADING)


def _draw_simplex(
    page: Page, bound: Bound, polygon: Array, names: Mapping[str, str], left: float, top: float
) -> None:
    """Draw the triangle, the feasible polygon, the optimum, the reward, the cone."""
    cone = normal_cone(polygon, bound.policy)
    best = bound.policy @ CORNERS
    tip = best + 0.3 * _unit(in_plane(bound.means))
    drawn = np.vstack([CORNERS, tip, best + CONE * _arc(*cone)])
    axes = _square_axes(page, left, top, TRIANGLE_HEIGHT, drawn, (0.3, 0.28), "simplex")
    labels = Labels(page, axes)
    axes.add_patch(Polygon(CORNERS, facecolor=PALE, edgecolor=INK, linewidth=1))
    lines = [(name, _crossings(normal, limit)) for name, normal, limit in _limits(bound)]
    for _, ends in lines:
        axes.plot(*ends.T, color=DIM, linewidth=0.9, linestyle=(0, (4, 2)))
        labels.avoid(_between(*ends))
    if len(polygon) > 2:
        axes.add_patch(Polygon(polygon @ CORNERS, facecolor=SKY, edgecolor=BLUE, linewidth=1.2))
    else:
        axes.plot(*(polygon @ CORNERS).T, color=BLUE, linewidth=3, solid_capstyle="round")
    axes.add_patch(Wedge(tuple(best), CONE, *cone, facecolor=ORANGE, alpha=0.45, linewidth=0))
    axes.plot(*best, marker="o", markersize=7, color=RED, markeredgecolor=INK, zorder=5)
    if not np.array_equal(tip, best):
        _arrow(axes, best, tip)
    labels.avoid(_between(best, tip))
    for radius in (0.4, 0.7, 1.0):
        labels.avoid(best + radius * CONE * _arc(*cone))
    for i in range(3):
        labels.avoid(_between(CORNERS[i], CORNERS[(i + 1) % 3]))
    for corner, arm in zip(CORNERS, bound.problem.arms, strict=True):
        labels.write(names[arm], _around(corner), size=TEXT, weight="bold", always=True)
    for name, ends in lines:
        labels.write(names[name], [_beside(point) for point in ends], size=SMALL)


def _draw_cone(
    page: Page, bound: Bound, polygon: Array, names: Mapping[str, str], left: float, top: float
) -> None:
    """Draw the normal cone, named after the constraints that bound it."""
    cone = normal_cone(polygon, bound.policy)
    apex = np.zeros(2)
    reward = in_plane(bound.means)
    tip = 0.85 * _unit(reward)
    alternative = _alternative(bound)
    points = [apex, *_arc(*cone), tip]
    if alternative is not None:
        ring = in_plane(alternative) * 0.85 / float(np.hypot(*reward))
        points.append(ring)
    axes = _square_axes(page, left, top, CONE_HEIGHT, np.array(points), (1.0, 0.22), "cone")
    labels = Labels(page, axes)
    axes.add_patch(Wedge((0, 0), 1, *cone, facecolor=ORANGE, alpha=0.45, linewidth=0))
    if tip.any():
        _arrow(axes, apex, tip)
    if alternative is not None:
        axes.plot(*np.array([tip, ring]).T, color=INK, linewidth=1, linestyle=":")
        axes.plot(*ring, marker="o", markersize=6, color="white", markeredgecolor=INK, zorder=5)
    axes.plot(*apex, marker="o", markersize=7, color=RED, markeredgecolor=INK, zorder=5)
    if len(polygon) < 3:
        return
    here = _nearest(polygon, bound.policy)
    neighbours = (polygon[here - 1], polygon[(here + 1) % len(polygon)])
    for angle, neighbour in zip(cone, neighbours, strict=True):
        side = _arc(angle, angle)[0]
        axes.plot(*np.array([apex, side]).T, color=INK, linewidth=1, linestyle="--")
        name = _tight_between(bound, neighbour, names)
        labels.write(name, [_outside(side, side, 0.06)], size=SMALL, always=True)


def _limits(bound: Bound) -> list[tuple[str, Array, float]]:
    """Name, normal and limit of the lines that constraints draw through the triangle."""
    problem = bound.problem
    return [
        (name, row, float(limit))
        for name, row, low, high in zip(
            problem.names, problem.matrix, problem.lower, problem.upper, strict=True
        )
        for limit in sorted({low, high})
        if np.isfinite(limit) and len(_crossings(row, float(limit))) == 2
    ]


def _tight_between(bound: Bound, neighbour: Array, names: Mapping[str, str]) -> str:
    """Name a constraint that holds with equality from the policy to a neighbour."""
    sides = [(names[name], normal, limit) for name, normal, limit in _limits(bound)]
    sides += [(f"{names[arm]} ≥ 0", np.eye(3)[a], 0.0) for a, arm in enumerate(bound.problem.arms)]
    ends = np.array([bound.policy, neighbour])
    distances = [np.abs(ends @ normal - limit).max() / np.ptp(normal) for _, normal, limit in sides]
    return sides[int(np.argmin(distances))][0]


def _alternative(bound: Bound) -> Array | None:
    """The closest alternative in the problem's scenario; in a tie it is the means themselves."""
    return None if bound.ties else bound.scenarios[bound.problem.scenario].closest_alternative


def _nearest(polygon: Array, policy: Array) -> int:
    return int(np.abs(polygon - policy).max(axis=1).argmin())


def _unit(vector: Array) -> Array:
    length = float(np.hypot(*vector))
    return vector / length if length > 0 else vector


def _arc(start: float, end: float) -> Array:
    """Points of the unit circle between two angles in degrees."""
    angle = np.radians(np.linspace(start, end, 24))
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _between(start: Array, end: Array) -> Array:
    return np.linspace(start, end, 40)


def _crossings(normal: Array, limit: float) -> Array:
    """Where the line ``normal @ policy = limit`` meets the sides of the triangle."""
    level = normal - limit
    points: list[Array] = []
    for i in range(3):
        j = (i + 1) % 3
        if (level[i] > 0) != (level[j] > 0):
            t = level[i] / (level[i] - level[j])
            points.append(CORNERS[i] + t * (CORNERS[j] - CORNERS[i]))
    return np.array(points)


def _arrow(axes: Axes, tail: Array, head: Array) -> None:
    axes.annotate(
        "",
        xy=(head[0], head[1]),
        xytext=(tail[0], tail[1]),
        arrowprops={"arrowstyle": "-|>", "color": RED, "linewidth": 2, "shrinkA": 0, "shrinkB": 0},
        zorder=4,
    )


def _square_axes(
    page: Page,
    left: float,
    top: float,
    height: float,
    points: Array,
    pad: tuple[float, float],
    label: str,
) -> Axes:
    """Axes with equal scales that show all points, with inches around them for labels."""
    axes = page.axes(left, top, WIDTH, height, label)
    low, high = points.min(axis=0), points.max(axis=0)
    room = np.array([WIDTH, height]) - 2 * np.array(pad)
    units_per_inch = float(((high - low) / room).max())
    half = np.array([WIDTH, height]) * units_per_inch / 2
    middle = (low + high) / 2
    axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
    axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
    return axes


def _outside(point: Array, outward: Array, distance: float) -> Spot:
    """A spot beside a point, in a direction."""
    direction = _unit(outward)
    x, y = point + distance * direction
    horizontal = "left" if direction[0] > 0.3 else "right" if direction[0] < -0.3 else "center"
    vertical = "bottom" if direction[1] > 0.5 else "top" if direction[1] < -0.5 else "center"
    return float(x), float(y), horizontal, vertical


def _beside(point: Array) -> Spot:
    """A spot just outside the triangle."""
    return _outside(point, point - CORNERS.mean(axis=0), 0.04)


def _around(corner: Array) -> list[Spot]:
    """Spots for a text at a corner of the triangle, the best first."""
    x, y = (float(v) for v in corner)
    near, far = 0.04, 0.1
    if y > 0:
        spots: list[Spot] = [(x, y + near, "center", "bottom")]
        return [*spots, (x + far, y, "left", "center"), (x - far, y, "right", "center")]
    inward = 1 if x < 0.5 else -1
    inner, outer = ("left", "right") if x < 0.5 else ("right", "left")
    return [
        (x, y - near, "center", "top"),
        (x + inward * near, y - near, inner, "top"),
        (x - inward * far, y, outer, "center"),
        (x, y - near - far, "center", "top"),
        (x + inward * near, y - near - far, inner, "top"),
    ]
