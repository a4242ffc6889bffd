"""Records without content: what kernels are given to write to."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from simplexplore.kernels.packed_record import ARRAYS, fields

Record = TypeVar("Record")


def zeros(record: type[Record], **given: Any) -> Record:
    """A record of kernels/records.py: arrays of zeros of the shapes given, else empty.

    Fields that are not arrays are as given, else 0.
    """
    made = {}
    for name, (annotation, _) in fields(record.__name__).items():
        if annotation in ARRAYS:
            kind, dimensions = ARRAYS[annotation]
            made[name] = np.zeros(given.get(name, (0,) * dimensions), kind)
        else:
            made[name] = given.get(name, 0)
    return record(**made)
