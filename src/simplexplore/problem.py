"""What an experimenter knows: arms, constraints, kind of rewards, confidence.

A problem is read from a short TOML file or built in Python, and checked here as far as
its parts go one by one. Whether the constraints can hold together is for geometry to say.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import reprlib
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .constraints import (
    Constraint,
    format_constraint,
    listed,
    nearest,
    parse_constraint,
    pointed,
)
from .errors import MeansError, ProblemError, SettingError
from .families import FAMILIES, Family, Gaussian

if TYPE_CHECKING:
    import os

Array: TypeAlias = npt.NDArray[np.float64]
Constraints: TypeAlias = (
    Sequence[str | Constraint] | Mapping[str, str] | tuple[npt.ArrayLike, npt.ArrayLike]
)

SCENARIOS = ("end-of-time", "anytime")

_SETTINGS = ("arms", "means", "delta", "epsilon", "scenario")
_TABLES = ("rewards", "groups", "constraints")
_BOUNDS = ("upper", "lower", "equal")
_MATRIX_KEYS = ("matrix", *_BOUNDS, "names")

# tomllib's words for the two commonest slips do not say what to do.
_TOML_REASONS = {
    "Cannot overwrite a value": "this name is given twice; remove one",
    "Invalid value": "this is not a value; put texts in quotes",
}

# Lists in a written file break after this column.
_WIDEST = 100


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem:
    """A mix of arms to be found, and what is known about it beforehand.

    Immutable; its arrays are read-only. True means are no part of it: samplers are given
    a problem and never see them. `means` is a guess, for planning and simulation.

    Parameters
    ----------
    arms : sequence of str, or int
        Names of the arms, or how many there are; then they are called a1, a2, ...
    constraints : sequence, mapping or pair
        Texts such as ``"4*a - e <= 1"`` (named c1, c2, ... by their place) or
        `Constraint` objects; a mapping from names to texts; or a tuple ``(B, c)`` for
        ``B @ policy <= c`` (named row1, row2, ...). That shares are nonnegative and sum
        to one goes without saying.
    rewards : Family, optional
        Gaussian with standard deviation 1 unless given.
    scenario : {"end-of-time", "anytime"}
        Whether only the final recommendation must satisfy the constraints, or the
        allocation of samples as well.
    delta : float
        Greatest probability of a wrong recommendation, strictly between 0 and 1.
    groups : mapping of str to sequence of str, optional
        Names that stand for sums of arms in constraints.
    means : array_like, shape (K,), optional
        A guess of the means.
    epsilon : float
        A policy that earns up to this much less than the best is good enough; 0 asks for the
        best itself.

    Attributes
    ----------
    size : int
        Number of arms, K.
    names : tuple of str
        Names of the constraints.
    matrix : ndarray, shape (m, K)
        Their coefficients.
    lower, upper : ndarray, shape (m,)
        Their bounds, infinite where there is none.

    Examples
    --------
    >>> problem = Problem(["a", "b", "c"], {"front": "a + b <= 1/2"}, scenario="anytime")
    >>> problem
    <Problem: 3 arms, 1 constraint, gaussian rewards, anytime, delta 0.1>
    >>> problem.matrix, problem.upper
    (array([[1., 1., 0.]]), array([0.5]))
    """

    arms: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    rewards: Family
    scenario: str
    delta: float
    groups: Mapping[str, tuple[str, ...]]
    means: Array | None
    epsilon: float
    names: tuple[str, ...]
    matrix: Array
    lower: Array
    upper: Array

    def __init__(
        self,
        arms: Sequence[str] | int,
        constraints: Constraints = (),
        rewards: Family | None = None,
        scenario: str = "end-of-time",
        delta: float = 0.1,
        groups: Mapping[str, Sequence[str]] | None = None,
        means: npt.ArrayLike | None = None,
        epsilon: float = 0.0,
    ) -> None:
        checked_arms = _check_arms(arms)
        checked_groups = _check_groups({} if groups is None else groups, checked_arms)
        rows = _check_constraints(constraints, checked_arms, checked_groups)

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("arms", checked_arms)
        put("groups", MappingProxyType(checked_groups))
        put("constraints", rows)
        put("names", tuple(row.name for row in rows))
        put("matrix", _frozen(np.reshape([row.coefficients for row in rows], (-1, self.size))))
        put("lower", _frozen(np.array([row.lower for row in rows], dtype=float)))
        put("upper", _frozen(np.array([row.upper for row in rows], dtype=float)))
        put("rewards", _check_rewards(Gaussian() if rewards is None else rewards, self.size))
        put("scenario", _check_scenario(scenario))
        put("delta", _check_delta(delta))
        put("means", None if means is None else self.check_means(means))
        put("epsilon", _check_epsilon(epsilon))

    @property
    def size(self) -> int:
        """Number of arms."""
        return len(self.arms)

    def _content(self) -> dict[str, Any]:
        """Return the arguments that make this problem again."""
        return {
            "arms": self.arms,
            "constraints": self.constraints,
            "rewards": self.rewards,
            "scenario": self.scenario,
            "delta": self.delta,
            "groups": dict(self.groups),
            "means": None if self.means is None else tuple(self.means.tolist()),
            "epsilon": self.epsilon,
        }

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Problem) else NotImplemented

    def __hash__(self) -> int:
        content = self._content()
        return hash((frozenset(content.pop("groups").items()), *content.values()))

    def __reduce__(self) -> tuple[object, ...]:
        # Through the constructor: mapping proxies cannot be pickled, and arrays would
        # come back writeable.
        return Problem, tuple(self._content().values())

    def __repr__(self) -> str:
        return (
            f"<Problem: {_count(self.size, 'arm')}, {_count(len(self.names), 'constraint')}, "
            f"{self.rewards.name} rewards, {self.scenario}, delta {self.delta:g}"
            f"{f', epsilon {self.epsilon:g}' if self.epsilon else ''}>"
        )

    def replace(self, **changes: Any) -> Problem:
        """Return a copy with some of the constructor's arguments changed.

        Examples
        --------
        >>> Problem(2).replace(delta=0.01).delta
        0.01
        """
        return Problem(**(self._content() | changes))

    def check_means(self, means: npt.ArrayLike) -> Array:
        """Return means as a read-only array, or say what is wrong with them.

        Parameters
        ----------
        means : array_like, shape (K,)
            One mean per arm.

        Raises
        ------
        MeansError
            If their number is wrong, or one is not finite or outside the range of the
            rewards' family.
        """
        try:
            array = _vector(means, "means", "arm", self.arms)
        except ProblemError as error:
            raise MeansError(str(error)) from None
        for arm, mean in zip(self.arms, array, strict=True):
            if not math.isfinite(mean):
                raise MeansError(f"the mean of arm {arm!r} is {mean}; it must be finite.")
        self.rewards.check_means(array, self.arms)
        return _frozen(array)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Problem:
        """Read a problem file.

        Raises
        ------
        ProblemError
            If the file cannot be read or does not describe a problem. The message
            starts with the file's name.
        """
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            place = "" if Path(path).is_absolute() else f" in {Path.cwd()}"
            raise ProblemError(f"{path}: there is no such file{place}.") from None
        except IsADirectoryError:
            raise ProblemError(f"{path}: this is a folder; name a file in it.") from None
        except (OSError, ValueError) as error:
            raise ProblemError(f"{path}: cannot read it: {_reason(error)}.") from None
        try:
            # Some editors begin a file with a byte order mark, which TOML does not know.
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise ProblemError(
                f"{path}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8 text; "
                "save the file as UTF-8."
            ) from None
        return cls.from_text(text, source=str(path))

    @classmethod
    def from_text(cls, text: str, source: str = "<text>") -> Problem:
        r"""Read a problem from the text of a problem file.

        Parameters
        ----------
        text : str
            TOML.
        source : str
            What error messages call it.

        Examples
        --------
        >>> Problem.from_text('arms = ["a", "b"]\n[constraints]\ncap = "a <= 1/3"').upper
        array([0.33333333])
        """
        table = _parse_toml(text, source)
        try:
            return cls(**_arguments(table))
        except (ProblemError, MeansError) as error:
            raise type(error)(f"{source}: {error}") from None

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write a problem file that :meth:`from_file` reads back as an equal problem."""
        text = self.to_text()
        try:
            Path(path).write_text(text, encoding="utf-8", newline="\n")
        except (OSError, ValueError) as error:
            raise SettingError(f"{path}: cannot write it: {_reason(error)}.") from None

    def to_text(self) -> str:
        """Return the text that :meth:`to_file` writes.

        Examples
        --------
        >>> print(Problem(["a", "b"], {"cap": "3*a <= 1"}).to_text(), end="")
        arms = ["a", "b"]
        delta = 0.1
        scenario = "end-of-time"
        <BLANKLINE>
        [rewards]
        family = "gaussian"
        sigma = 1.0
        <BLANKLINE>
        [constraints]
        cap = "3*a <= 1"
        """
        top: dict[str, object] = {"arms": self.arms}
        if self.means is not None:
            top["means"] = self.means.tolist()
        top["delta"] = self.delta
        if self.epsilon:
            top["epsilon"] = self.epsilon
        top["scenario"] = self.scenario
        parameters = {key: getattr(self.rewards, key) for key in _parameters(self.rewards)}
        tables: dict[str, Mapping[str, object]] = {
            "rewards": {"family": self.rewards.name} | parameters,
            "groups": self.groups,
            "constraints": {
                row.name: format_constraint(row, self.arms, self.groups) for row in self.constraints
            },
        }
        parts = [_toml_lines(top)]
        parts += [f"[{name}]\n{_toml_lines(table)}" for name, table in tables.items() if table]
        return "\n".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _guess(word: str, known: Sequence[str]) -> str:
    """Return how a message about an unknown word goes on."""
    if guess := nearest(word, known):
        return f"; did you mean {guess!r}?"
    return f"; use {', '.join(map(repr, known[:-1]))} or {known[-1]!r}."


def _parameters(family: Family | type[Family]) -> list[str]:
    """Return the names of a family's parameters, its own before the domain that all have."""
    return sorted((f.name for f in dataclasses.fields(family)), key="domain".__eq__)


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _items(value: object) -> list[Any] | None:
    """Return the entries of a list, tuple or array, and nothing for all else."""
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return list(array) if array.ndim else None
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    return None


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ProblemError(f"{what} must be a number; got {reprlib.repr(value)}.")
    try:
        return float(value)
    except OverflowError:
        raise ProblemError(f"{what} is too large for a float.") from None


def _vector(values: object, what: str, noun: str, names: Sequence[str]) -> Array:
    """Check a list of numbers, one for each of the named arms or rows."""
    numbers = _items(values)
    if numbers is None:
        raise ProblemError(f"{what} must be a list of numbers; got {reprlib.repr(values)}.")
    if len(numbers) != len(names):
        raise ProblemError(
            f"{what} has {_count(len(numbers), 'number')} for {_count(len(names), noun)}; "
            f"give one per {noun}."
        )
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iuf":
        return values.astype(float)
    return np.array(
        [
            _number(x, f"{what}: the entry for {noun} {name!r}")
            for name, x in zip(names, numbers, strict=True)
        ]
    )


def _check_name(name: object, what: str) -> str:
    if not isinstance(name, str):
        raise ProblemError(f"the name of {what} must be text; got {reprlib.repr(name)}.")
    if not name.strip():
        raise ProblemError(f"the name of {what} is empty; give it one.")
    # A name stands on one line of a file: no line breaks, no control characters, and no
    # lone surrogates, which cannot be written at all.
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name):
        raise ProblemError(
            f"the name of {what}, {name!r}, contains a line break or control character; remove it."
        )
    return str(name)


def _check_operand(name: object, what: str) -> str:
    """Check a name that constraints use."""
    checked = _check_name(name, what)
    if "`" in checked:
        raise ProblemError(
            f"the name of {what}, {checked!r}, contains a backtick, which quotes names in "
            "constraints; remove it."
        )
    return checked


def _check_arms(arms: object) -> tuple[str, ...]:
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        if arms < 1:
            raise ProblemError(f"there must be at least one arm; got arms = {arms}.")
        return tuple(f"a{i}" for i in range(1, int(arms) + 1))
    names = _items(arms)
    if names is None:
        raise ProblemError(f"arms must be a list of names; got {reprlib.repr(arms)}.")
    if not names:
        raise ProblemError("arms is empty; name at least one arm.")
    places: dict[str, int] = {}
    for i, arm in enumerate(names, 1):
        name = _check_operand(arm, f"arm {i}")
        if name in places:
            raise ProblemError(
                f"arms {places[name]} and {i} are both named {name!r}; names must differ."
            )
        places[name] = i
    return tuple(places)


def _check_groups(groups: object, arms: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    if not isinstance(groups, Mapping):
        raise ProblemError(f"groups must map names to lists of arms; got {reprlib.repr(groups)}.")
    known = set(arms)
    checked: dict[str, tuple[str, ...]] = {}
    for i, (name, value) in enumerate(groups.items(), 1):
        group = _check_operand(name, f"group {i}")
        if group in known:
            raise ProblemError(f"group {group!r} has the name of an arm; rename it.")
        members = _items(value)
        if members is None:
            raise ProblemError(
                f"group {group!r} must be a list of arms; got {reprlib.repr(value)}."
            )
        if not members:
            raise ProblemError(f"group {group!r} is empty; list its arms, or drop it.")
        seen: dict[str, None] = {}
        for arm in members:
            if not isinstance(arm, str) or arm not in known:
                if isinstance(arm, str) and arm in groups:
                    advice = "list its arms instead."
                elif isinstance(arm, str) and (guess := nearest(arm, arms)):
                    advice = f"did you mean {guess!r}?"
                else:
                    advice = f"the arms are {listed(arms)}."
                raise ProblemError(
                    f"group {group!r} contains {reprlib.repr(arm)}, which is not an arm; {advice}"
                )
            if arm in seen:
                raise ProblemError(f"group {group!r} contains {arm!r} twice; remove one.")
            seen[str(arm)] = None
        checked[group] = tuple(seen)
    return checked


def _check_constraints(
    constraints: object, arms: tuple[str, ...], groups: Mapping[str, tuple[str, ...]]
) -> tuple[Constraint, ...]:
    if isinstance(constraints, Mapping):
        rows = _check_texts(constraints, arms, groups)
    elif (
        isinstance(constraints, tuple)
        and len(constraints) == 2
        and not isinstance(constraints[0], str | Constraint)
    ):
        rows = _check_matrix(constraints[0], {"upper": constraints[1]}, None, arms)
    elif (entries := _items(constraints)) is not None:
        rows = []
        for i, entry in enumerate(entries, 1):
            if isinstance(entry, Constraint):
                _check_name(entry.name, f"constraint {i}")
                rows.append(entry)
            else:
                rows += _check_texts({f"c{i}": entry}, arms, groups)
    else:
        raise ProblemError(
            "constraints must be a list of texts, a mapping from names to texts, or a tuple "
            f"(matrix, upper bounds); got {reprlib.repr(constraints)}."
        )
    # Results speak of the simplex's own constraints by these names.
    reserved = {"total", *(f"{arm} >= 0" for arm in arms)}
    names = set()
    for row in rows:
        if len(row.coefficients) != len(arms):
            raise ProblemError(
                f"constraint {row.name!r} has {_count(len(row.coefficients), 'number')} for "
                f"{_count(len(arms), 'arm')}; give one per arm."
            )
        if row.name in names:
            raise ProblemError(f"two constraints are named {row.name!r}; rename one.")
        if row.name in reserved:
            raise ProblemError(
                f"the name {row.name!r} belongs to a rule that always holds: shares are at least "
                "0 and sum to 1; rename the constraint."
            )
        names.add(row.name)
    return tuple(rows)


def _check_texts(
    texts: Mapping[Any, Any], arms: tuple[str, ...], groups: Mapping[str, tuple[str, ...]]
) -> list[Constraint]:
    rows = []
    for i, (name, text) in enumerate(texts.items(), 1):
        _check_name(name, f"constraint {i}")
        if not isinstance(text, str):
            raise ProblemError(
                f"constraint {name!r} must be a text such as '{listed(arms[:1])} <= 0.5'; "
                f"got {reprlib.repr(text)}."
            )
        rows.append(parse_constraint(text, name, arms, groups))
    return rows


def _check_matrix(
    matrix: object, bounds: Mapping[str, object], names: object, arms: tuple[str, ...]
) -> list[Constraint]:
    """Check constraints in matrix form, with bounds 'upper', 'lower', both, or 'equal'."""
    given = _items(matrix)
    if given is None:
        raise ProblemError(f"matrix must be a list of rows; got {reprlib.repr(matrix)}.")
    size = len(given)
    labels = [f"row{i}" for i in range(1, size + 1)] if names is None else _items(names)
    if labels is None or len(labels) != size:
        raise ProblemError(
            f"names must be a list with one name for each of the matrix's {_count(size, 'row')}; "
            f"got {reprlib.repr(names)}."
        )
    labels = [_check_name(label, f"row {i} of matrix") for i, label in enumerate(labels, 1)]
    rows = [_vector(row, f"row {i} of matrix", "arm", arms) for i, row in enumerate(given, 1)]
    numbers = {key: _vector(value, key, "row", labels) for key, value in bounds.items()}
    equal = numbers.get("equal")
    lower = numbers.get("lower", np.full(size, -np.inf) if equal is None else equal)
    upper = numbers.get("upper", np.full(size, np.inf) if equal is None else equal)
    return [
        Constraint(label, row, low, high)
        for label, row, low, high in zip(labels, rows, lower, upper, strict=True)
    ]


def _check_rewards(rewards: object, size: int) -> Family:
    if not isinstance(rewards, Family):
        raise ProblemError(
            "rewards must be Gaussian(...), Bernoulli(...), Poisson(...) or Bounded(...); "
            f"got {reprlib.repr(rewards)}."
        )
    rewards.sigmas(size)  # refuses a wrong number of them
    return rewards


def _check_scenario(scenario: object) -> str:
    if not isinstance(scenario, str) or scenario not in SCENARIOS:
        raise ProblemError(
            f"unknown scenario {reprlib.repr(scenario)}{_guess(str(scenario), SCENARIOS)}"
        )
    return str(scenario)


def _check_delta(delta: object) -> float:
    number = _number(delta, "delta")
    if not 0 < number < 1:
        raise ProblemError(f"delta must lie strictly between 0 and 1; got {number:g}.")
    return number


def _check_epsilon(epsilon: object) -> float:
    number = _number(epsilon, "epsilon")
    if not 0 <= number < math.inf:
        raise ProblemError(
            f"epsilon must be 0 or a positive number, in the unit of rewards; got {number:g}."
        )
    return number + 0.0  # no negative zero


def _parse_toml(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ProblemError(f"{source}: not valid TOML: brackets are nested too deeply.") from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
    except ValueError:  # from Python's limit on the digits of an integer
        raise ProblemError(f"{source}: a number in it has too many digits; round it.") from None
    lines = text.replace("\r\n", "\n").rstrip().split("\n")
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    if place is None:
        raise ProblemError(f"{source}: not valid TOML: {message}.")
    reason = message[: place.start()]
    reason = _TOML_REASONS.get(reason, reason[:1].lower() + reason[1:])
    line = min(int(place[1] or len(lines)), len(lines))
    column = int(place[2] or len(lines[-1]) + 1)
    raise ProblemError(
        f"{source}, line {line}: not valid TOML: {reason}.\n"
        + pointed(lines[line - 1], column - 1, column)
    )


def _arguments(file: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a file's content into the arguments of a problem; check what only files have."""
    for key in file:
        if any(key in ("family", *_parameters(family)) for family in FAMILIES.values()):
            raise ProblemError(f"{key!r} belongs below the line [rewards]; move it there.")
        if key not in (*_SETTINGS, *_TABLES):
            raise ProblemError(f"unknown key {key!r}{_guess(key, (*_SETTINGS, *_TABLES))}")
    tables = {key: file.get(key, {}) for key in _TABLES}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ProblemError(
                f"{name} must be a table, a line [{name}] with its entries below; "
                f"got {reprlib.repr(table)}."
            )
        for key in _SETTINGS:
            if key in table and not _belongs(key, table[key], name, file):
                raise ProblemError(
                    f"{key!r} stands below the line [{name}] and so became part of it; move it "
                    "above the first line in brackets."
                )
    if "arms" not in file:
        raise ProblemError('arms is missing; begin with a line such as arms = ["a", "b"].')
    arguments = {key: file[key] for key in _SETTINGS if key in file}
    arms = _check_arms(file["arms"])
    groups = _check_groups(tables["groups"], arms)
    return arguments | {
        "groups": groups,
        "rewards": _file_rewards(tables["rewards"]) if "rewards" in file else None,
        "constraints": _file_constraints(tables["constraints"], arms, groups),
    }


def _belongs(key: str, value: object, table: str, file: Mapping[str, Any]) -> bool:
    """Tell a group or constraint that has a setting's name from the setting, misplaced."""
    if key == "arms" and "arms" not in file:
        return False
    if table == "groups":
        return isinstance(value, list) and all(isinstance(x, str) for x in value)
    if table == "constraints":
        return isinstance(value, str) and re.search("[<>=≤≥]", value) is not None
    return False


def _file_rewards(table: Mapping[str, Any]) -> Family:
    if "family" not in table:
        raise ProblemError(f"family is missing in [rewards]{_guess('', tuple(FAMILIES))}")
    parameters = dict(table)
    name = parameters.pop("family")
    if not isinstance(name, str) or name not in FAMILIES:
        raise ProblemError(
            f"unknown family {name!r} in [rewards]{_guess(str(name), tuple(FAMILIES))}"
        )
    known = _parameters(FAMILIES[name])
    for key in parameters:
        if key in known:
            continue
        if any(key in _parameters(family) for family in FAMILIES.values()):
            raise ProblemError(
                f"{key!r} in [rewards] is not for {name} rewards, which take only "
                f"{', '.join(known)}; remove it, or change family."
            )
        raise ProblemError(f"unknown key {key!r} in [rewards]{_guess(key, ('family', *known))}")
    return FAMILIES[name](**parameters)


def _file_constraints(
    table: Mapping[str, Any], arms: tuple[str, ...], groups: Mapping[str, tuple[str, ...]]
) -> list[Constraint]:
    # A constraint may be named like a key of the matrix form, as long as there is none.
    in_matrix_form = not isinstance(table.get("matrix", ""), str)
    texts = {
        key: value for key, value in table.items() if not (in_matrix_form and key in _MATRIX_KEYS)
    }
    for key, value in texts.items():
        if isinstance(value, list) and key in _MATRIX_KEYS:
            raise ProblemError(f"{key!r} in [constraints] needs a matrix beside it; add matrix.")
        if isinstance(value, list) and (guess := nearest(key, _MATRIX_KEYS)):
            raise ProblemError(f"unknown key {key!r} in [constraints]; did you mean {guess!r}?")
        if isinstance(value, dict):
            raise ProblemError(
                f"{key!r} in [constraints] is a table; put a name with dots in quotes."
            )
    rows = _check_texts(texts, arms, groups)
    if not in_matrix_form:
        return rows
    bounds = {key: table[key] for key in _BOUNDS if key in table}
    if not bounds:
        raise ProblemError("the matrix in [constraints] has no bounds; add upper, lower or equal.")
    if "equal" in bounds and len(bounds) > 1:
        raise ProblemError(
            "the matrix in [constraints] has equal beside upper or lower; drop one of them. For "
            "an equality in some rows only, give these the same lower and upper."
        )
    return _check_matrix(table["matrix"], bounds, table.get("names"), arms) + rows


def _toml_lines(table: Mapping[str, object]) -> str:
    return "".join(
        f"{_toml_entry(key if re.fullmatch('[A-Za-z0-9_-]+', key) else _toml_value(key), value)}\n"
        for key, value in table.items()
        if value is not None
    )


def _toml_entry(key: str, value: object) -> str:
    entry = f"{key} = {_toml_value(value)}"
    if len(entry) <= _WIDEST or not isinstance(value, list | tuple):
        return entry
    lines = [f"{key} = [", "   "]
    for part in map(_toml_value, value):
        if len(lines[-1]) + len(part) + 2 > _WIDEST:
            lines.append("   ")
        lines[-1] += f" {part},"
    return "\n".join([*lines, "]"])


def _toml_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    # JSON's strings are TOML's basic strings; floats are the same in Python and TOML.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
