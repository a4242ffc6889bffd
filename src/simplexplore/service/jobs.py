"""What takes long, as functions of plain data, and limits on it: for processes of their own."""

from __future__ import annotations

import io
import os
import signal
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from simplexplore.errors import Location, MeansError, ProblemError, SimplexploreError
from simplexplore.exploration.lower_bound import lower_bound
from simplexplore.problem.file import parse_toml, toml_text
from simplexplore.problem.locations import line_of
from simplexplore.problem.percentages import ask_about_percentages
from simplexplore.problem.problem import Problem
from simplexplore.report.bound_report import bound_document, bound_to_dict
from simplexplore.report.document import to_dict
from simplexplore.report.study_words import study_words
from simplexplore.study.records import About, CheckedFile
from simplexplore.study.settings import Settings
from simplexplore.study.state import State
from simplexplore.study.status_records import Status
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from simplexplore.study.telling import Unlikely
from simplexplore.study.transaction import Request, Result

try:
    import resource
except ImportError:  # not on this platform: memory has no limit
    resource = None  # type: ignore[assignment]


# Studies that a process keeps open.
_MAX_OPEN = 8

# Bytes that work may use, and addresses that the program itself takes at most.
MAX_MEMORY, _PROGRAM = 2 * 2**30, 2**30

# Seconds after which work ends itself if the service was killed, which would have done it before,
# and after which a process ends that has nothing to do.
_DEADLINE, _MAX_IDLE = 65, 600

_open: OrderedDict[tuple[str, str], Study] = OrderedDict()


# The URL of a store, and the time: there is one clock, that of the service.
StoreRef = tuple[str, float]


def limited(work: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    """Do something within limits."""
    _set_limits()
    _set_alarm(_DEADLINE)
    try:
        return work(*arguments)
    except (SimplexploreError, MemoryError):
        raise
    except Exception:  # of other errors only the text gets to the service's log
        raise RuntimeError(f"in a process for heavy work:\n{traceback.format_exc()}") from None
    finally:
        _set_alarm(_MAX_IDLE)  # more work sets it anew


@cache  # once in a process
def _set_limits() -> None:
    """Limit what this process takes from others."""
    if hasattr(os, "nice"):
        os.nice(10)  # less important than the service, which shares the machine
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service
    if hasattr(resource, "setrlimit"):
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = MAX_MEMORY + _PROGRAM
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _set_alarm(seconds: int) -> None:
    """Let the system end this process then, whatever it does."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


@lru_cache(maxsize=4)
def _opened(url: str) -> Store:
    return Store(url, must_exist=True)


def _store(where: StoreRef) -> Store:
    url, now = where
    store = _opened(url)
    store.clock = lambda: now
    return store


@contextmanager
def _naming_lines(text: str) -> Iterator[None]:
    """Let errors of a problem file say which line of it they are about."""
    try:
        yield
    except (ProblemError, MeansError) as error:
        place = error.place or Location()
        error.place = replace(place, line=line_of(text, place))
        raise


def drafted(document: Mapping[str, Any]) -> str:
    """A problem file that says what a document does."""
    tables = {name: value for name, value in document.items() if isinstance(value, Mapping)}
    return toml_text({key: document[key] for key in document if key not in tables}, tables)


def bound(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """How hard a problem is, if its means are known."""
    text, delta, means = wanted["problem"], wanted["delta"], wanted["means"]
    with _naming_lines(text):
        found = Problem.from_text(text, source="problem")
        ask_about_percentages(found, "problem")
        if delta is not None:
            found = found.replace(delta=delta)
        settings = Settings(wanted["sampler"], wanted["threshold"], None, 0, None)
        State(settings.plan(found), 0)  # refuses what a study of it would be refused for
    known = means if means is not None else found.means
    summary: dict[str, Any] = {
        "document": parse_toml(text),
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
    with _naming_lines(text):
        result = lower_bound(found, known)
    return summary | to_dict(bound_document(result)) | {"bound": bound_to_dict(result)}


def create(
    where: StoreRef, name: str, text: str, settings: Mapping[str, Any], key: str | None
) -> About:
    """Start a study."""
    with _naming_lines(text):
        problem = Problem.from_text(text, source="problem")
        ask_about_percentages(problem, "problem")
        return Study.create(_store(where), name, problem, **settings, key=key).about


def status(study: Study) -> Status:
    """How far a study is."""
    found = study.status()
    found["answer_in_words"] = study.answer_in_words
    found["words"] = study_words(found)
    del found["store"]  # where it is concerns only those who run the service
    return found


def decided(study: Study, request: Request[Result]) -> Result:
    """Decide a request."""
    return study.replica.run(request)


def described(study: Study) -> dict[str, Any]:
    """What a study is, and its answer if it has one."""
    return study.about | {
        "head": study.head,
        "state": study.state,
        "answer": study.answer,
        "answer_in_words": study.answer_in_words,
    }


def problem(study: Study) -> str:
    """The problem file of a study."""
    return study.problem.to_text()


def imported(
    study: Study, text: str, check: bool, key: str | None, unlikely: Unlikely
) -> CheckedFile:
    """Tell the rewards of a CSV file, or say what that would do."""
    found = study.check_csv(io.StringIO(text))
    if not check and not found["faults"]:
        told = study.import_csv(io.StringIO(text), key=key, unlikely=unlikely)
        for row, one in zip(found["rows"], told, strict=True):
            row["outcome"] = one.outcome
    return found


def on_study(where: StoreRef, name: str, work: Callable[[Study], Result]) -> Result:
    """Do something with a study that stays open, unless something is wrong with it."""
    store = _store(where)
    study = _open.pop((store.url, name), None)
    if study is None or study.store is not store:
        study = Study.open(store, name)
    result = work(study)
    _open[store.url, name] = study
    if len(_open) > _MAX_OPEN:
        _open.popitem(last=False)
    return result
