"""What takes long, as functions of plain data: they run in worker processes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from simplexplore.bound.bound import lower_bound
from simplexplore.problem.problem import Problem
from simplexplore.report.bound_text import headline, notes, title
from simplexplore.study.records import About
from simplexplore.study.status import Status
from simplexplore.study.store import Store
from simplexplore.study.study import Study

from .refusals import naming_lines

Result = TypeVar("Result")

# Studies that a process keeps open.
_MOST_OPEN = 8

_open: OrderedDict[tuple[str, str], Study] = OrderedDict()


@lru_cache(maxsize=4)
def _store(url: str) -> Store:
    return Store(url, must_exist=True)


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
        "problem would be. A study does without.",
        "notes": [],
        "bound": None,
    }
    if known is None:
        return summary
    with naming_lines(text):
        result = lower_bound(found, known)
    return summary | {
        "title": title(result),
        "headline": headline(result),
        "notes": [note.text for note in notes(result)],
        "bound": result.to_dict(),
    }


def create(url: str, name: str, text: str, settings: Mapping[str, Any], key: str | None) -> About:
    """Start a study."""
    with naming_lines(text):
        problem = Problem.from_text(text, source="problem")
        return Study.create(_store(url), name, problem, **settings, key=key).about


def status(url: str, name: str) -> Status:
    """How far a study is."""

    def work(study: Study) -> Status:
        found = study.status() | {"answer_in_words": study.answer_in_words}
        del found["store"]  # where it is concerns only those who run the service
        return found

    return _with_study(url, name, work)


def verify(url: str, name: str) -> bool:
    """Whether a replay of the journal gives the state in use."""
    return _with_study(url, name, lambda study: study.verify())


def export(url: str, name: str, path: str) -> int:
    """Write all pulls of a study to a file."""
    return _with_study(url, name, lambda study: study.export(path))


def _with_study(url: str, name: str, work: Callable[[Study], Result]) -> Result:
    """Do something with a study that stays open, unless something is wrong with it."""
    study = _open.pop((url, name), None) or Study.open(_store(url), name)
    result = work(study)
    _open[url, name] = study
    if len(_open) > _MOST_OPEN:
        _open.popitem(last=False)
    return result
