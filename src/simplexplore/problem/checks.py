"""The fields of a problem, checked one by one.

Each function takes a value as given, in a file or in Python, and the fields that it must fit; it
returns the value in the form that a problem keeps, or says what is wrong with it.
"""

from __future__ import annotations

import math
import reprlib
import unicodedata
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import Location, MeansError, ProblemError, SettingError

from .constraint import Constraint
from .locations import error_context
from .messages import closest_match, count, listed, suggestion
from .parser import Names, Parser

Array = npt.NDArray[np.float64]

# Floats hold arms / delta and its logarithm down to here, and nobody is this sure of anything.
MIN_DELTA = 1e-300

_BOUNDS = ("upper", "lower", "equal")
_MATRIX_KEYS = ("matrix", *_BOUNDS, "names")

# Not as a union, which takes longer to ask.
NUMBERS = (int, float, np.floating, np.integer)

# Far more than anything here can be computed for; a larger number would only fill memory.
MAX_ARMS = 100_000

# Characters of a name.
_MAX_NAME = 1_000

# Characters that turn the direction of writing around, by force; letters that have one need none.
_BIDI_CONTROLS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))


def check_arms(arms: object) -> tuple[str, ...]:
    """Names of arms, or their number."""
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        if arms < 1:
            raise ProblemError(f"there must be at least one arm; got arms = {arms}.")
        _check_size(int(arms))
        return tuple(f"a{i}" for i in range(1, int(arms) + 1))
    names = entries_of(arms)
    if names is None:
        raise ProblemError(f"arms must be a list of names; got {reprlib.repr(arms)}.")
    if not names:
        raise ProblemError("arms is empty; name at least one arm.")
    _check_size(len(names))
    places: dict[str, int] = {}
    for i, arm in enumerate(names, 1):
        name = _check_operand(arm, f"arm {i}")
        if name in places:
            raise ProblemError(
                f"arms {places[name]} and {i} are both named {name!r}; names must differ."
            )
        places[name] = i
    return tuple(places)


def _check_size(size: int) -> None:
    if size > MAX_ARMS:
        raise ProblemError(f"there are {count(size, 'arm')}; at most {MAX_ARMS:,} are possible.")


def check_groups(groups: object, arms: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Groups: names for lists of arms."""
    groups = {} if groups is None else groups
    if not isinstance(groups, Mapping):
        raise ProblemError(f"groups must map names to lists of arms; got {reprlib.repr(groups)}.")
    known = set(arms)
    checked: dict[str, tuple[str, ...]] = {}
    for i, (name, value) in enumerate(groups.items(), 1):
        with error_context(str(name)):
            group = _check_operand(name, f"group {i}")
            members = entries_of(value)
            if group in known:
                raise ProblemError(f"group {group!r} has the name of an arm; rename it.")
            if members is None:
                raise ProblemError(
                    f"group {group!r} must be a list of arms; got {reprlib.repr(value)}."
                )
            if not members:
                raise ProblemError(f"group {group!r} is empty; list its arms, or drop it.")
            for arm in members:
                if not isinstance(arm, str) or arm not in known:
                    is_group = isinstance(arm, str) and arm in groups
                    raise ProblemError(
                        f"group {group!r} contains {reprlib.repr(arm)}, which is not an arm; "
                        f"{'list its arms instead.' if is_group else _meant(arm, arms)}"
                    )
            checked[group] = tuple(dict.fromkeys(map(str, members)))
            if len(checked[group]) < len(members):
                twice = next(arm for arm in members if members.count(arm) > 1)
                raise ProblemError(f"group {group!r} contains {twice!r} twice; remove one.")
    return MappingProxyType(checked)


def check_constraints(
    given: object,
    arms: tuple[str, ...],
    groups: Mapping[str, tuple[str, ...]],
    table: str = "constraints",
) -> tuple[Constraint, ...]:
    """Constraints, or limits on exploration, in any of the forms that `Problem` takes."""
    names = Names(arms, groups, table)
    if isinstance(given, Mapping):
        rows = _check_table(given, names, table)
    elif (
        isinstance(given, tuple) and len(given) == 2 and not isinstance(given[0], str | Constraint)
    ):
        rows = _check_matrix({"matrix": given[0], "upper": given[1]}, names)
    elif (entries := entries_of(given)) is not None:
        rows = []
        for i, entry in enumerate(entries, 1):
            if isinstance(entry, Constraint):
                check_name(entry.name, f"{names.noun} {i}")
                rows.append(entry)
            else:
                with error_context(f"c{i}"):
                    rows += _check_text(f"c{i}", entry, names)
    else:
        raise ProblemError(
            f"{table} must be a list of texts, a mapping from names to texts, or a tuple "
            f"(matrix, upper bounds); got {reprlib.repr(given)}."
        )
    # Results speak of the simplex's own constraints by these names.
    reserved = {"total", *(f"{arm} >= 0" for arm in arms)}
    taken = set()
    for row in rows:
        with error_context(row.name):
            if row.size != len(arms):
                raise ProblemError(
                    f"{names.noun} {row.name!r} has {count(row.size, 'number')} for "
                    f"{count(len(arms), 'arm')}; give one per arm."
                )
            if row.name in taken:
                raise ProblemError(f"two {names.noun}s are named {row.name!r}; rename one.")
            if row.name in reserved:
                raise ProblemError(
                    f"the name {row.name!r} belongs to a rule that always holds: shares are at "
                    f"least 0 and sum to 1; rename the {names.noun}."
                )
        taken.add(row.name)
    return tuple(rows)


def _check_text(name: str, text: object, names: Names) -> list[Constraint]:
    """One constraint as a text, which may make several."""
    if not isinstance(text, str):
        raise ProblemError(
            f"{names.noun} {name!r} must be a text such as '{listed(names.arms[:1])} <= 0.5'; "
            f"got {reprlib.repr(text)}."
        )
    rows = Parser(text, name, names).read()
    for row in rows if rows[0].name != name else ():
        check_name(row.name, f"one row of {names.noun} {name!r}")
    return rows


def _check_table(given: Mapping[Any, Any], names: Names, table: str) -> list[Constraint]:
    """Texts by name, and a matrix with its bounds."""
    # A constraint may be named like a key of the matrix form, as long as there is no matrix.
    has_matrix = not isinstance(given.get("matrix", ""), str)
    rows = []
    for i, (name, text) in enumerate(given.items(), 1):
        if has_matrix and name in _MATRIX_KEYS:
            continue
        with error_context(str(name)):
            check_name(name, f"{names.noun} {i}")
            if isinstance(text, list) and name in _MATRIX_KEYS:
                raise ProblemError(f"{name!r} in [{table}] needs a matrix beside it; add matrix.")
            if isinstance(text, list) and (near := closest_match(name, _MATRIX_KEYS)):
                raise ProblemError(f"unknown key {name!r} in [{table}]; did you mean {near!r}?")
            if isinstance(text, Mapping):
                raise ProblemError(
                    f"{name!r} in [{table}] is a table; put a name with dots in quotes."
                )
            rows += _check_text(name, text, names)
    return [*_check_matrix(given, names, table), *rows] if has_matrix else rows


def _check_matrix(
    given: Mapping[str, object], names: Names, table: str = "constraints"
) -> list[Constraint]:
    """Constraints in matrix form, with bounds 'upper', 'lower', both, or 'equal'."""
    bounds = {key: given[key] for key in _BOUNDS if key in given}
    with error_context("matrix"):
        matrix = entries_of(given["matrix"])
        if matrix is None:
            raise ProblemError(
                f"matrix must be a list of rows; got {reprlib.repr(given['matrix'])}."
            )
        if not bounds:
            raise ProblemError(f"the matrix in [{table}] has no bounds; add upper, lower or equal.")
        names.reserve(len(names.arms), len(matrix))
    if "equal" in bounds and len(bounds) > 1:
        with error_context("equal"):
            raise ProblemError(
                f"the matrix in [{table}] has equal beside upper or lower; drop one of them. For "
                "an equality in some rows only, give these the same lower and upper."
            )
    size = len(matrix)
    with error_context("names"):
        labels = entries_of(given.get("names", [f"row{i}" for i in range(1, size + 1)]))
        if labels is None or len(labels) != size:
            raise ProblemError(
                f"names must be a list with one name for each of the matrix's "
                f"{count(size, 'row')}; got {reprlib.repr(given['names'])}."
            )
        labels = [check_name(label, f"row {i} of matrix") for i, label in enumerate(labels, 1)]
    with error_context("matrix"):
        rows = [
            check_vector(row, f"row {i} of matrix", "arm", names.arms)
            for i, row in enumerate(matrix, 1)
        ]
    numbers = {}
    for key, value in bounds.items():
        with error_context(key):
            numbers[key] = check_vector(value, key, "row", labels)
    equal = numbers.get("equal")
    lower = numbers.get("lower", np.full(size, -np.inf) if equal is None else equal)
    upper = numbers.get("upper", np.full(size, np.inf) if equal is None else equal)
    with error_context("matrix"):
        return [
            Constraint(label, row, low, high)
            for label, row, low, high in zip(labels, rows, lower, upper, strict=True)
        ]


def check_name(name: object, what: str) -> str:
    """A name that stands on one line."""
    if not isinstance(name, str):
        raise ProblemError(f"the name of {what} must be text; got {reprlib.repr(name)}.")
    if not name.strip():
        raise ProblemError(f"the name of {what} is empty; give it one.")
    if len(name) > _MAX_NAME:
        raise ProblemError(
            f"the name of {what} has {len(name):,} characters; at most {_MAX_NAME:,} are possible."
        )
    # A name stands on one line of a file: no line breaks, no control characters, and no
    # lone surrogates, which cannot be written at all.
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name):
        raise ProblemError(
            f"the name of {what}, {name!r}, contains a line break or control character; remove it."
        )
    # In the tables of a terminal these would turn around what stands beside the name.
    if any(unicodedata.bidirectional(c) in _BIDI_CONTROLS for c in name):
        raise ProblemError(
            f"the name of {what}, {name!r}, contains a character that changes the direction of "
            "writing; remove it. Words that are written from right to left need none."
        )
    return str(name)


def _check_operand(name: object, what: str) -> str:
    """Check a name that constraints use."""
    checked = check_name(name, what)
    if "`" in checked:
        raise ProblemError(
            f"the name of {what}, {checked!r}, contains a backtick, which quotes names in "
            "constraints; remove it."
        )
    return checked


def entries_of(value: object) -> list[Any] | None:
    """Return the entries of a list, tuple or array, and nothing for all else."""
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return list(array) if array.ndim else None
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    return None


def check_costs(
    given: object, arms: tuple[str, ...], groups: Mapping[str, tuple[str, ...]]
) -> Array:
    """What one pull of each arm costs: by name, 1 where none is given, or one number per arm."""
    if given is None or isinstance(given, Mapping):
        named = {} if given is None else given
        for name in named:
            with error_context(str(name)):
                if name in groups:
                    raise ProblemError(
                        f"{name!r} in costs is a group; give its arms their costs one by one."
                    )
                if name not in arms:
                    raise ProblemError(
                        f"costs names {reprlib.repr(name)}, which is not an arm; "
                        f"{_meant(name, arms)}"
                    )
        given = [named.get(arm, 1.0) for arm in arms]
    costs = check_vector(given, "costs", "arm", arms)
    for arm, cost in zip(arms, costs.tolist(), strict=True):
        if not 0 < cost < math.inf:
            with error_context(arm):
                raise ProblemError(
                    f"the cost of arm {arm!r} must be a positive number; got {cost:g}."
                )
    return frozen(costs)


def _meant(name: object, arms: Sequence[str]) -> str:
    """What a message about an unknown arm ends with."""
    near = closest_match(name, arms) if isinstance(name, str) else None
    return f"did you mean {near!r}?" if near else f"the arms are {listed(arms)}."


def frozen(array: Array) -> Array:
    """The array, from now on read-only."""
    array.flags.writeable = False
    return array


def check_delta(given: object) -> float:
    """A probability of error."""
    delta = check_number(given, "delta")
    if not 0 < delta < 1:
        raise ProblemError(f"delta must lie strictly between 0 and 1; got {delta:g}.")
    if delta < MIN_DELTA:
        raise ProblemError(f"delta must be at least {MIN_DELTA:g}; got {delta:g}.")
    return delta


def check_means(given: object, arms: Sequence[str]) -> Array:
    """One finite mean per arm."""
    try:
        means = check_vector(given, "means", "arm", arms)
    except ProblemError as error:
        raise MeansError(str(error)) from None
    for arm, mean in zip(arms, means.tolist(), strict=True):
        if not math.isfinite(mean):
            raise MeansError(f"the mean of arm {arm!r} is {mean}; it must be finite.")
    return means


def check_keys(table: Mapping[str, object], known: Sequence[str], where: str) -> None:
    """That a table of a problem file has no other keys."""
    for key in table:
        if key not in known:
            raise ProblemError(
                f"unknown key {reprlib.repr(key)}{where}{suggestion(str(key), known)}",
                place=Location(field=str(key)),
            )


def check_amount(given: object, what: str, unit: str) -> float:
    """A finite number, 0 or more."""
    amount = check_number(given, what)
    if not 0 <= amount < math.inf:
        raise ProblemError(f"{what} must be 0 or a positive number{unit}; got {amount:g}.")
    return amount + 0.0  # no negative zero


def check_finite(given: object, what: str) -> float:
    """A number that is neither infinite nor NaN."""
    number = check_number(given, what)
    if not math.isfinite(number):
        raise ProblemError(f"{what} must be finite; got {number:g}.")
    return number


def check_positive(given: object, what: str) -> float:
    """A finite number above 0."""
    number = check_finite(given, what)
    if number <= 0:
        raise ProblemError(f"{what} must be positive; got {number:g}.")
    return number


def check_number(value: object, what: str) -> float:
    """A number, finite or not."""
    if isinstance(value, bool) or not isinstance(value, NUMBERS):
        raise ProblemError(f"{what} must be a number; got {reprlib.repr(value)}.")
    try:
        return float(value)
    except OverflowError:
        raise ProblemError(f"{what} is too large for a float.") from None


def check_vector(values: object, what: str, noun: str, names: Sequence[str]) -> Array:
    """Check a list of numbers, one for each of the named arms or rows."""
    numbers = entries_of(values)
    if numbers is None:
        raise ProblemError(f"{what} must be a list of numbers; got {reprlib.repr(values)}.")
    if len(numbers) != len(names):
        raise ProblemError(
            f"{what} has {count(len(numbers), 'number')} for {count(len(names), noun)}; "
            f"give one per {noun}."
        )
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iuf":
        return values.astype(float)
    return np.array(
        [
            check_number(x, f"{what}: the entry for {noun} {name!r}")
            for name, x in zip(names, numbers, strict=True)
        ]
    )


def whole_number(value: object, name: str, least: int) -> None:
    """Raise `SettingError` unless the value is a whole number, not below the least."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        raise SettingError(f"{name} must be a whole number, {least} or more; got {value!r}.")
