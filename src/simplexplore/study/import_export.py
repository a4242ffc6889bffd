"""Rewards in from a CSV file; what a study holds out to CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simplexplore.errors import Place, SettingError
from simplexplore.files import written_aside

from .pulls import Reward, place_in_words
from .records import About, Answer, EventRecord

COLUMNS = ("pull", "arm", "reward", "outcome", "asked", "told", "key")

# Texts that a spreadsheet would take for formulas. An apostrophe before them makes them texts
# again; one more, if they have some already, so that each can be told from the others.
_FORMULA = re.compile(r"'*[=+\-@\t\r＝＋－＠]")

# Rows of a Parquet file that are in memory at a time.
_CHUNK = 50_000


def read_rewards(path: str | os.PathLike[str]) -> tuple[list[Reward], list[Place]]:
    """Rewards in a CSV file, and the place of each.

    The first line names the columns: ``reward``, and ``pull`` (an id that `ask` gave) or
    ``arm`` (for pulls made elsewhere); ``key`` is optional.
    """
    file = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SettingError(f"{file}: cannot read it: {reason}.", place=Place(file)) from None
    reader = csv.reader(text.splitlines(), strict=True)
    rewards, places = [], []
    try:
        columns = _columns([name.strip() for name in next(reader, [])], Place(file, 1))
        for row in reader:
            if row:
                places.append(Place(file, reader.line_num))
                rewards.append(_row(row, columns, places[-1]))
    except csv.Error as error:
        raise _wrong(Place(file, reader.line_num), f"{error}.") from None
    return rewards, places


def _wrong(place: Place, what: str) -> SettingError:
    return SettingError(f"{place_in_words(place)}: {what}", place=place)


def _columns(names: list[str], place: Place) -> dict[str, int]:
    unknown = [name for name in names if name not in ("pull", "arm", "reward", "key")]
    if unknown or "reward" not in names or not {"pull", "arm"} & set(names):
        found = ", ".join(names) or "nothing"
        raise _wrong(
            place,
            "the first line names the columns: reward, and pull or arm; key if there are keys. "
            f"Found: {found}.",
        )
    if len(set(names)) < len(names):
        raise _wrong(place, "a column is named twice.")
    return {name: i for i, name in enumerate(names)}


def _row(row: list[str], columns: Mapping[str, int], place: Place) -> Reward:
    if len(row) != len(columns):
        raise _wrong(place, f"{len(row)} values for {len(columns)} columns. Nothing was recorded.")
    values = {name: _from_cell(row[i]).strip() or None for name, i in columns.items()}
    text = values["reward"]
    try:
        reward = float(text or "")
    except ValueError:
        raise _wrong(
            replace(place, field="reward"),
            f"the reward {text!r} is not a number. Nothing was recorded.",
        ) from None
    return Reward(reward, values.get("pull"), values.get("arm"), values.get("key"))


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
    path: str | os.PathLike[str], about: ExportedStudy, events: Iterable[EventRecord]
) -> int:
    """Write all pulls with their rewards; the file's ending says how. Returns their number.

    ``.csv`` and ``.parquet`` hold one row per pull, ``.json`` also what the study is, and its
    notes.
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
                return _write_json(place, about, events)
            return (_write_csv if ending == ".csv" else _write_parquet)(place, events)
    except OSError as error:
        raise SettingError(f"{path}: cannot write it: {error.strerror or error}.") from None


def pulls_of(events: Iterable[EventRecord]) -> Iterator[dict[str, Any]]:
    """All pulls: those with rewards in the order of their arrival, then the others."""
    waiting: dict[int, dict[str, Any]] = {}
    for event in events:
        kind = event["event"]
        if kind == "asked":
            waiting[event["number"]] = dict.fromkeys(COLUMNS) | {
                "pull": event["pull"],
                "arm": event["arm"],
                "outcome": "pending",
                "asked": event["at"],
                "key": event.get("key"),
            }
        elif kind == "expired":
            waiting[event["number"]]["outcome"] = "expired"
        elif "reward" in event:
            pull = waiting.pop(event["number"]) if "number" in event else dict.fromkeys(COLUMNS)
            yield pull | {
                "arm": event["arm"],
                "reward": event["reward"],
                "outcome": kind,
                "told": event["at"],
                "key": event.get("key", pull["key"]),
            }
    yield from waiting.values()


def _time(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat()


def _write_csv(path: Path, events: Iterable[EventRecord]) -> int:
    total = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for pull in pulls_of(events):
            row = {**pull, "asked": _time(pull["asked"]), "told": _time(pull["told"])}
            writer.writerow({name: _to_cell(value) for name, value in row.items()})
            total += 1
    return total


def _write_json(path: Path, about: ExportedStudy, events: Iterable[EventRecord]) -> int:
    total = 0
    notes: list[dict[str, Any]] = []

    def noted() -> Iterator[EventRecord]:
        for event in events:
            if event["event"] == "noted":
                notes.append({"at": event["at"], "text": event["text"]})
            yield event

    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{"study": {json.dumps(about)},\n"pulls": [')
        for pull in pulls_of(noted()):
            file.write(",\n" if total else "\n")
            file.write(json.dumps(pull))
            total += 1
        file.write(f'],\n"notes": {json.dumps(notes)}}}\n')
    return total


def _write_parquet(path: Path, events: Iterable[EventRecord]) -> int:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise SettingError(
            "Parquet files need the package 'pyarrow'; install 'simplexplore[parquet]', or export "
            "to .csv."
        ) from None
    when = pa.timestamp("us", tz="UTC")
    types = {"reward": pa.float64(), "asked": when, "told": when}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS])
    total = 0
    with parquet.ParquetWriter(path, schema) as writer:
        chunk: list[dict[str, Any]] = []
        for pull in pulls_of(events):
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
