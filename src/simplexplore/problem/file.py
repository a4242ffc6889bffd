"""Problem files: TOML in, the arguments of a problem out, and back."""

from __future__ import annotations

import dataclasses
import json
import re
import reprlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplexplore.errors import Place, ProblemError, SettingError

from .checks import check_arms, check_groups, check_matrix, check_texts
from .families import FAMILIES
from .family import Family
from .language import NOUNS, Operands
from .places import about
from .spelling import guess, nearest, pointed

if TYPE_CHECKING:
    import os

    from .constraint import Constraint

_SETTINGS = ("arms", "means", "delta", "epsilon", "stop_when", "scenario", "room")
_TABLES = ("rewards", "groups", "constraints", "exploration", "costs", "measured")
_BOUNDS = ("upper", "lower", "equal")
_MATRIX_KEYS = ("matrix", *_BOUNDS, "names")

# tomllib's words for the commonest slips do not say what to do.
_TOML_REASONS = {
    r"Cannot overwrite a value": "this name is given twice; remove one",
    r"Cannot declare \('([^']+)',\) twice": r"the line [\1] stands twice; join what is below",
    r"Invalid value": "this is not a value; put texts in quotes",
    r"Invalid statement": "this is neither 'name = value' nor a '[table]'",
    r"Expected newline or end of document after a statement": "the value ends here; write 10% "
    "as 0.1, decimals with a point, texts in quotes",
    r"Unclosed array": "unclosed array: here a comma or ']' is missing, or something is not a "
    "number",
}

# Characters of a problem file, and names that a key joins by dots: tomllib's time grows with their
# square.
MOST_TEXT = 2**24
_MOST_PARTS = 100
_DOTTED = re.compile(
    r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')(?:[ \t]*\.[ \t]*(?:[\w-]+|"[^"\n]*"|'[^'\n]*'))*"""
)

# Lists in a written file break after this column.
_WIDEST = 100


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a problem file as it is."""
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            content = file.read(4 * MOST_TEXT + 1)  # a character has at most four bytes
    except FileNotFoundError:
        place = "" if Path(path).is_absolute() else f" in {Path.cwd()}"
        raise ProblemError(f"{path}: there is no such file{place}.", place=Place(name)) from None
    except IsADirectoryError:
        raise ProblemError(
            f"{path}: this is a folder; name a file in it.", place=Place(name)
        ) from None
    except (OSError, ValueError) as error:
        raise ProblemError(
            f"{path}: cannot read it: {_reason(error)}.", place=Place(name)
        ) from None
    try:
        # Some editors begin a file with a byte order mark, which TOML does not know.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ProblemError(
            f"{path}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8 text; "
            "save the file as UTF-8.",
            place=Place(name, line),
        ) from None


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Read TOML, or say at which line and place it is none."""
    if len(text) > MOST_TEXT:
        raise ProblemError(
            f"{source}: a problem has at most {MOST_TEXT:,} characters.", place=Place(source)
        )
    for chain in _DOTTED.finditer(text):
        if chain.group().count(".") > _MOST_PARTS:
            raise ProblemError(
                f"{source}: more than {_MOST_PARTS} names are joined by dots; put a name with dots "
                "in quotes.",
                place=Place(source, text.count("\n", 0, chain.start()) + 1),
            )
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ProblemError(
            f"{source}: not valid TOML: brackets are nested too deeply.", place=Place(source)
        ) from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
    except ValueError:  # from Python's limit on the digits of an integer
        raise ProblemError(
            f"{source}: a number in it has too many digits; round it.", place=Place(source)
        ) from None
    lines = text.replace("\r\n", "\n").rstrip().split("\n")
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    if place is None:
        raise ProblemError(f"{source}: not valid TOML: {message}.", place=Place(source))
    reason = message[0].lower() + message[1 : place.start()]
    for pattern, words in _TOML_REASONS.items():
        if found := re.fullmatch(pattern, message[: place.start()]):
            reason = found.expand(words)
    line = min(int(place[1] or len(lines)), len(lines))
    column = int(place[2] or len(lines[-1]) + 1)
    raise ProblemError(
        f"{source}, line {line}: not valid TOML: {reason}.\n"
        + pointed(lines[line - 1], column - 1, column),
        place=Place(source, line),
    )


def arguments(file: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a file's content into the arguments of a problem; check what only files have."""
    for key in file:
        with about(key):
            _check_key(key)
    tables = {key: file.get(key, {}) for key in _TABLES}
    for name, table in tables.items():
        with about(name):
            _check_table(name, table, file)
    if "arms" not in file:
        raise ProblemError('arms is missing; begin with a line such as arms = ["a", "b"].')
    settings = {key: file[key] for key in _SETTINGS if key in file}
    with about("arms"):
        arms = check_arms(file["arms"])
    with about("groups"):
        groups = check_groups(tables["groups"], arms)
    with about("rewards"):
        rewards = _file_rewards(tables["rewards"]) if "rewards" in file else None
    rows = {}
    for name in NOUNS:
        with about(name):
            rows[name] = _file_constraints(name, tables[name], arms, groups)
    rest = {"rewards": rewards, "costs": tables["costs"], "measured": tables["measured"]}
    return settings | {"groups": groups} | rest | rows


def _check_key(key: str) -> None:
    if any(key in ("family", *parameter_names(family)) for family in FAMILIES.values()):
        raise ProblemError(f"{key!r} belongs below the line [rewards]; move it there.")
    if key not in (*_SETTINGS, *_TABLES):
        raise ProblemError(f"unknown key {key!r}{guess(key, (*_SETTINGS, *_TABLES))}")


def _check_table(name: str, table: object, file: Mapping[str, Any]) -> None:
    if not isinstance(table, dict):
        raise ProblemError(
            f"{name} must be a table, a line [{name}] with its entries below; "
            f"got {reprlib.repr(table)}."
        )
    for key in _SETTINGS:
        if key in table and not _belongs(key, table[key], name, file):
            raise ProblemError(
                f"{key!r} stands below the line [{name}] and so became part of it; move it "
                "above the first line in brackets.",
                place=Place(field=key),
            )


def _belongs(key: str, value: object, table: str, file: Mapping[str, Any]) -> bool:
    """Tell a group or constraint that has a setting's name from the setting, misplaced."""
    if key == "arms" and "arms" not in file:
        return False
    if table == "groups":
        return isinstance(value, list) and all(isinstance(x, str) for x in value)
    if table == "measured":
        return isinstance(value, dict)
    if table == "costs":
        return isinstance(file["arms"], list) and key in file["arms"]
    if table in NOUNS:
        return isinstance(value, str) and re.search("[<>=≤≥]", value) is not None
    return False


def _file_rewards(table: Mapping[str, Any]) -> Family:
    if "family" not in table:
        meant = next((key for key in table if nearest(key, ["family"])), None)
        if meant is not None:
            raise ProblemError(
                f"unknown key {meant!r} in [rewards]; did you mean 'family'?",
                place=Place(field=meant),
            )
        raise ProblemError(f"family is missing in [rewards]{guess('', tuple(FAMILIES))}")
    parameters = dict(table)
    name = parameters.pop("family")
    if not isinstance(name, str) or name not in FAMILIES:
        raise ProblemError(
            f"unknown family {name!r} in [rewards]{guess(str(name), tuple(FAMILIES))}",
            place=Place(field="family"),
        )
    known = parameter_names(FAMILIES[name])
    for key in parameters:
        if key in known:
            continue
        message = f"unknown key {key!r} in [rewards]{guess(key, ('family', *known))}"
        if any(key in parameter_names(family) for family in FAMILIES.values()):
            message = (
                f"{key!r} in [rewards] is not for {name} rewards, which take only "
                f"{', '.join(known)}; remove it, or change family."
            )
        raise ProblemError(message, place=Place(field=key))
    return FAMILIES[name](**parameters)


def _file_constraints(
    name: str,
    table: Mapping[str, Any],
    arms: tuple[str, ...],
    groups: Mapping[str, tuple[str, ...]],
) -> list[Constraint]:
    # A constraint may be named like a key of the matrix form, as long as there is none.
    in_matrix_form = not isinstance(table.get("matrix", ""), str)
    texts = {
        key: value for key, value in table.items() if not (in_matrix_form and key in _MATRIX_KEYS)
    }
    for key, value in texts.items():
        with about(key):
            if isinstance(value, list) and key in _MATRIX_KEYS:
                raise ProblemError(f"{key!r} in [{name}] needs a matrix beside it; add matrix.")
            if isinstance(value, list) and (near := nearest(key, _MATRIX_KEYS)):
                raise ProblemError(f"unknown key {key!r} in [{name}]; did you mean {near!r}?")
            if isinstance(value, dict):
                raise ProblemError(
                    f"{key!r} in [{name}] is a table; put a name with dots in quotes."
                )
    rows = check_texts(texts, Operands(arms, groups, name))
    if not in_matrix_form:
        return rows
    bounds = {key: table[key] for key in _BOUNDS if key in table}
    if not bounds:
        raise ProblemError(
            f"the matrix in [{name}] has no bounds; add upper, lower or equal.",
            place=Place(field="matrix"),
        )
    if "equal" in bounds and len(bounds) > 1:
        raise ProblemError(
            f"the matrix in [{name}] has equal beside upper or lower; drop one of them. For "
            "an equality in some rows only, give these the same lower and upper.",
            place=Place(field="equal"),
        )
    return check_matrix(table["matrix"], bounds, table.get("names"), arms) + rows


def toml_text(top: Mapping[str, object], tables: Mapping[str, Mapping[str, object]]) -> str:
    """Write settings, then tables that are not empty."""
    parts = [_toml_lines(top)]
    parts += [f"[{name}]\n{_toml_lines(table)}" for name, table in tables.items() if table]
    return "\n".join(parts)


def _toml_lines(table: Mapping[str, object]) -> str:
    return "".join(
        f"{_toml_entry(toml_key(key), value)}\n"
        for key, value in table.items()
        if value is not None and value is not False  # what is not said
    )


def toml_key(name: str) -> str:
    """A name as TOML wants it: in quotes, if need be."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml_value(name)


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
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {_toml_value(x)}' for key, x in value.items())}}}"
    # JSON's strings and booleans are TOML's; floats are the same in Python and TOML.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a problem file."""
    try:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    except (OSError, ValueError) as error:
        raise SettingError(f"{path}: cannot write it: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def parameter_names(family: Family | type[Family]) -> list[str]:
    """Return the names of a family's parameters, its own before the domain that all have."""
    return sorted((f.name for f in dataclasses.fields(family)), key="domain".__eq__)
