"""Problem files: TOML in, the arguments of a problem out, and back."""

from __future__ import annotations

import dataclasses
import json
import re
import reprlib
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplexplore.errors import Location, ProblemError, SettingError

from .checks import check_keys
from .constraint import EACH, Constraint, expanded_name, format_constraint, format_for_each
from .families import FAMILIES, Family
from .locations import QUOTED, error_context
from .messages import backticked, closest_match, pointed, suggestion
from .parser import MAX_DEPTH, NOUNS, Names, Parser

if TYPE_CHECKING:
    import os


_SETTINGS = ("arms", "means", "delta", "epsilon", "stop_when", "scenario", "initial_excess")
_TABLES = ("rewards", "groups", "constraints", "exploration", "costs", "measured", "question")

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

# Characters of a problem file.
MAX_TEXT = 2**24

# Names that dots join, where texts are empty.
_DOTTED = re.compile(r'(?:[\w-]+|"")(?:[ \t]*\.[ \t]*(?:[\w-]+|""))*')

# Lists in a written file break after this column.
_MAX_COLUMNS = 100


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a problem file as it is."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(4 * MAX_TEXT + 1)  # a character has at most four bytes
    except FileNotFoundError:
        folder = "" if Path(path).is_absolute() else f" in {Path.cwd()}"
        raise ProblemError(f"there is no such file{folder}.") from None
    except IsADirectoryError:
        raise ProblemError("this is a folder; name a file in it.") from None
    except (OSError, ValueError) as error:
        raise ProblemError(f"cannot read it: {_reason(error)}.") from None
    try:
        # Some editors begin a file with a byte order mark, which TOML does not know.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(
            f"byte 0x{content[error.start]:02x} is not UTF-8 text; save the file as UTF-8.",
            place=Location(line=content.count(b"\n", 0, error.start) + 1),
        ) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Read TOML, or say at which line and place it is none."""
    if len(text) > MAX_TEXT:
        raise ProblemError(f"a problem has at most {MAX_TEXT:,} characters.")
    # tomllib's time grows with the square of the names that one key joins.
    for key in _DOTTED.finditer(QUOTED.sub('""', text)):
        if key.group().count(".") > MAX_DEPTH:
            raise ProblemError(
                f"more than {MAX_DEPTH} names are joined by dots; put a name with dots in quotes."
            )
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ProblemError("not valid TOML: brackets are nested too deeply.") from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
    except ValueError:  # from Python's limit on the digits of an integer
        raise ProblemError("a number in it has too many digits; round it.") from None
    lines = text.replace("\r\n", "\n").rstrip().split("\n")
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    if place is None:
        raise ProblemError(f"not valid TOML: {message}.")
    reason = message[0].lower() + message[1 : place.start()]
    for pattern, words in _TOML_REASONS.items():
        if found := re.fullmatch(pattern, message[: place.start()]):
            reason = found.expand(words)
    line = min(int(place[1] or len(lines)), len(lines))
    column = int(place[2] or len(lines[-1]) + 1)
    raise ProblemError(
        f"not valid TOML: {reason}.\n{pointed(lines[line - 1], column - 1, column)}",
        place=Location(line=line),
    )


def arguments(file: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a problem: settings and tables as they are, rewards as their family."""
    for key in file:
        if any(key in ("family", *parameter_names(family)) for family in FAMILIES.values()):
            raise ProblemError(
                f"{key!r} belongs below the line [rewards]; move it there.",
                place=Location(field=key),
            )
    check_keys(file, (*_SETTINGS, *_TABLES), "")
    for name in _TABLES:
        with error_context(name):
            _check_table(name, file.get(name, {}), file)
    if "arms" not in file:
        raise ProblemError('arms is missing; begin with a line such as arms = ["a", "b"].')
    given = {key: file[key] for key in (*_SETTINGS, *_TABLES) if key in file}
    if "rewards" in file:
        with error_context("rewards"):
            given["rewards"] = _read_rewards(file["rewards"])
    return given


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
                place=Location(field=key),
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


def _read_rewards(table: Mapping[str, Any]) -> Family:
    if "family" not in table:
        meant = next((key for key in table if closest_match(key, ["family"])), None)
        if meant is not None:
            raise ProblemError(
                f"unknown key {meant!r} in [rewards]; did you mean 'family'?",
                place=Location(field=meant),
            )
        raise ProblemError(f"family is missing in [rewards]{suggestion('', tuple(FAMILIES))}")
    parameters = dict(table)
    name = parameters.pop("family")
    if not isinstance(name, str) or name not in FAMILIES:
        raise ProblemError(
            f"unknown family {name!r} in [rewards]{suggestion(str(name), tuple(FAMILIES))}",
            place=Location(field="family"),
        )
    known = parameter_names(FAMILIES[name])
    for key in parameters:
        if key not in known and any(key in parameter_names(f) for f in FAMILIES.values()):
            raise ProblemError(
                f"{key!r} in [rewards] is not for {name} rewards, which take only "
                f"{', '.join(known)}; remove it, or change family.",
                place=Location(field=key),
            )
    check_keys(table, ("family", *known), " in [rewards]")
    return FAMILIES[name](**parameters)


def problem_text(given: Mapping[str, Any]) -> str:
    """The text of a file from which the arguments of a problem, as it keeps them, are read."""
    arms, rewards, goal = given["arms"], given["rewards"], given["stop_when"]
    top = {key: given[key] for key in _SETTINGS} | {"stop_when": goal and goal.to_dict()}
    for name in ("epsilon", "initial_excess"):
        top[name] = top[name] or None  # nothing is said of none
    tables: dict[str, Mapping[str, object]] = {
        "rewards": {
            "family": rewards.name,
            **{key: getattr(rewards, key) for key in parameter_names(rewards)},
        },
        "groups": given["groups"],
        **{table: constraint_texts(given[table], arms, given["groups"]) for table in NOUNS},
        "costs": {a: x for a, x in zip(arms, given["costs"] or (), strict=False) if x != 1},
        **{f"measured.{toml_key(row.name)}": row.to_dict() for row in given["measured"]},
    }
    if given["question"]:
        tables["question"] = question = given["question"].to_dict()
        tables["question.answers"] = question.pop("answers", {})
    return toml_text(top, tables)


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
    if len(entry) <= _MAX_COLUMNS or not isinstance(value, list | tuple):
        return entry
    lines = [f"{key} = [", "   "]
    for part in map(_toml_value, value):
        if len(lines[-1]) + len(part) + 2 > _MAX_COLUMNS:
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


def constraint_texts(
    rows: Sequence[Constraint], arms: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Texts by name, from which the same constraints are read; those of an `each` as one.

    Examples
    --------
    >>> rows = [Constraint("cap[a]", [1, 0], upper=0.6), Constraint("cap[b]", [0, 1], upper=0.6)]
    >>> constraint_texts(rows, ["a", "b"], {})
    {'cap': 'each <= 0.6'}
    """
    lists = {EACH: arms} | {f"{EACH} {backticked(group)}": groups[group] for group in groups}
    if EACH in arms or EACH in groups:  # the word means that
        lists = {}
    rows, taken = list(rows), {row.name for row in rows}
    texts, k = dict[str, str](), 0
    while k < len(rows):
        name, count, text = rows[k].name, 1, ""
        for each, members in lists.items():
            short, some = name.removesuffix(expanded_name("", members[0])), rows[k:][: len(members)]
            if count > 1 or len(some) < 2 or not short.strip() or short in taken:
                continue
            for arm, row in zip(members[:2], some, strict=False):  # one of them may be named beside
                found = format_for_each(row, arms, arm, each)
                with suppress(ProblemError):
                    if Parser(found, short, Names(arms, groups, "constraints")).read() == some:
                        name, count, text = short, len(some), found
        taken.add(name)
        texts[name] = text or format_constraint(rows[k], arms, groups)
        k += count
    return texts


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
