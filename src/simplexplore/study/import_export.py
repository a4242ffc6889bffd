"""Rewards in from a CSV file; what a study holds out to CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplexplore.errors import Place, SettingError, SimplexploreError
from simplexplore.files import written_aside

from .pulls import Reward, place_in_words
from .records import About, Answer, EventRecord

if TYPE_CHECKING:
    from simplexplore.problem.problem import Problem

# A file's path, or a text that is open.
CsvSource = str | os.PathLike[str] | io.TextIOBase

COLUMNS = ("pull", "arm", "reward", "outcome", "asked", "told", "key")

# Texts that a spreadsheet would take for formulas. An apostrophe before them makes them texts
# again; one more, if they have some already, so that each can be told from the others.
_FORMULA = re.compile(r"'*[=+\-@\t\r＝＋－＠]")

# Rows of a Parquet file that are in memory at a time.
_CHUNK = 50_000


def measured_columns(problem: Problem) -> tuple[str, ...]:
    """Names of what every pull reports beside its reward."""
    return tuple(row.name for row in problem.measured)


def read_rewards(
    source: CsvSource, problem: Problem, faults: list[SimplexploreError] | None = None
) -> tuple[list[Reward], list[Place]]:
    """Rewards in a CSV file, and the place of each.

    The first line names the columns: ``reward``, and ``pull`` (an id that `ask` gave) or
    ``arm`` (for pulls made elsewhere); ``key`` is optional, and all that is measured has a
    column of its name. Blanks around a value are no part of it, unless an arm is called so.
    Values are separated by commas or, as spreadsheets write them where the comma is the decimal
    mark, by semicolons. With `faults` all rows that are wrong are listed there and left out;
    without, the first one is raised.
    """
    file, text = text_of(source)
    measured, arms = measured_columns(problem), frozenset(problem.arms)
    lines = text.splitlines()
    # Names of columns hold neither.
    mark = ";" if lines and ";" in lines[0] else ","
    reader = csv.reader(lines, strict=True, delimiter=mark)
    rewards, places = [], []
    try:
        names = [name.strip() for name in next(reader, [])]
        columns = _columns(names, measured, Place(file, 1))
        reward_in = _reading(columns, measured, arms, mark)
        for row in reader:
            if row:
                place = Place(file, reader.line_num)
                try:
                    rewards.append(reward_in(row, place))
                    places.append(place)
                except SettingError as error:
                    if faults is None:
                        raise
                    faults.append(error)
    except csv.Error as error:
        raise _wrong(Place(file, reader.line_num), f"{error}.") from None
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
        raise SettingError(f"{file}: cannot read it: {reason}.", place=Place(file)) from None


def _wrong(place: Place, what: str) -> SettingError:
    return SettingError(f"{place_in_words(place)}: {what}", place=place)


def _columns(names: list[str], measured: Sequence[str], place: Place) -> dict[str, int]:
    wanted = ("reward", *measured)
    unknown = [name for name in names if name not in ("pull", "arm", "key", *wanted)]
    missing = [name for name in wanted if name not in names]
    if unknown or missing or not {"pull", "arm"} & set(names):
        found = ", ".join(names) or "nothing"
        lacking = f" Missing: {', '.join(missing)}." if measured and missing else ""
        raise _wrong(
            place,
            f"the first line names the columns: {', '.join(wanted)}, and pull or arm; key if there "
            f"are keys. Found: {found}.{lacking}",
        )
    if len(set(names)) < len(names):
        raise _wrong(place, "a column is named twice.")
    return {name: i for i, name in enumerate(names)}


def _reading(
    columns: Mapping[str, int], measured: Sequence[str], arms: Collection[str], mark: str
) -> Callable[[list[str], Place], Reward]:
    """What makes a reward of a row, for the columns of one file."""
    at_reward, at_pull, at_arm, at_key = map(columns.get, ("reward", "pull", "arm", "key"))
    assert at_reward is not None
    count, at_measured = len(columns), [(name, columns[name]) for name in measured]

    def text(row: list[str], i: int | None) -> str | None:
        return None if i is None else _from_cell(row[i]).strip() or None

    def number(row: list[str], name: str, i: int, place: Place) -> float:
        try:
            return float(row[i])  # as most are
        except ValueError:
            given = _from_cell(row[i]).strip()
        try:
            # Between semicolons, a comma is the decimal mark.
            return float(given.replace(",", ".") if mark == ";" else given)
        except ValueError:
            raise _wrong(
                replace(place, field=name),
                f"the {name} {given!r} is not a number. Nothing was recorded."
                if given
                else f"the {name} is missing. Nothing was recorded.",
            ) from None

    def read(row: list[str], place: Place) -> Reward:
        if len(row) != count:
            raise _wrong(place, f"{len(row)} values for {count} columns. Nothing was recorded.")
        arm = None if at_arm is None else _from_cell(row[at_arm])
        if arm is not None and arm not in arms:
            arm = arm.strip() or None
        return Reward(
            number(row, "reward", at_reward, place),
            text(row, at_pull),
            arm,
            text(row, at_key),
            {name: number(row, name, i, place) for name, i in at_measured} or None,
        )

    return read


def _to_cell(value: Any) -> Any:
    """What a CSV file holds for a value: numbers as they are, texts never as formulas."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _from_cell(text: str) -> str:
    """The text that was written by `_to_cell`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


class ExportedStudy(About):
    """What the head of a JSON file says."""

    answer: Answer | None


def write_study(
    path: str | os.PathLike[str],
    about: ExportedStudy,
    events: Iterable[EventRecord],
    voided: Collection[int],
    measured: Sequence[str],
) -> int:
    """Write all pulls with their rewards; the file's ending says how. Returns their number.

    ``.csv`` and ``.parquet`` hold one row per pull, and a column for each name that is `measured`;
    ``.json`` also what the study is, and its notes. Rewards of events that were struck out
    (`voided`) are left out as if they had never been told; the JSON file names them.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".csv", ".json", ".parquet"):
        raise SettingError(
            f"{path}: the ending says in which format to write: .csv, .json or .parquet."
        )
    try:
        with written_aside(path) as place:
            if ending == ".json":
                return _write_json(place, about, events, voided, measured)
            write = _write_csv if ending == ".csv" else _write_parquet
            kept = (event for event in events if event["seq"] not in voided)
            return write(place, kept, measured)
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
            }
    yield from waiting.values()


def _time(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat()


def _columns_out(measured: Sequence[str]) -> tuple[str, ...]:
    after = COLUMNS.index("reward") + 1
    return (*COLUMNS[:after], *measured, *COLUMNS[after:])


def _rows_out(events: Iterable[EventRecord], measured: Sequence[str]) -> Iterator[dict[str, Any]]:
    """All pulls, with each measurement in a column of its own."""
    for pull in pulls_of(events, measured):
        values = pull.pop("measured", None) or dict.fromkeys(measured)
        yield pull | values


def _write_csv(path: Path, events: Iterable[EventRecord], measured: Sequence[str]) -> int:
    total = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _columns_out(measured))
        writer.writeheader()
        for pull in _rows_out(events, measured):
            row = {**pull, "asked": _time(pull["asked"]), "told": _time(pull["told"])}
            writer.writerow({name: _to_cell(value) for name, value in row.items()})
            total += 1
    return total


def _write_json(
    path: Path,
    about: ExportedStudy,
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


def _write_parquet(path: Path, events: Iterable[EventRecord], measured: Sequence[str]) -> int:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise SettingError(
            "Parquet files need the package 'pyarrow'; install 'simplexplore[parquet]', or export "
            "to .csv."
        ) from None
    when = pa.timestamp("us", tz="UTC")
    numbers = dict.fromkeys(("reward", *measured), pa.float64())
    types = {**numbers, "asked": when, "told": when}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in _columns_out(measured)])
    total = 0
    with parquet.ParquetWriter(path, schema) as writer:
        chunk: list[dict[str, Any]] = []
        for pull in _rows_out(events, measured):
            for name in ("asked", "told"):
                if pull[name] is not None:
                    pull[name] = datetime.fromtimestamp(pull[name], UTC)
            chunk.append(pull)
            total += 1
            if len(chunk) == _CHUNK:
                writer.write_table(pa.Table.from_pylist(chunk, schema))
                chunk = []
        writer.write_table(pa.Table.from_pylist(chunk, schema))
    return total
