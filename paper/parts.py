"""All parts, in the order of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import simplexplore as sx

from .algorithms import Algorithms
from .allocations import Allocations
from .asymptotics import Asymptotics
from .films import Films
from .hardness import Hardness
from .lower_bounds import LowerBounds
from .meal import Curve, People
from .part import Part
from .simulations import (
    SAMPLERS,
    WITH_PTNS,
    Simulated,
    as_good_as_oracle,
    better,
    bounds_are_ordered,
    close_to_bound,
    differs_more_at_the_end,
    optimum,
    ours,
    ptns_is_worst,
    ptns_like_uniform,
    rarely_wrong,
    said,
    uniform_varies,
)
from .speed import Speed
from .statements import Statements
from .theorems import Theorems

_OURS = ("ctns", "cge")
_BEATS_UNIFORM = better(_OURS, "uniform")
_APPENDIX = (
    ("bernoulli-1", "Bernoulli rewards, seven arms", 4),
    ("bernoulli-2", "Bernoulli rewards, five arms", 1),
    ("gaussian-1", "Gaussian rewards, seven arms, δ = 0.0001", 1),
    ("gaussian-2", "Gaussian rewards, six arms, δ = 0.001", 1),
)

_FIGURE_3 = (
    said(
        "Section 5, Observation 1",
        _BEATS_UNIFORM,
        as_good_as_oracle,
        close_to_bound,
        ptns_like_uniform,
    ),
    ours(rarely_wrong),
)

PARTS: dict[str, Part] = {
    part.name: part
    for part in (
        People(),
        Curve(),
        Hardness(),
        Simulated(
            "fig3c",
            "Five arms, hard with constraints and easy without",
            "triangle",
            WITH_PTNS,
            _FIGURE_3,
            source="Figure 3c (the triangle) and Observation 1",
            times=4,
        ),
        Simulated(
            "fig3d",
            "Five arms, easy with constraints and hard without",
            "star",
            WITH_PTNS,
            _FIGURE_3,
            source="Figure 3d (the star) and Observation 1",
            times=4,
        ),
        Simulated(
            "fig4",
            "Eight arms, and what projecting the best-arm allocation does",
            "eight-arms",
            WITH_PTNS,
            (
                said("Figure 4, caption", optimum("eight-arms")),
                said("Section 5, Observation 2", ptns_is_worst),
                said("Appendix F, on PTnS", better(_OURS, "ptns")),
                ours(_BEATS_UNIFORM, as_good_as_oracle, close_to_bound, rarely_wrong),
            ),
            source="Figure 4 and Observation 2",
            times=8,
        ),
        Allocations(),
        Simulated(
            "fig5",
            "Recommending films",
            "movies",
            SAMPLERS,
            (
                said(
                    "Section 5, IMDB",
                    _BEATS_UNIFORM,
                    uniform_varies,
                    differs_more_at_the_end,
                    bounds_are_ordered,
                ),
                ours(as_good_as_oracle, close_to_bound, rarely_wrong),
            ),
            source="Figure 5 (IMDB)",
            note="Samplers are told σ = 1.33; rewards are drawn with each film's own σ.",
        ),
        *(
            Simulated(
                name,
                title,
                name,
                SAMPLERS,
                (
                    said("the figure's caption", optimum(name)),
                    said(
                        "Appendix E, first paragraph",
                        _BEATS_UNIFORM,
                        as_good_as_oracle,
                        close_to_bound,
                        differs_more_at_the_end,
                    ),
                    said("Section 5, IMDB, of all problems", bounds_are_ordered),
                    ours(rarely_wrong),
                ),
                source=sx.catalog.instance(name).source,
                times=times,
            )
            for name, title, times in _APPENDIX
        ),
        Speed(),
        Films(),
        LowerBounds(),
        Theorems(),
        Algorithms(),
        Asymptotics(),
        Statements(),
    )
}


def find_parts(names: Sequence[str]) -> list[Part]:
    """Parts by their names, in the order of the paper; all of them for "all" or no name.

    Raises
    ------
    SettingError
        If a name is unknown.
    """
    known = (*PARTS, "all")
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(known)}."
            raise sx.SettingError(f"there is no part {name!r}. {hint}")
    wanted = PARTS if not names or "all" in names else names
    return [part for part in PARTS.values() if part.name in wanted]
