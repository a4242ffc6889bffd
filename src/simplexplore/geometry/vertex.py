"""A vertex of the feasible set."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Vertex:
    """An extreme point of F, exactly.

    Attributes
    ----------
    zero : frozenset of int
        Variables that are zero here: arm a is a, the slack of inequality i is K + i. Two
        vertices are the same if and only if these sets are.
    policy : (K,) array
        The shares, each the float nearest to the exact value.
    shares : dict from arm to Fraction
        The exact positive shares.
    basis : tuple of int
        A set of basic variables that describes the vertex.
    at_upper : frozenset of int
        Arms outside the basis that are at their upper ends; others outside are at the lower ones.
    """

    zero: frozenset[int]
    policy: Array = field(compare=False)
    shares: dict[int, Fraction] = field(compare=False, repr=False)
    basis: tuple[int, ...] = field(compare=False, repr=False)
    at_upper: frozenset[int] = field(compare=False, repr=False)
