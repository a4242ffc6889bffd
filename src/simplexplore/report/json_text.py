"""JSON that every parser reads, infinite numbers included."""

from __future__ import annotations

import json
import math
from typing import Any


def to_json(value: Any) -> str:
    """Write JSON in which an infinite number is 1e999, which every parser reads as infinity.

    Examples
    --------
    >>> to_json({"time": math.inf, "arms": ["a"], "gap": 0.0, "none": None})
    '{"time": 1e999, "arms": ["a"], "gap": 0.0, "none": null}'
    """
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        pass  # some number is infinite: part by part
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_json, value)) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value, allow_nan=False)
