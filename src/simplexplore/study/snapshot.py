"""Snapshots of a study's state, so that opening it need not replay the whole journal."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np

from simplexplore import __version__
from simplexplore.exploration.plan import Plan

from .decision import Announced, Corrections, Decision
from .events import KINDS
from .pending import PendingPull
from .state import Held, State

# Before names of arrays: as they were at the decision. And what holds everything but arrays.
_KEPT, _META = "decision/", "meta"


def code_of(state: State) -> str:
    """Which program can use a snapshot: this version, with this compiled code."""
    return f"{__version__} {state.engine.workspace.program.code}"


def to_bytes(state: State) -> bytes:
    """A state as bytes: arrays of numbers and a little JSON, nothing that runs code."""
    meta = {
        "seq": state.seq,
        "totals": state.totals,
        "rewards": state.rewards,
        "held": list(state.held.items()),
        "decision": None if state.decision is None else state.decision.to_data(),
        "delta": state.engine.plan.delta,
        "checksum": state.checksum,
        "paused": state.is_paused,
        "archived": state.is_archived,
        "voided": sorted(state.corrections.voided),
        "until": state.corrections.until,
        "corrected": state.corrections.decision,
        "announced": state.announced,
        "pending": [(number, *pull) for number, pull in state.pending.items()],
    }
    kept = {} if state.decision is None else state.decision.arrays
    arrays = {
        **state.engine.workspace.state(),
        **{_KEPT + name: array for name, array in kept.items()},
        _META: np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8),
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def from_bytes(data: bytes, plan: Plan) -> State | None:
    """The state that a snapshot holds, or None if it cannot be used: it is only a cache."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = dict(file)
        meta = json.loads(arrays.pop(_META).tobytes())
        state = State(plan, 0)
        if meta["delta"] != plan.delta:
            state.engine.workspace.set_delta(meta["delta"])
        kept = {name: arrays.pop(name) for name in list(arrays) if name.startswith(_KEPT)}
        state.engine.workspace.restore(arrays)
        state.seq, state.totals = meta["seq"], dict.fromkeys(KINDS, 0) | meta["totals"]
        state.checksum = meta["checksum"]
        state.rewards = meta["rewards"]
        for seq, (pull, arm, reward, usual, n) in meta["held"]:
            state.held[seq] = Held(pull, arm, reward, tuple(usual), n)
        state.is_paused, state.is_archived = meta["paused"], meta["archived"]
        voided = frozenset(meta["voided"])
        state.corrections = Corrections(voided, meta["until"], meta["corrected"])
        standing, withdrawn = meta["announced"]
        state.announced = Announced(None if standing is None else tuple(standing), withdrawn)
        if meta["decision"] is not None:
            at_stop = {name.removeprefix(_KEPT): array for name, array in kept.items()}
            state.decision = Decision(**meta["decision"], arrays=at_stop)
        state.pending = {number: PendingPull(*pull) for number, *pull in meta["pending"]}
    except (
        ValueError,
        KeyError,
        TypeError,
        OSError,
        EOFError,
        RuntimeError,
        zipfile.BadZipFile,
    ):
        return None
    return state
