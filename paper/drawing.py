"""What our figures share: colours, plain axes, files with the same bytes for the same content."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, DIM, PALE = "#222222", "#5c5c5c", "#f6f6f4"
BLUE, RED = "#0072B2", "#D55E00"

# Colours and shapes of samplers, so that those who see no colours tell them apart.
SAMPLERS = {
    "ctns": (BLUE, "o"),
    "cge": ("#E69F00", "s"),
    "ptns": ("#009E73", "X"),
    "uniform": ("#999999", "v"),
    "oracle": (INK, "D"),
    "top-two": (RED, "*"),
}


def plain(axes: Axes, title: str = "") -> None:
    """Thin lines on two sides, and a title on the left."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize="small", color=DIM)
    if title:
        axes.set_title(title, loc="left", size="medium", weight="bold")


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or PDF, without a date."""
    metadata = {".png": {"Software": None}, ".pdf": {"CreationDate": None}}[path.suffix]
    with mpl.rc_context({"pdf.fonttype": 42}):
        figure.savefig(path, dpi=160, metadata=metadata)
