"""Studies of a service, used like studies of a store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from simplexplore import defaults
from simplexplore.errors import Location, SettingError, SimplexploreError, TooLargeError
from simplexplore.files import write_whole
from simplexplore.protocol import ALL, MAX_BATCH
from simplexplore.study.import_export import CsvSource, read_rewards, text_of
from simplexplore.study.live_study import LiveStudy
from simplexplore.study.pulls import (
    Answers,
    Pull,
    Pulls,
    Reward,
    Told,
    id_of,
    named,
    place_in_words,
)

from .transport import Transport

if TYPE_CHECKING:
    from simplexplore.problem.problem import Problem
    from simplexplore.study.records import (
        About,
        Answer,
        CheckedFile,
        EventRecord,
        HistoryPoint,
        StateName,
        StudySummary,
    )
    from simplexplore.study.status_records import Status
    from simplexplore.study.telling import Unlikely

    # Inside the classes, `list` is a method.
    Summaries = list[StudySummary]
    Records = list[EventRecord]
    Points = list[HistoryPoint]

# Seconds for which an unreachable service is tried again: a restart takes a few.
RETRY_FOR = 60.0

# What the address of a study says, and `about` does not: it changes.
_CHANGING = ("head", "state", "answer", "answer_in_words")


def connect(url: str, token: str | None = None, *, retry_for: float = RETRY_FOR) -> Service:
    """Use the studies of a service.

    Parameters
    ----------
    url : str
        Such as ``http://127.0.0.1:8080``.
    token : str, optional
        Default: the environment variable ``SIMPLEXPLORE_TOKEN``, if set.
    retry_for : float
        Seconds for which a service that cannot be reached is tried again.

    Returns
    -------
    Service
        `create`, `open` and `list` studies; those have the methods of `Study`.

    Raises
    ------
    SettingError
        If that is no address of a service. Whether one answers there shows at the first request.

    Examples
    --------
    >>> with connect("http://127.0.0.1:8080") as service:  # doctest: +SKIP
    ...     study = service.open("meal")
    ...     for pull in study.ask(4):
    ...         study.tell(pull, play(pull.arm))
    """
    return Service(url, token or os.environ.get("SIMPLEXPLORE_TOKEN") or None, retry_for)


class Service(Transport):
    """A service and its studies. Threads may share it."""

    def list(self, *, archived: bool = False) -> Summaries:
        """Say of every study how far it is, the latest change first; see `Study.list`."""
        found: Summaries = self.call("GET", f"/studies?archived={str(archived).lower()}")["studies"]
        return found

    def create(
        self, name: str, problem: Problem, sampler: str = defaults.SAMPLER, **settings: Any
    ) -> RemoteStudy:
        """Start a study; the settings are those of `Study.create`."""
        key = settings.pop("key", None)
        body = {"name": name, "problem": problem.to_text(), "sampler": sampler, **settings}
        self.call("POST", "/studies", body, key=key)
        return RemoteStudy(self, name)

    def open(self, name: str) -> RemoteStudy:
        """Find a study by its name."""
        study = RemoteStudy(self, name)
        _ = study.about  # complains if there is none
        return study


class RemoteStudy(LiveStudy):
    """A study of a service, with the methods of `Study`."""

    def __init__(self, service: Service, name: str) -> None:
        self.service = service
        self.name = name
        self._path = f"/studies/{quote(name, safe='')}"
        self._about: About | None = None

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r} at {self.service.url})"

    def close(self) -> None:
        """Close the connection."""
        self.service.close()

    def _get(self, what: str = "", **query: Any) -> Any:
        return self.service.call("GET", f"{self._path}{what}{_query(query)}")

    def _post(self, what: str, body: Mapping[str, Any] | None, key: str | None = None) -> Any:
        return self.service.call("POST", self._path + what, body, key=key)

    # ------------------------------------------------------------------ asking and telling

    def ask(self, n: int = 1, *, by: str | None = None, key: str | None = None) -> Pulls:
        """Say which arms to play next."""
        body = {"n": n} if by is None else {"n": n, "by": by}
        return _pulls(self._post("/pulls", body, key))

    def pending(
        self,
        *,
        by: str | None = None,
        arm: str | None = None,
        limit: int | None = None,
        after: int = 0,
    ) -> Pulls:
        """Pulls that have neither a reward nor expired, oldest first; see `Study.pending`."""
        query = {"by": by, "arm": arm, "limit": limit, "after": after}
        wanted = {name: value for name, value in query.items() if value is not None}
        return _pulls(self._get("/pulls", **wanted))

    def assign(self, pulls: Iterable[str | Pull], by: str) -> Pulls:
        """Let pending pulls be somebody's; see `Study.assign`."""
        return _pulls(self._post("/pulls/assign", {"pulls": [*map(id_of, pulls)], "by": by}))

    def release(self, pulls: Iterable[str | Pull], reason: str = "not made") -> Pulls:
        """Let pulls that were not made expire at once; see `Study.release`."""
        body = {"pulls": [*map(id_of, pulls)], "reason": reason}
        return _pulls(self._post("/pulls/release", body))

    def _tell(self, rewards: Sequence[Reward], unlikely: Unlikely) -> Answers:
        if len(rewards) > MAX_BATCH:
            raise TooLargeError(
                f"a service takes at most {MAX_BATCH:,} rewards at a time; got {len(rewards):,}."
            )
        body = {
            "rewards": [
                {name: value for name, value in vars(one).items() if value is not None}
                for one in rewards
            ],
            "unlikely": unlikely,
        }
        return [Told(**one) for one in self._post("/rewards", body)["rewards"]]

    def import_csv(
        self,
        path: CsvSource,
        *,
        key: str | None = None,
        unlikely: Unlikely = "hold",
    ) -> Answers:
        """Tell all rewards of a CSV file, or none if a row is wrong; see `Study.import_csv`."""
        rewards, places = read_rewards(path, self.problem)
        try:
            return self.tell_many(named(rewards, key), unlikely=unlikely)
        except SimplexploreError as error:
            row = None if error.place is None else error.place.row
            if row is None:
                raise
            text = str(error).removeprefix(f"{place_in_words(Location(row=row))}: ")
            raise type(error)(f"{place_in_words(places[row])}: {text}", place=places[row]) from None

    def check_csv(self, path: CsvSource) -> CheckedFile:
        """Say what importing a CSV file would do, and name all rows that are wrong."""
        _, text = text_of(path)
        found: CheckedFile = self._post("/imports", {"csv": text, "check": True})
        return found

    def extend(self, delta: float, *, key: str | None = None) -> None:
        """Go on with a smaller delta: more confidence, more samples."""
        self._post("/extension", {"delta": delta}, key)

    def note(self, text: str, *, key: str | None = None) -> None:
        """Put a remark into the journal."""
        self._post("/notes", {"text": text}, key)

    def _void(
        self, pull: str | None, event: int | None, reason: str, key: str | None
    ) -> EventRecord:
        body = {"pull": pull, "event": event, "reason": reason}
        recorded: EventRecord = self._post("/voids", body, key)
        return recorded

    def _confirm(self, pull: str | None, event: int | None, key: str | None) -> EventRecord:
        recorded: EventRecord = self._post("/confirm", {"pull": pull, "event": event}, key)
        return recorded

    def stop(self, reason: str, *, key: str | None = None) -> Answer:
        """Say that what is known is good enough; see `Study.stop`."""
        answer: Answer = self._post("/stop", {"reason": reason}, key)
        return answer

    def pause(self) -> None:
        """Hand out no more pulls until `resume`; rewards are still recorded."""
        self._post("/pause", {})

    def archive(self) -> None:
        """Put the study aside: lists leave it out, and it records nothing until `resume`."""
        self._post("/archive", {})

    def resume(self) -> None:
        """Let a study go on that was paused or archived."""
        self._post("/resume", {})

    # ------------------------------------------------------------------ looking

    @property
    def about(self) -> About:
        """What the study is: everything that was fixed when it was made."""
        if self._about is None:
            found = self._get()
            for name in _CHANGING:
                del found[name]
            self._about = found
        return self._about.copy()

    @property
    def created(self) -> float:
        """When the study was made."""
        return float(self.about["created"])

    @property
    def seed(self) -> int:
        """Seed of the sampler's random choices."""
        return int(self.about["seed"])

    @property
    def expire_after(self) -> float:
        """Seconds after which a pull expires."""
        seconds = self.about["expire_after"]
        return float("inf") if seconds is None else float(seconds)

    @property
    def problem(self) -> Problem:
        """What is explored."""
        from simplexplore.problem.problem import Problem

        return Problem.from_text(self.about["problem"], source=f"study {self.name!r}")

    @property
    def state(self) -> StateName:
        """Whether the study runs, in a word: running, stopped, paused or archived."""
        found: StateName = self._get()["state"]
        return found

    @property
    def answer(self) -> Answer | None:
        """What the study found; None while it runs."""
        found: Answer | None = self._get()["answer"]
        return found

    @property
    def answer_in_words(self) -> str:
        """The answer as a sentence."""
        return str(self._get()["answer_in_words"])

    @property
    def head(self) -> int:
        """The number of the last event."""
        return int(self._get()["head"])

    def status(self) -> Status:
        """Say how far the study is, as plain data; see `Study.status`."""
        found: Status = self._get("/status")
        return found

    def history(self, after: int = 0) -> Points:
        """Statistic against threshold over time, for the comparison that is least settled."""
        points: Points = self._get("/history", after=after)["points"]
        return points

    def events(self, after: int = 0, limit: int = ALL) -> Records:
        """The journal after a given event, as plain dicts."""
        return [*islice(self._events(after), limit)]

    def each_event(self) -> Iterator[EventRecord]:
        """The whole journal up to now, read in pieces."""
        head = self.head
        for event in self._events(0):
            if event["seq"] > head:
                return
            yield event

    def _events(self, after: int) -> Iterator[EventRecord]:
        while True:
            some: Records = self._get("/journal", after=after, limit=MAX_BATCH)["events"]
            yield from some
            if len(some) < MAX_BATCH:
                return
            after = some[-1]["seq"]

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all pulls with their rewards to a .csv or .json file."""
        path = Path(path)
        form = path.suffix.lower().removeprefix(".")
        if form not in ("csv", "json"):
            raise SettingError(f"{path}: the ending says in which format to write: .csv or .json.")
        content = self.service.download(f"{self._path}/export{_query({'format': form})}")
        try:
            write_whole(path, content)
        except OSError as error:
            raise SettingError(f"{path}: cannot write it: {error.strerror or error}.") from None

    def verify(self) -> bool:
        """Let the service replay the whole journal and compare it with the current state."""
        return bool(self._post("/verification", None)["sound"])


def _pulls(answer: Mapping[str, Any]) -> Pulls:
    return [Pull(**pull) for pull in answer["pulls"]]


def _query(values: Mapping[str, Any]) -> str:
    return f"?{urlencode(values)}" if values else ""
