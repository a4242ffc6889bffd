"""One linear constraint on a mix, and the text that it is written as."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from simplexplore.errors import ConstraintError

from .messages import backticked, exactly

if TYPE_CHECKING:
    from collections.abc import Sequence

# What stands for one arm after the other in a text.
EACH = "each"


def expanded_name(name: str, arm: str) -> str:
    """What the constraint is called that `each` makes for one arm."""
    return f"{name}[{arm}]"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Constraint:
    """One linear constraint ``lower <= coefficients @ policy <= upper``.

    Parameters
    ----------
    name : str
        What messages and results call it.
    coefficients : array_like, shape (K,), or mapping
        One number per arm, not all zero; or from numbers of arms to those that are not zero, with
        `size`.
    lower, upper : float
        Bounds; ``-inf`` or ``inf`` where there is none. Equal bounds make an equality.
    size : int, optional
        Number of arms, K.

    Attributes
    ----------
    arms, values : arrays
        Numbers of the arms with coefficients that are not zero, and these. Read-only.

    Examples
    --------
    >>> Constraint("mix", [4, 0, -1], upper=1)
    Constraint(name='mix', coefficients=array([ 4.,  0., -1.]), lower=-inf, upper=1.0)
    """

    name: str
    size: int
    arms: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    lower: float
    upper: float

    def __init__(
        self,
        name: str,
        coefficients: npt.ArrayLike | Mapping[int, float],
        lower: float = -math.inf,
        upper: float = math.inf,
        size: int = 0,
    ) -> None:
        what = f"constraint {name!r}"
        places: list[int] | None = None
        if isinstance(coefficients, Mapping):
            places, coefficients = list(coefficients), list(coefficients.values())
        try:
            values = np.array(coefficients, dtype=np.float64)
            # Adding zero turns -0.0 into 0.0: equal constraints then have equal bytes.
            lower, upper = float(lower) + 0.0, float(upper) + 0.0
        except (TypeError, ValueError, OverflowError) as error:
            raise ConstraintError(
                f"{what}: coefficients and bounds must be numbers ({error})."
            ) from None
        if values.ndim != 1:
            raise ConstraintError(
                f"{what}: coefficients must be one number per arm; got shape {values.shape}."
            )
        if not np.isfinite(values).all():
            worst = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ConstraintError(
                f"{what}: coefficients must be finite; number {worst + 1} is {values[worst]}."
            )
        if not values.any():
            raise ConstraintError(
                f"{what}: all coefficients are zero; give some arm a number, or drop it."
            )
        if math.isnan(lower) or math.isnan(upper) or lower == math.inf or upper == -math.inf:
            raise ConstraintError(
                f"{what}: bounds must be numbers, or -inf below and inf above for none; "
                f"got lower = {lower}, upper = {upper}."
            )
        if lower == -math.inf and upper == math.inf:
            raise ConstraintError(f"{what}: neither side has a bound; give one, or drop it.")
        if lower > upper:
            raise ConstraintError(
                f"{what}: the lower bound {exactly(lower)} exceeds the upper bound "
                f"{exactly(upper)}; no mix can satisfy both."
            )
        arms = np.arange(len(values)) if places is None else np.array(places, dtype=np.int64)
        used = np.argsort(arms)
        used = used[values[used] != 0]
        fields = (name, size or len(values), arms[used], values[used], lower, upper)
        for field, value in zip(dataclasses.fields(self), fields, strict=True):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, field.name, value)

    @property
    def coefficients(self) -> npt.NDArray[np.float64]:
        """One number per arm, shape (K,)."""
        dense = np.zeros(self.size)
        dense[self.arms] = self.values
        dense.flags.writeable = False
        return dense

    def used(self, shares: npt.NDArray[np.float64]) -> float:
        """Its sum at some shares.

        Parameters
        ----------
        shares : ndarray, shape (K,)

        Returns
        -------
        float
        """
        return float(self.values @ shares[self.arms])

    def _content(self) -> tuple[object, ...]:
        arrays = self.arms.tobytes(), self.values.tobytes()
        return self.name, self.size, *arrays, self.lower, self.upper

    def __eq__(self, other: object) -> bool:
        return (
            self._content() == other._content() if isinstance(other, Constraint) else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        return (
            f"Constraint(name={self.name!r}, coefficients={self.coefficients!r}, "
            f"lower={self.lower!r}, upper={self.upper!r})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        # Through the constructor: unpickled arrays would be writeable.
        sparse = dict(zip(self.arms.tolist(), self.values.tolist(), strict=True))
        return Constraint, (self.name, sparse, self.lower, self.upper, self.size)


def format_constraint(
    constraint: Constraint, arms: Sequence[str], groups: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Write a constraint as a text that :func:`parse_constraint` reads back exactly.

    Parameters
    ----------
    constraint : Constraint
        What to write.
    arms : sequence of str
        Names of the arms.
    groups : mapping of str to sequence of str, optional
        Groups to write in place of their arms where all of them share a coefficient.

    Examples
    --------
    >>> format_constraint(Constraint("c", [1 / 3, -2, 0.1], lower=0), ["a", "b", "The Net"])
    '1/3*a - 2*b + 0.1*`The Net` >= 0'
    """
    return _written(_terms(constraint, arms, groups or {}), constraint)


def format_for_each(constraint: Constraint, arms: Sequence[str], arm: str, each: str) -> str:
    """The same with other words in place of one arm.

    Examples
    --------
    >>> format_for_each(Constraint("caps[a]", [1, -2], upper=0.4), ["a", "b"], "a", "each")
    'each - 2*b <= 0.4'
    """
    terms = zip(constraint.arms.tolist(), constraint.values.tolist(), strict=True)
    named = [(each if arms[i] == arm else backticked(arms[i]), x) for i, x in terms]
    return _written(named, constraint)


def _written(terms: Sequence[tuple[str, float]], constraint: Constraint) -> str:
    lower, upper = constraint.lower, constraint.upper
    expression = "".join(
        (" - " if x < 0 else " + ") + ("" if abs(x) == 1 else f"{exactly(abs(x))}*") + term
        for term, x in terms
    )
    expression = expression.removeprefix(" + ")
    if expression.startswith(" - "):
        expression = "-" + expression[3:]
    if lower == upper:
        return f"{expression} == {exactly(upper)}"
    if lower == -math.inf:
        return f"{expression} <= {exactly(upper)}"
    if upper == math.inf:
        return f"{expression} >= {exactly(lower)}"
    return f"{exactly(lower)} <= {expression} <= {exactly(upper)}"


def _terms(
    constraint: Constraint, arms: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> list[tuple[str, float]]:
    """Names as written, with coefficients: groups as far as they fit, largest first, then arms."""
    position = {arm: i for i, arm in enumerate(arms)}
    left = dict(zip(constraint.arms.tolist(), constraint.values.tolist(), strict=True))
    terms: list[tuple[int, str, float]] = []
    for group, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        indices = [position[arm] for arm in members]
        shared = {left.get(i) for i in indices}
        if len(indices) > 1 and len(shared) == 1 and (x := shared.pop()) is not None:
            terms.append((min(indices), group, x))
            for i in indices:
                del left[i]
    terms += [(i, arms[i], x) for i, x in left.items()]
    return [(backticked(name), x) for _, name, x in sorted(terms)]
