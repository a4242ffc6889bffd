"""Studies of a service, used like studies of a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from simplexplore import defaults
from simplexplore.errors import Place, SettingError, SimplexploreError, TooLargeError
from simplexplore.files import written_aside
from simplexplore.protocol import ALL, MAX_BATCH
from simplexplore.study.import_export import CsvSource, read_rewards, text_of
from simplexplore.study.pulls import (
    Answers,
    Pull,
    Pulls,
    Reward,
    RewardLike,
    Told,
    as_reward,
    named,
    place_in_words,
)
from simplexplore.tabular import Rows, Tabular

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

    # Inside the classes, `list` is a method.
    Summaries = list[StudySummary]
    Records = list[EventRecord]
    Points = list[HistoryPoint]

# Seconds for which an unreachable service is tried again: a restart takes a few.
RETRY_FOR = 60.0

# Studies in one answer.
_PAGE = 1000

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
        found: dict[str, StudySummary] = {}
        if self._read_pages(found, archived) > 1:
            # One that changed meanwhile has moved to the front, perhaps past us.
            self._read_pages(found, archived)
        return sorted(found.values(), key=lambda one: (one["changed"], one["name"]), reverse=True)

    def _read_pages(self, found: dict[str, StudySummary], archived: bool) -> int:
        """Read the list of studies until a page holds nothing new; returns how many it took."""
        query: dict[str, Any] = {"limit": _PAGE} | ({"archived": "true"} if archived else {})
        pages = 0
        while True:
            page = self.call("GET", f"/studies{_query(query)}")
            pages += 1
            new = {one["name"]: one for one in page["studies"] if found.get(one["name"]) != one}
            found |= new
            if "next" not in page or not new:
                return pages
            query["after"] = page["next"]

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


class RemoteStudy(Tabular):
    """A study of a service, with the methods of `Study`."""

    def __init__(self, service: Service, name: str) -> None:
        self.service = service
        self.name = name
        self._path = f"/studies/{quote(name, safe='')}"
        self._about: About | None = None

    def rows(self) -> Rows:
        """One row per arm, as `status` has them."""
        return [dict(arm) for arm in self.status()["arms"]]

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r} at {self.service.url})"

    def __enter__(self) -> RemoteStudy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.service.close()

    def _get(self, what: str = "", **query: Any) -> Any:
        return self.service.call("GET", f"{self._path}{what}{_query(query)}")

    def _post(self, what: str, body: Mapping[str, Any] | None, key: str | None = None) -> Any:
        return self.service.call("POST", self._path + what, body, key=key)

    # ------------------------------------------------------------------ asking and telling

    def ask(self, n: int = 1, *, key: str | None = None) -> Pulls:
        """Say which arms to play next."""
        return [Pull(**pull) for pull in self._post("/pulls", {"n": n}, key)["pulls"]]

    def pending(self) -> Pulls:
        """Pulls that have neither a reward nor expired, oldest first."""
        return [Pull(**pull) for pull in self._get("/pulls")["pulls"]]

    def tell(
        self,
        pull: str | Pull | None = None,
        reward: float | None = None,
        *,
        measured: Mapping[str, float] | None = None,
        arm: str | None = None,
        key: str | None = None,
    ) -> Told:
        """Report the reward of a pull, or of an arm that was played elsewhere."""
        identity = pull.id if isinstance(pull, Pull) else pull
        told = Reward(reward, identity, arm, key, measured)  # type: ignore[arg-type]
        return self.tell_many([told])[0]

    def tell_many(self, rewards: Iterable[RewardLike]) -> Answers:
        """Report many rewards at once: all are recorded, or none."""
        wanted = [as_reward(item) for item in rewards]
        if len(wanted) > MAX_BATCH:
            raise TooLargeError(
                f"a service takes at most {MAX_BATCH:,} rewards at a time; got {len(wanted):,}."
            )
        if not wanted:
            return []
        body = {
            "rewards": [
                {name: value for name, value in vars(one).items() if value is not None}
                for one in wanted
            ]
        }
        return [Told(**one) for one in self._post("/rewards", body)["rewards"]]

    def import_csv(
        self,
        path: CsvSource,
        *,
        key: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Answers:
        """Tell all rewards of a CSV file, or none if a row is wrong; see `Study.import_csv`."""
        rewards, places = read_rewards(path, self.problem)
        try:
            told = self.tell_many(named(rewards, key))
            if progress is not None:
                progress(len(told), len(told))
            return told
        except SimplexploreError as error:
            row = None if error.place is None else error.place.row
            if row is None:
                raise
            text = str(error).removeprefix(f"{place_in_words(Place(row=row))}: ")
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

    def void(
        self,
        pull: str | Pull | None = None,
        *,
        reason: str,
        event: int | None = None,
        key: str | None = None,
    ) -> EventRecord:
        """Strike a reward out: the study goes on as if it had never been told."""
        identity = pull.id if isinstance(pull, Pull) else pull
        body = {"pull": identity, "event": event, "reason": reason}
        recorded: EventRecord = self._post("/voids", body, key)
        return recorded

    def pause(self) -> None:
        """Hand out no more pulls until `resume`; rewards are still recorded."""
        self._post("/pause", {})

    def archive(self) -> None:
        """Put the study aside: lists leave it out, and it records nothing until `resume`."""
        self._post("/archive", {})

    def resume(self) -> None:
        """Let a study go on that was paused or archived."""
        self._post("/resume", {})

    def tag(self, *tags: str) -> None:
        """Give the study these tags and no others, by which the list is searched."""
        self._post("/tags", {"tags": tags})

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
    def stopped(self) -> bool:
        """Whether the study has its answer."""
        return self.answer is not None

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
        """Write all pulls with their rewards to a .csv, .json or .parquet file."""
        path = Path(path)
        form = path.suffix.lower().removeprefix(".")
        if form not in ("csv", "json", "parquet"):
            raise SettingError(
                f"{path}: the ending says in which format to write: .csv, .json or .parquet."
            )
        try:
            with written_aside(path) as place, place.open("wb") as file:
                address = f"{self._path}/export{_query({'format': form})}"
                self.service.call("GET", address, into=file)
        except OSError as error:
            raise SettingError(f"{path}: cannot write it: {error.strerror or error}.") from None

    def verify(self) -> bool:
        """Let the service replay the whole journal and compare it with the current state."""
        return bool(self._post("/verification", None)["sound"])


def _query(values: Mapping[str, Any]) -> str:
    return f"?{urlencode(values)}" if values else ""
