"""The functions that a run binds, and what compiled functions take and return.

The loop (episode.py, events.py) is the same for every sampler, stopping rule and way to recommend,
so it is compiled once for each kind of rewards. It calls these functions by their address; run as
Python it calls them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Allocate = Callable[..., None]
Reached = Any  # Callable[..., bool], or None where edges are not asked one by one
Enough = Callable[..., int]
Recommend = Callable[..., int]

_STATE = ("RunConfig", "EdgeTable", "RunState", "Scratch")

# Arguments and, last, the result. Functions that are not bound say it by their annotations.
SIGNATURES: dict[str, tuple[str, ...]] = {
    "Allocate": (*_STATE, "None"),
    "Reached": (*_STATE[:3], "int", "float", "bool"),
    "Enough": (*_STATE, "int", "int"),
    "Recommend": (*_STATE, "int"),
}

# Kinds of rewards, and what is known of the setting's fields; branches on these are not compiled.
_REWARDS = {"channels": 1, "measuring": False}
REWARD_KINDS: dict[str, dict[str, int]] = {
    "gaussian": {**_REWARDS, "closed_form": True, "learns_variance": False, "tracks_wealth": False},
    "exponential": {**_REWARDS, "closed_form": False, "learns_variance": False},
    "unknown_variance": {
        **_REWARDS,
        "closed_form": False,
        "learns_variance": True,
        "tracks_wealth": False,
    },
    "measured": {"measuring": True, "tracks_wealth": False},
}


class RunFunctions(NamedTuple):
    """The functions of a run."""

    allocate: Allocate  # the sampler: writes the next allocation into run.w
    enough: Enough  # the stopping rule: whether the recommended policy can be returned
    reached: Reached  # the threshold: whether an edge's evidence is enough
    recommend: Recommend  # the policy to work for: a vertex, or an answer within epsilon
