"""Three arms in one picture: all mixes as a triangle, the best one with its normal cone.

After the paper's Figure 1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon, Wedge

from simplexplore.bound.result import Bound
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.problem import Problem

from .canvas import LINE, TEXT, Canvas
from .colours import BLUE, GREY, INK, ORANGE, PALE, RED, SKY
from .figure import Array, Panel, add_legend, headed

# Inches: the panel, what names need above and below the triangle, from a corner to its name.
WIDTH, HEIGHT, PAD, GAP = 4.6, 3.2, 0.28, 0.08

# Of constraints.
DASHES: tuple[Any, ...] = ("--", ":", "-.", (0, (8, 2)), (0, (4, 1, 1, 1, 1, 1)))

# Corners of the simplex in the plane. The map is a similarity: angles are true.
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])

MIDDLE = 0.5

# Radius of the cone; sides of the triangle have length 1.
CONE = 0.16


def feasible_polygon(polytope: Polytope) -> Array:
    """Return the vertices of the feasible policies of three arms, counterclockwise."""
    policies = np.array([vertex.policy for vertex, _ in polytope.ranked_vertices(np.zeros(3))])
    x, y = ((policies - policies.mean(axis=0)) @ CORNERS).T
    return policies[np.argsort(np.arctan2(y, x))]


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


def panel(
    canvas: Canvas, bound: Bound, names: Mapping[str, str], constraints: Collection[str]
) -> Panel:
    """All mixes as a triangle, on axes ``simplex``, with some constraints; `names` are short."""
    lines = _lines(bound.problem, constraints)
    height = HEIGHT + LINE * len(lines)
    return headed(
        canvas,
        "All mixes of the three arms",
        "shaded: allowed; dot: the best; arrow: reward; orange: normal cone",
        Panel(WIDTH, height, partial(_draw, canvas, bound, names, lines)),
    )


def _draw(
    canvas: Canvas,
    bound: Bound,
    names: Mapping[str, str],
    lines: Mapping[str, Array],
    left: float,
    top: float,
) -> None:
    """Draw the triangle, the feasible polygon, the optimum, the reward, the cone."""
    polygon = feasible_polygon(bound._polytope)
    cone = normal_cone(polygon, bound.policy)
    best, reward = bound.policy @ CORNERS, in_plane(bound.means)
    tip = best + 0.3 * reward / (np.hypot(*reward) or 1.0)
    angles = np.radians(np.linspace(*cone, 24))
    arc = best + CONE * np.column_stack([np.cos(angles), np.sin(angles)])
    drawn = np.vstack([CORNERS, tip, arc])
    axes = _square_axes(canvas, left, top, drawn)
    axes.add_patch(Polygon(CORNERS, facecolor=PALE, edgecolor=INK, linewidth=1))
    for k, (name, ends) in enumerate(lines.items()):
        style, colour = DASHES[k % len(DASHES)], (INK, GREY)[k // len(DASHES) % 2]
        axes.plot(*ends.T, color=colour, linewidth=1, linestyle=style, label=names[name])
    if len(polygon) > 2:
        axes.add_patch(Polygon(polygon @ CORNERS, facecolor=SKY, edgecolor=BLUE, linewidth=1.2))
    else:
        axes.plot(*(polygon @ CORNERS).T, color=BLUE, linewidth=3, solid_capstyle="round")
    axes.add_patch(Wedge(tuple(best), CONE, *cone, facecolor=ORANGE, alpha=0.45, linewidth=0))
    axes.plot(*best, marker="o", markersize=7, color=RED, markeredgecolor=INK, zorder=5)
    if not np.array_equal(tip, best):
        arrow = {"arrowstyle": "-|>", "color": RED, "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", xy=tuple(tip), xytext=tuple(best), arrowprops=arrow, zorder=4)
    for corner, arm in zip(CORNERS, bound.problem.arms, strict=True):
        _name_corner(canvas, axes, corner, names[arm], drawn)
    if lines:
        add_legend(axes, (0.0, 0.0))


def _name_corner(canvas: Canvas, axes: Axes, corner: Array, name: str, drawn: Array) -> None:
    """Write a name beyond its corner and what is drawn; names below keep to their half."""
    inch = float(np.ptp(axes.get_xlim())) / WIDTH
    half = canvas.width_of(name, TEXT, "bold") * inch / 2
    x = MIDDLE + np.sign(corner[0] - MIDDLE) * np.clip(
        abs(corner[0] - MIDDLE), half + 0.05 * inch, WIDTH * inch / 2 - half
    )
    heights = drawn[(drawn[:, 0] - MIDDLE) * (x - MIDDLE) >= 0, 1]  # on the same side
    is_top = corner[1] > 0
    y = heights.max() + GAP * inch if is_top else heights.min() - GAP * inch
    style: Any = {"ha": "center", "va": "bottom" if is_top else "top", "weight": "bold"}
    axes.text(x, y, name, size=TEXT, color=INK, parse_math=False, **style)


def _lines(problem: Problem, names: Collection[str]) -> dict[str, Array]:
    """The ends of the lines that constraints draw through the triangle, nan after each line."""
    lines: dict[str, Array] = {}
    rows = zip(problem.names, problem.matrix, problem.lower, problem.upper, strict=True)
    for name, row, low, high in rows:
        limits = sorted({float(low), float(high)})
        every = [_crossings(row, limit) for limit in limits if np.isfinite(limit)]
        parts = [np.vstack([ends, [np.nan, np.nan]]) for ends in every if len(ends) == 2]
        if name in names and parts:
            lines[name] = np.vstack(parts)
    return lines


def _nearest(polygon: Array, policy: Array) -> int:
    return int(np.abs(polygon - policy).max(axis=1).argmin())


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


def _square_axes(canvas: Canvas, left: float, top: float, points: Array) -> Axes:
    """Axes with equal scales around the triangle's middle that show all points and their names."""
    axes = canvas.axes(left, top, WIDTH, HEIGHT, "simplex")
    low, high = points[:, 1].min(), points[:, 1].max()
    reach = abs(points[:, 0] - MIDDLE).max()
    inch = max(2 * reach / WIDTH, (high - low) / (HEIGHT - 2 * PAD))
    axes.set_xlim(MIDDLE - inch * WIDTH / 2, MIDDLE + inch * WIDTH / 2)
    axes.set_ylim((low + high - inch * HEIGHT) / 2, (low + high + inch * HEIGHT) / 2)
    return axes
