"""The parts of a problem, checked one by one.

Each function takes a value as given, in a file or in Python, and returns it in the form that a
problem keeps, or says what is wrong with it.
"""

from __future__ import annotations

import math
import reprlib
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import ProblemError, SettingError

from .constraint import Constraint
from .language import MOST_COEFFICIENTS, NOUNS, Operands
from .places import about
from .spelling import count, listed, nearest

Array = npt.NDArray[np.float64]

# Far more than anything here can be computed for; a larger number would only fill memory.
MOST_ARMS = 100_000

# Characters of a name.
_LONGEST_NAME = 1_000

# Characters that turn the direction of writing around, by force; letters that have one need none.
_TURNS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))


def check_arms(arms: object) -> tuple[str, ...]:
    """Names of arms, or their number."""
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        if arms < 1:
            raise ProblemError(f"there must be at least one arm; got arms = {arms}.")
        _check_size(int(arms))
        return tuple(f"a{i}" for i in range(1, int(arms) + 1))
    names = _items(arms)
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
    if size > MOST_ARMS:
        raise ProblemError(f"there are {count(size, 'arm')}; at most {MOST_ARMS:,} are possible.")


def check_groups(groups: object, arms: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Groups: names for lists of arms."""
    if not isinstance(groups, Mapping):
        raise ProblemError(f"groups must map names to lists of arms; got {reprlib.repr(groups)}.")
    known = set(arms)
    checked: dict[str, tuple[str, ...]] = {}
    for i, (name, value) in enumerate(groups.items(), 1):
        with about(str(name)):
            group = _check_operand(name, f"group {i}")
            if group in known:
                raise ProblemError(f"group {group!r} has the name of an arm; rename it.")
            checked[group] = _check_members(group, value, groups, arms, known)
    return checked


def _check_members(
    group: str,
    value: object,
    groups: Mapping[Any, Any],
    arms: tuple[str, ...],
    known: set[str],
) -> tuple[str, ...]:
    """The arms of one group."""
    members = _items(value)
    if members is None:
        raise ProblemError(f"group {group!r} must be a list of arms; got {reprlib.repr(value)}.")
    if not members:
        raise ProblemError(f"group {group!r} is empty; list its arms, or drop it.")
    seen: dict[str, None] = {}
    for arm in members:
        if not isinstance(arm, str) or arm not in known:
            if isinstance(arm, str) and arm in groups:
                advice = "list its arms instead."
            elif isinstance(arm, str) and (near := nearest(arm, arms)):
                advice = f"did you mean {near!r}?"
            else:
                advice = f"the arms are {listed(arms)}."
            raise ProblemError(
                f"group {group!r} contains {reprlib.repr(arm)}, which is not an arm; {advice}"
            )
        if arm in seen:
            raise ProblemError(f"group {group!r} contains {arm!r} twice; remove one.")
        seen[str(arm)] = None
    return tuple(seen)


def check_constraints(
    constraints: object,
    arms: tuple[str, ...],
    groups: Mapping[str, tuple[str, ...]],
    table: str = "constraints",
) -> tuple[Constraint, ...]:
    """Constraints, or limits on exploration, in any of the forms that `Problem` takes."""
    operands, noun = Operands(arms, groups, table), NOUNS[table]
    if isinstance(constraints, Mapping):
        rows = check_texts(constraints, operands)
    elif (
        isinstance(constraints, tuple)
        and len(constraints) == 2
        and not isinstance(constraints[0], str | Constraint)
    ):
        rows = check_matrix(constraints[0], {"upper": constraints[1]}, None, arms)
    elif (entries := _items(constraints)) is not None:
        _check_room(len(entries), operands.entries, noun)
        rows = []
        for i, entry in enumerate(entries, 1):
            if isinstance(entry, Constraint):
                check_name(entry.name, f"{noun} {i}")
                rows.append(entry)
            else:
                rows += check_texts({f"c{i}": entry}, operands)
    else:
        raise ProblemError(
            f"{table} must be a list of texts, a mapping from names to texts, or a tuple "
            f"(matrix, upper bounds); got {reprlib.repr(constraints)}."
        )
    # Results speak of the simplex's own constraints by these names.
    reserved = {"total", *(f"{arm} >= 0" for arm in arms)}
    names = set()
    for row in rows:
        with about(row.name):
            if len(row.coefficients) != len(arms):
                raise ProblemError(
                    f"{noun} {row.name!r} has {count(len(row.coefficients), 'number')} for "
                    f"{count(len(arms), 'arm')}; give one per arm."
                )
            if row.name in names:
                raise ProblemError(f"two {noun}s are named {row.name!r}; rename one.")
            if row.name in reserved:
                raise ProblemError(
                    f"the name {row.name!r} belongs to a rule that always holds: shares are at "
                    f"least 0 and sum to 1; rename the {noun}."
                )
        names.add(row.name)
    return tuple(rows)


def _check_room(constraints: int, entries: int, noun: str = "constraint") -> None:
    if constraints * entries > MOST_COEFFICIENTS:
        raise ProblemError(
            f"{count(constraints, noun)} over {count(entries, 'arm')} (members of groups "
            f"included) have more than {MOST_COEFFICIENTS:,} coefficients; use fewer."
        )


def check_texts(texts: Mapping[Any, Any], operands: Operands) -> list[Constraint]:
    """Constraints as texts, by name."""
    noun = operands.noun
    _check_room(len(texts), operands.entries, noun)
    rows = []
    for i, (name, text) in enumerate(texts.items(), 1):
        with about(str(name)):
            check_name(name, f"{noun} {i}")
            if not isinstance(text, str):
                raise ProblemError(
                    f"{noun} {name!r} must be a text such as "
                    f"'{listed(operands.arms[:1])} <= 0.5'; "
                    f"got {reprlib.repr(text)}."
                )
            found = operands.parse(text, name)
            for row in found if found[0].name != name else ():
                check_name(row.name, f"one row of {noun} {name!r}")
            rows += found
    return rows


def check_matrix(
    matrix: object, bounds: Mapping[str, object], names: object, arms: tuple[str, ...]
) -> list[Constraint]:
    """Check constraints in matrix form, with bounds 'upper', 'lower', both, or 'equal'."""
    with about("matrix"):
        given = _items(matrix)
        if given is None:
            raise ProblemError(f"matrix must be a list of rows; got {reprlib.repr(matrix)}.")
        _check_room(len(given), len(arms))
    size = len(given)
    with about("names"):
        labels = [f"row{i}" for i in range(1, size + 1)] if names is None else _items(names)
        if labels is None or len(labels) != size:
            raise ProblemError(
                f"names must be a list with one name for each of the matrix's "
                f"{count(size, 'row')}; got {reprlib.repr(names)}."
            )
        labels = [check_name(label, f"row {i} of matrix") for i, label in enumerate(labels, 1)]
    with about("matrix"):
        rows = [
            check_vector(row, f"row {i} of matrix", "arm", arms) for i, row in enumerate(given, 1)
        ]
    numbers = {}
    for key, value in bounds.items():
        with about(key):
            numbers[key] = check_vector(value, key, "row", labels)
    equal = numbers.get("equal")
    lower = numbers.get("lower", np.full(size, -np.inf) if equal is None else equal)
    upper = numbers.get("upper", np.full(size, np.inf) if equal is None else equal)
    with about("matrix"):
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
    if len(name) > _LONGEST_NAME:
        raise ProblemError(
            f"the name of {what} has {len(name):,} characters; at most {_LONGEST_NAME:,} are "
            "possible."
        )
    # A name stands on one line of a file: no line breaks, no control characters, and no
    # lone surrogates, which cannot be written at all.
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name):
        raise ProblemError(
            f"the name of {what}, {name!r}, contains a line break or control character; remove it."
        )
    # In the tables of a terminal these would turn around what stands beside the name.
    if any(unicodedata.bidirectional(c) in _TURNS for c in name):
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


def _items(value: object) -> list[Any] | None:
    """Return the entries of a list, tuple or array, and nothing for all else."""
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return list(array) if array.ndim else None
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    return None


def check_costs(
    costs: object, arms: tuple[str, ...], groups: Mapping[str, tuple[str, ...]]
) -> Array:
    """What one pull of each arm costs: by name, 1 where none is given, or one number per arm."""
    if costs is None or isinstance(costs, Mapping):
        named = {} if costs is None else costs
        for name in named:
            with about(str(name)):
                if name not in arms:
                    raise ProblemError(_not_an_arm(name, arms, groups))
        costs = [named.get(arm, 1.0) for arm in arms]
    found = check_vector(costs, "costs", "arm", arms)
    for arm, cost in zip(arms, found.tolist(), strict=True):
        if not 0 < cost < math.inf:
            with about(arm):
                raise ProblemError(
                    f"the cost of arm {arm!r} must be a positive number; got {cost:g}."
                )
    return found


def _not_an_arm(name: object, arms: tuple[str, ...], groups: Mapping[str, tuple[str, ...]]) -> str:
    if name in groups:
        return f"{name!r} in costs is a group; give its arms their costs one by one."
    near = nearest(str(name), arms)
    advice = f"did you mean {near!r}?" if near else f"the arms are {listed(arms)}."
    return f"costs names {reprlib.repr(name)}, which is not an arm; {advice}"


def check_number(value: object, what: str) -> float:
    """A number, finite or not."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ProblemError(f"{what} must be a number; got {reprlib.repr(value)}.")
    try:
        return float(value)
    except OverflowError:
        raise ProblemError(f"{what} is too large for a float.") from None


def check_vector(values: object, what: str, noun: str, names: Sequence[str]) -> Array:
    """Check a list of numbers, one for each of the named arms or rows."""
    numbers = _items(values)
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
