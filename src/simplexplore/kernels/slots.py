"""What a run binds: functions that its loop calls without knowing which they are.

The loop (episode.py, events.py) is the same for every sampler, stopping rule and way to
recommend, so it is compiled once for each kind of rewards; so are the two long solvers, which
several samplers and a user's own share. Compiled code calls these functions by their address,
uncompiled code as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Allocate = Callable[..., None]
Reached = Callable[..., bool]
Enough = Callable[..., int]
Recommend = Callable[..., int]
Balance = Callable[..., float]
Project = Callable[..., bool]
AdvanceMeasured = Callable[..., int]

_STATE = ("Setting", "Table", "Run", "Memory")
_MEASURED = ("MeasuredSetting", "MeasuredRun", "MeasuredWork")

# What they take and, last, return; the loops themselves, too.
FORMS: dict[str, tuple[str, ...]] = {
    "Allocate": (*_STATE, "None"),
    "Reached": (*_STATE[:3], "int", "float", "bool"),
    "Enough": (*_STATE, "int", "int"),
    "Recommend": (*_STATE, "int"),
    "Balance": (*_STATE, "Shares", "int", "bool", "float", "float"),
    "Project": ("Limits", "Projection", "bool"),
    "Simulate": (*_STATE, "Job", "int"),
    "Step": (*_STATE, "int", "float", "bool", "int"),
    "Fold": (*_STATE, "Events", "int"),
    "Level": (*_STATE, "int", "float"),
    "Evidence": (*_STATE, "int", "None"),
    "Surplus": (*_STATE, "float", "float"),
    "Gain": (*_STATE, "int", "float", "float"),
    "SimulateMeasured": (*_MEASURED, "MeasuredJob", "int"),
    "AdvanceMeasured": (*_MEASURED, "bool", "bool", "int"),
}

# Kinds of rewards, and what is known of the setting's fields; branches on these are not compiled.
KINDS: dict[str, dict[str, bool]] = {
    "closed": {"closed_form": True, "learning": False, "betting": False},
    "root": {"closed_form": False, "learning": False},
    "learned": {"closed_form": False, "learning": True, "betting": False},
}


class Slots(NamedTuple):
    """The functions of a run."""

    allocate: Allocate  # the sampler: writes the next allocation into run.w
    enough: Enough  # the stopping rule: whether the recommended policy can be returned
    reached: Reached  # the threshold: whether an edge's evidence is enough
    recommend: Recommend  # the policy to work for: a vertex, or an answer within epsilon
    balance: Balance  # the allocation with the most information (maximin.py)
    project: Project  # the closest allocation of the set (projection.py)
