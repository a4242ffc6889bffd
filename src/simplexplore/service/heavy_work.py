"""What takes long, as functions of plain data: they run in worker processes."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from simplexplore.bound.bound import lower_bound
from simplexplore.errors import SimplexploreError
from simplexplore.problem.problem import Problem
from simplexplore.report.bound_json import bound_to_dict
from simplexplore.report.bound_text import expectation, headline, notes, title
from simplexplore.study.records import About, CheckedFile, checked_file
from simplexplore.study.status_records import Status
from simplexplore.study.store import Store
from simplexplore.study.study import Study, import_rows

from .refusals import naming_lines

Result = TypeVar("Result")

# Studies that a process keeps open.
_MOST_OPEN = 8

_open: OrderedDict[tuple[str, str], Study] = OrderedDict()


# The URL of a store, and the time: there is one clock, that of the service.
Where = tuple[str, float]


@lru_cache(maxsize=4)
def _opened(url: str) -> Store:
    return Store(url, must_exist=True)


def _store(where: Where) -> Store:
    url, now = where
    store = _opened(url)
    store.clock = lambda: now
    return store


def bound(text: str, delta: float | None, means: list[float] | None) -> dict[str, Any]:
    """How hard a problem is, if its means are known."""
    with naming_lines(text):
        found = Problem.from_text(text, source="problem")
    if delta is not None:
        found = found.replace(delta=delta)
    known = means if means is not None else found.means
    summary: dict[str, Any] = {
        "arms": list(found.arms),
        "constraints": list(found.names),
        "family": found.rewards.name,
        "delta": found.delta,
        "scenario": found.scenario,
        "title": None,
        "headline": "The file gives no means: add a guess (means = [...]) to see how hard the "
        "problem is. A study needs none.",
        "notes": [],
        "bound": None,
    }
    if found.measured:
        summary["measured"] = [f"{row.name} {row.limit}" for row in found.measured]
    if known is None or any(row.means is None for row in found.measured):
        return summary
    with naming_lines(text):
        result = lower_bound(found, known)
    return summary | {
        "title": title(result),
        "headline": headline(result),
        "notes": [*expectation(result), *(note.text for note in notes(result))],
        "bound": bound_to_dict(result),
    }


def create(
    where: Where, name: str, text: str, settings: Mapping[str, Any], key: str | None
) -> About:
    """Start a study."""
    with naming_lines(text):
        problem = Problem.from_text(text, source="problem")
        return Study.create(_store(where), name, problem, **settings, key=key).about


def status(where: Where, name: str) -> Status:
    """How far a study is."""

    def work(study: Study) -> Status:
        found = study.status() | {"answer_in_words": study.answer_in_words}
        del found["store"]  # where it is concerns only those who run the service
        return found

    return on_study(where, name, work)


def verify(where: Where, name: str) -> bool:
    """Whether a replay of the journal gives the state in use."""
    return on_study(where, name, lambda study: study.verify())


def export(where: Where, name: str, path: str) -> int:
    """Write all pulls of a study to a file."""
    return on_study(where, name, lambda study: study.export(path))


def described(study: Study) -> dict[str, Any]:
    """What a study is, and its answer if it has one."""
    return study.about | {
        "head": study.head,
        "state": study.state,
        "answer": study.answer,
        "answer_in_words": study.answer_in_words,
    }


def extended(study: Study, delta: float, key: str | None) -> dict[str, Any]:
    """Go on with a smaller delta; the answer, if the evidence is enough for it."""
    study.extend(delta, key=key)
    return {"delta": delta, "answer": study.answer}


def problem(study: Study) -> str:
    """The problem file of a study."""
    return study.problem.to_text()


def imported(study: Study, text: str, check: bool, key: str | None) -> CheckedFile:
    """Tell the rewards of a CSV file, or say what that would do."""
    if check:
        return study.check_csv(io.StringIO(text))
    try:
        rewards, places, told = import_rows(study, io.StringIO(text), key)
    except SimplexploreError as error:
        if error.place is None:
            raise
        return study.check_csv(io.StringIO(text))  # which names all rows that are wrong
    return checked_file(rewards, places, [one.outcome for one in told], [])


def on_study(where: Where, name: str, work: Callable[[Study], Result]) -> Result:
    """Do something with a study that stays open, unless something is wrong with it."""
    store = _store(where)
    study = _open.pop((store.url, name), None)
    if study is None or study.store is not store:
        study = Study.open(store, name)
    result = work(study)
    _open[store.url, name] = study
    if len(_open) > _MOST_OPEN:
        _open.popitem(last=False)
    return result
