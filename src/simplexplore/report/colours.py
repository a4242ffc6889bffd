"""Colours of all pictures, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence

# Okabe and Ito's: told apart with any colour vision, and by lightness in grey.
BLUE, ORANGE, RED, SKY = "#0072B2", "#E69F00", "#D55E00", "#56B4E9"
GREEN, PINK = "#009E73", "#CC79A7"
PALE_RED = "#E8B99B"
INK, DIM, GREY, TRACK, PALE = "#222222", "#666666", "#8C8C8C", "#D9D9D9", "#EFEFEF"

SCENARIO_COLOURS = {"end-of-time": BLUE, "anytime": ORANGE, "exploration": GREEN}

# Names stand beside them, so none has to be guessed.
SAMPLER_COLOURS = {
    "ctns": BLUE,
    "cge": ORANGE,
    "ptns": GREEN,
    "uniform": GREY,
    "oracle": INK,
    "top-two": RED,
}
# For samplers of the user's own, in the order they come.
OTHER_COLOURS = (PINK, SKY, "#6A51A3", "#8C564B")


def sampler_colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each sampler, the same in all pictures if it is ours."""
    others = [name for name in dict.fromkeys(names) if name not in SAMPLER_COLOURS]
    own = {name: OTHER_COLOURS[i % len(OTHER_COLOURS)] for i, name in enumerate(others)}
    return {name: SAMPLER_COLOURS.get(name) or own[name] for name in names}
