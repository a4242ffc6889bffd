"""Rewards in from a CSV file; what a study holds out to CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplexplore.errors import Location, SettingError, SimplexploreError
from simplexplore.files import written_aside
from simplexplore.tabular import read_number

from .pulls import Reward, place_in_words
from .records import CheckedFile, CheckedRow, EventRecord, Fault
from .sums import FIELDS

if TYPE_CHECKING:
    from simplexplore.problem.problem import Problem

    from .telling import Outcome

# A file's path, or a text that is open.
CsvSource = str | os.PathLike[str] | io.TextIOBase

# Columns of a file of rewards that hold texts.
_TEXTS = ("pull", "arm", "key")

COLUMNS = ("pull", "arm", "reward", "outcome", "asked", "told", "key")

# More, if some rewards were told by their sum: the mean of how many it is, and their deviation.
_OF_SUMS = ("n", "sd")

# Texts that a spreadsheet would take for formulas. An apostrophe before them makes them texts
# again; one more, if they have some already, so that each can be told from the others.
_FORMULA = re.compile(r"'*[=+\-@\t\r＝＋－＠]")


def measured_columns(problem: Problem) -> tuple[str, ...]:
    """Names of what every pull reports beside its reward."""
    return tuple(row.name for row in problem.measured)


def read_rewards(
    source: CsvSource, problem: Problem, faults: list[SimplexploreError] | None = None
) -> tuple[list[Reward], list[Location]]:
    """Rewards in a CSV file, and the place of each.

    The first line names the columns: ``reward``, and ``pull`` (an id that `ask` gave) or
    ``arm`` (for pulls made elsewhere); ``key`` is optional, and all that is measured has a
    column of its name. A file of sums has ``arm``, ``key``, ``n`` and what is told of so many
    rewards. Blanks around a value are no part of it, unless an arm is called so.
    Values are separated by commas or, as spreadsheets write them where the comma is the decimal
    mark, by semicolons. With `faults` all rows that are wrong are listed there and left out;
    without, the first one is raised.
    """
    file, text = text_of(source)
    arms = frozenset(problem.arms)
    lines = text.splitlines()
    # Names of columns hold neither.
    mark = ";" if lines and ";" in lines[0] else ","
    reader = csv.reader(lines, strict=True, delimiter=mark)
    rewards, places = [], []
    try:
        names = _columns(next(reader, []), measured_columns(problem), Location(file, 1))
        for cells in reader:
            place = Location(file, reader.line_num)
            try:
                if cells:
                    rewards.append(_reward(names, cells, place, arms, mark))
                    places.append(place)
            except SettingError as error:
                if faults is None:
                    raise
                faults.append(error)
    except csv.Error as error:
        raise _wrong(Location(file, reader.line_num), f"{error}.") from None
    return rewards, places


def text_of(source: CsvSource) -> tuple[str | None, str]:
    """What a file is called, and what is in it; a text that is open has no name."""
    if isinstance(source, io.TextIOBase):
        return None, source.read().removeprefix("\ufeff")
    file = str(source)
    try:
        return file, Path(source).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SettingError(f"{file}: cannot read it: {reason}.", place=Location(file)) from None


def checked_file(
    rewards: Sequence[Reward],
    places: Sequence[Location],
    outcomes: Sequence[Outcome | SimplexploreError],
    errors: Sequence[SimplexploreError] = (),
) -> CheckedFile:
    """Rows that are right, and what is wrong with the others in the order of the file.

    Errors are those of rows that hold no rewards.
    """
    rows: list[CheckedRow] = []
    faults = [_fault(error.place or Location(), error) for error in errors]
    for one, place, outcome in zip(rewards, places, outcomes, strict=True):
        if isinstance(outcome, SimplexploreError):
            faults.append(_fault(place, outcome))
            continue
        row: CheckedRow = {
            "line": place.line,
            "pull": one.pull,
            "arm": one.arm,
            "reward": outcome.reward,
            "key": one.key,
            "outcome": outcome.outcome,
        }
        if one.n is not None:
            row["n"] = one.n
        if outcome.usual is not None:
            row["usual"] = [*outcome.usual]
        if one.measured:
            row["measured"] = dict(one.measured)
        rows.append(row)
    return {"rows": rows, "faults": sorted(faults, key=lambda fault: fault["line"] or 0)}


def _fault(place: Location, error: SimplexploreError) -> Fault:
    text = str(error).removesuffix(" Nothing was recorded.")
    return {"line": place.line, "text": text.removeprefix(f"{place_in_words(place)}: ")}


def _wrong(place: Location, what: str) -> SettingError:
    return SettingError(f"{place_in_words(place)}: {what}", place=place)


def _columns(found: Sequence[str], measured: Sequence[str], place: Location) -> list[str]:
    """Names of columns as they are known, however they are capitalised."""
    every = (*_TEXTS, "reward", *measured, *FIELDS)
    folded = {name.casefold(): name for name in reversed(every)}
    stripped = [name.strip() for name in found]
    names = [name if name in every else folded.get(name.casefold(), name) for name in stripped]
    is_sums = "n" in names
    wanted = ("arm", "key", "n") if is_sums else ("reward", *measured)
    known = {*wanted, *(FIELDS if is_sums else _TEXTS)}
    unknown = [name for name in names if name not in known]
    missing = [name for name in wanted if name not in names]
    if is_sums and (unknown or missing):
        raise _wrong(
            place,
            "a file of sums has the columns arm, key, n, and mean (and sd), successes or total. "
            f"Found: {', '.join(names)}.",
        )
    if unknown or missing or not {"pull", "arm"} & set(names):
        shown = ", ".join(names) or "nothing"
        lacking = f" Missing: {', '.join(missing)}." if measured and missing else ""
        if unknown and names != unknown:
            lacking += f" Remove {', '.join(unknown)}."
        raise _wrong(
            place,
            f"the first line names the columns: {', '.join(wanted)}, and pull or arm; key if there "
            f"are keys. Found: {shown}.{lacking}",
        )
    if len(set(names)) < len(names):
        raise _wrong(place, "a column is named twice.")
    return names


def _reward(
    names: Sequence[str], cells: Sequence[str], place: Location, arms: Collection[str], mark: str
) -> Reward:
    """What a row tells."""
    if len(cells) != len(names):
        hint = ""
        if mark == "," and len(cells) > len(names):
            hint = " Where the comma is the decimal mark, columns are separated by semicolons."
        raise _wrong(
            place, f"{len(cells)} values for {len(names)} columns.{hint} Nothing was recorded."
        )
    row = dict(zip(names, cells, strict=True))
    is_sum = "n" in row
    numbers = {
        name: _number(cell, name, mark, place)
        for name, cell in row.items()
        if name not in _TEXTS and not (is_sum and not cell.strip())
    }
    arm, pull, key = (_from_cell(row.get(name, "")) for name in ("arm", "pull", "key"))
    texts: dict[str, Any] = {
        "pull": pull.strip() or None,
        "arm": arm if arm in arms else arm.strip() or None,
        "key": key.strip() or None,
    }
    if is_sum:
        whole = ("n", "successes", "total")
        sums: dict[str, Any] = {
            name: int(value) if name in whole and value.is_integer() else value
            for name, value in numbers.items()
        }
        return Reward(**texts, **sums)
    return Reward(numbers.pop("reward"), **texts, measured=numbers or None)


def _number(cell: str, name: str, mark: str, place: Location) -> float:
    try:
        return float(cell)  # as most are
    except ValueError:
        given = _from_cell(cell).strip()
    place = replace(place, field=name)
    if not given:
        raise _wrong(place, f"the {name} is missing. Nothing was recorded.")
    try:
        # Between semicolons, a comma is the decimal mark.
        if mark == ";" and given.count(",") == 1:
            given = given.replace(",", ".")
        return read_number(given, f"the {name}")
    except SettingError as error:
        raise _wrong(place, f"{error} Nothing was recorded.") from None


def _to_cell(value: Any) -> Any:
    """What a CSV file holds for a value: numbers as they are, texts never as formulas."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _from_cell(text: str) -> str:
    """The text that was written by `_to_cell`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def write_study(
    path: str | os.PathLike[str],
    about: Mapping[str, Any],
    events: Iterable[EventRecord],
    voided: Collection[int],
    measured: Sequence[str],
    *,
    has_sums: bool = False,
) -> int:
    """Write all pulls with their rewards; the file's ending says how. Returns their number.

    ``.csv`` holds one row per pull, a column for each name that is `measured`, and two more if it
    `has_sums`; ``.json`` also what the study is, and its notes. Rewards of events that were
    voided (`voided`) are left out as if they had never been told; the JSON file names them.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".csv", ".json"):
        raise SettingError(f"{path}: the ending says in which format to write: .csv or .json.")
    try:
        with written_aside(path) as place:
            if ending == ".json":
                return _write_json(place, about, events, voided, measured)
            kept = (event for event in events if event["seq"] not in voided)
            return _write_csv(place, kept, measured, has_sums=has_sums)
    except OSError as error:
        raise SettingError(f"{path}: cannot write it: {error.strerror or error}.") from None


def pulls_of(events: Iterable[EventRecord], measured: Sequence[str]) -> Iterator[dict[str, Any]]:
    """All pulls: those with rewards in the order of their arrival, then the others."""
    waiting: dict[int, dict[str, Any]] = {}
    blank = dict.fromkeys(COLUMNS) | ({"measured": None} if measured else {})
    for event in events:
        kind = event["event"]
        if kind == "asked":
            waiting[event["number"]] = blank | {
                "pull": event["pull"],
                "arm": event["arm"],
                "outcome": "pending",
                "asked": event["at"],
                "key": event.get("key"),
            }
        elif kind == "expired":
            waiting[event["number"]]["outcome"] = "expired"
        elif "reward" in event:
            pull = waiting.pop(event["number"]) if "number" in event else blank
            yield pull | {
                **({"measured": event["measured"]} if measured else {}),
                "arm": event["arm"],
                "reward": event["reward"],
                "outcome": kind,
                "told": event["at"],
                "key": event.get("key", pull["key"]),
                **{name: value for name, value in event.items() if name in _OF_SUMS},
            }
    yield from waiting.values()


def _write_csv(
    path: Path, events: Iterable[EventRecord], measured: Sequence[str], *, has_sums: bool
) -> int:
    after = COLUMNS.index("reward") + 1
    names = (*COLUMNS[:after], *measured, *COLUMNS[after:], *(_OF_SUMS if has_sums else ()))
    total = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for pull in pulls_of(events, measured):
            measurements = pull.pop("measured", None) or {}
            row = pull | measurements
            for name in ("asked", "told"):
                if row[name] is not None:
                    row[name] = datetime.fromtimestamp(row[name], UTC).isoformat()
            writer.writerow({name: _to_cell(value) for name, value in row.items()})
            total += 1
    return total


def _write_json(
    path: Path,
    about: Mapping[str, Any],
    events: Iterable[EventRecord],
    voided: Collection[int],
    measured: Sequence[str],
) -> int:
    total = 0
    notes: list[dict[str, Any]] = []
    struck_out: dict[int, dict[str, Any]] = {}

    def noted() -> Iterator[EventRecord]:
        for event in events:
            if event["event"] == "noted":
                notes.append({"at": event["at"], "text": event["text"]})
            elif event["event"] == "voided":
                struck_out[event["voids"]] |= {"reason": event["reason"], "voided": event["at"]}
            if event["seq"] in voided:
                struck_out[event["seq"]] = {
                    "event": event["seq"],
                    "arm": event["arm"],
                    "reward": event["reward"],
                    **({"measured": event["measured"]} if measured else {}),
                    "told": event["at"],
                }
                continue
            yield event

    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{"study": {json.dumps(about)},\n"pulls": [')
        for pull in pulls_of(noted(), measured):
            file.write(",\n" if total else "\n")
            file.write(json.dumps(pull))
            total += 1
        more = f',\n"voided": {json.dumps([*struck_out.values()])}' if struck_out else ""
        file.write(f'],\n"notes": {json.dumps(notes)}{more}}}\n')
    return total
