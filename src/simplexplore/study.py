"""Live studies: durable ask and tell for weeks, with many workers.

A study is its journal (journal.py) in a store (store.py). Each process keeps the state in
memory and, inside the transaction that writes, catches up with what others have recorded:
decisions are taken one after the other, whoever takes them.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from sqlalchemy.engine import Connection

from . import __version__
from .engine import Plan, whole_number
from .errors import (
    ConflictError,
    PullError,
    RewardError,
    SettingError,
    SimplexploreError,
    StoppedError,
    StoreError,
    TooLargeError,
)
from .exchange import read_rewards, write_study
from .journal import REWARDED, Event, Journal, overdue
from .problem import Problem
from .pulls import Pull, Reward, Told, as_reward
from .samplers import SAMPLERS, find_sampler
from .status import status_of
from .stopping import THRESHOLDS, find_threshold
from .store import ALL, Store
from .words import policy_in_words

Result = TypeVar("Result")

# A pull that nobody has answered for a day is given up, unless told otherwise.
DEFAULT_EXPIRY = 86_400.0

# Pulls or rewards in one request: a request is one transaction.
MAX_BATCH = 100_000

# Seconds for which a lost connection is tried again: a database restarts in a few.
RETRY_FOR = 30.0

# Events between snapshots: replaying them takes a fraction of a second.
SNAPSHOT_EVERY = 4_000

# The history has a point at every step of the logarithm of the number of rewards: 2% more.
HISTORY_STEP = 0.02


# Inside the class, `list` is the method.
Pulls = list[Pull]
Answers = list[Told]
Plain = list[dict[str, Any]]
Events = list[Event]


class Study:
    """A live exploration of a problem, kept in a store; see `create` and `open`.

    Every method is one transaction: it happens as a whole or not at all. Objects may be
    shared by threads, and any number of processes may open the same study.
    """

    def __init__(self, store: Store, row: Any) -> None:
        self.store = store
        self.name: str = row.name
        self.created: float = row.created
        self._id: int = row.id
        self._code: str = row.code
        settings = json.loads(row.settings)
        self.problem = Problem.from_text(row.problem, source=f"study {row.name!r}")
        self.seed: int = settings["seed"]
        self.expire_after: float = settings["expire_after"] or math.inf
        self._plan = Plan(
            problem=self.problem,
            sampler=find_sampler(settings["sampler"]),
            threshold=find_threshold(settings["threshold"]),
            delta=self.problem.delta,
            scenario=self.problem.scenario,
            tracking=settings["tracking"],
        )
        self._numbers = {arm: a for a, arm in enumerate(self.problem.arms)}
        self._mutex = threading.RLock()
        self._journal: Journal | None = None
        self._status: tuple[int, dict[str, Any]] | None = None

    # ------------------------------------------------------------------ making and finding

    @classmethod
    def create(
        cls,
        url: str | os.PathLike[str] | Store,
        name: str,
        problem: Problem,
        sampler: str = "ctns",
        *,
        delta: float | None = None,
        scenario: str | None = None,
        threshold: str = "mixture",
        tracking: str | None = None,
        seed: int = 0,
        expire_after: float | None = DEFAULT_EXPIRY,
        key: str | None = None,
    ) -> Study:
        """Start a study.

        Parameters
        ----------
        url : str
            ``sqlite:///file.db``, a file's path, or ``postgresql://user@host/database``.
        name : str
            Unique in the store.
        problem : Problem
            Kept in the store as a whole; it cannot be changed afterwards.
        sampler : str
            One of `simplexplore.SAMPLERS`, except the oracle.
        delta, scenario
            Default: the problem's.
        threshold : str
            ``"mixture"`` keeps delta as a promise for every family here.
        seed : int
            Driven one pull at a time, the arms are those of run 0 of `simulate`.
        expire_after : float or None
            Seconds after which a pull without an answer is given up and its arm may be asked
            for again. Its reward still counts if it comes later.
        key : str, optional
            Names the request: made again under the same key, it gives the same study.
        """
        if not 0 < len(name) <= 200 or name != name.strip() or not name.isprintable():
            raise SettingError(
                f"a study's name is one line of 1 to 200 characters, without spaces around it; got "
                f"{name!r}."
            )
        if name in (".", ".."):  # they mean something else in the address of a page
            raise SettingError(f"a study cannot be called {name!r}.")
        _check_key(key)
        if delta is not None:
            problem = problem.replace(delta=delta)
        if scenario is not None:
            problem = problem.replace(scenario=scenario)
        whole_number(seed, "seed", 0)
        for what, known, chosen in (
            ("sampler", SAMPLERS, sampler),
            ("threshold", THRESHOLDS, threshold),
        ):
            if chosen not in known and str(chosen).endswith(".py"):
                raise SettingError(
                    f"a live study uses a {what} of the program ({', '.join(known)}): a file of "
                    "one's own might not be there, or not be the same, weeks later."
                )
        if expire_after is not None and not 0 < expire_after < math.inf:
            raise SettingError(
                f"expire_after must be a positive number of seconds, or None; got {expire_after!r}."
            )
        plan = Plan(
            problem=problem,
            sampler=find_sampler(sampler),
            threshold=find_threshold(threshold),
            delta=problem.delta,
            scenario=problem.scenario,
            tracking=tracking,
        )
        Journal(plan, int(seed))  # complains about what cannot be explored
        store = url if isinstance(url, Store) else Store(url)
        settings = {
            "sampler": sampler,
            "threshold": threshold,
            "tracking": tracking,
            "seed": int(seed),
            "expire_after": expire_after,
        }
        if key is not None:
            settings["key"] = key
        now = store.clock()
        with store.writing() as connection:
            earlier = store.look_up(connection, name) if key is not None else None
            if earlier is not None and json.loads(earlier.settings) == settings:
                if earlier.problem != problem.to_text():
                    raise ConflictError(f"the key {key!r} was used for another request.")
                return cls(store, earlier)
            store.create(
                connection,
                {
                    "name": name,
                    "code": secrets.token_hex(3),
                    "created": now,
                    "problem": problem.to_text(),
                    "settings": json.dumps(settings),
                    "head": 0,
                    "changed": now,
                    "state": "running",
                    "delta": problem.delta,
                    "asked": 0,
                    "rewards": 0,
                    "pending": 0,
                    "answer": None,
                },
            )
        store.flush()
        return cls.open(store, name)

    @classmethod
    def open(cls, url: str | os.PathLike[str] | Store, name: str) -> Study:
        """Find a study by its name."""
        store = url if isinstance(url, Store) else Store(url, must_exist=True)
        with store.reading() as connection:
            row = store.find(connection, name)
        return cls(store, row)

    @staticmethod
    def list(url: str | os.PathLike[str] | Store) -> Plain:
        """Say of every study in a store how far it is, the latest change first."""
        store = url if isinstance(url, Store) else Store(url, must_exist=True)
        listed = []
        for row in store.rows():
            settings = json.loads(row["settings"])
            listed.append(
                {
                    "name": row["name"],
                    "state": row["state"],
                    "created": row["created"],
                    "changed": row["changed"],
                    "sampler": settings["sampler"],
                    "threshold": settings["threshold"],
                    "delta": row["delta"],
                    "asked": row["asked"],
                    "rewards": row["rewards"],
                    "pending": row["pending"],
                    "head": row["head"],
                    "progress": _progress(row),
                    "answer": json.loads(row["answer"]) if row["answer"] else None,
                }
            )
        return listed

    def close(self) -> None:
        """Give the store's connections back."""
        self.store.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self.name!r} in {self.store.name})"

    # ------------------------------------------------------------------ asking

    def ask(self, n: int = 1, *, key: str | None = None) -> Pulls:
        """Say which arms to play next.

        Parameters
        ----------
        n : int
            Pulls wanted. Those under way count, so batches do not pile on one arm.
        key : str, optional
            Names the request: asked again under the same key, it gives the same pulls.
        """
        whole_number(n, "n", 1)
        if n > MAX_BATCH:
            raise TooLargeError(f"at most {MAX_BATCH} pulls at a time; got n = {n}.")
        _check_key(key)

        def work(connection: Connection, journal: Journal) -> Pulls:
            if key is not None:
                earlier = self.store.keys(connection, self._id, [key])
                if earlier:
                    if {event.kind for event in earlier} != {"asked"} or len(earlier) != n:
                        raise ConflictError(f"the key {key!r} was used for another request.")
                    return [self._pull(event) for event in earlier]
            if journal.answer is not None:
                raise StoppedError(
                    f"study {self.name!r} has stopped and gives no more pulls. "
                    f"{self._in_words(journal.answer)} To go on with more confidence, extend it "
                    "to a smaller delta."
                )
            now = self.store.clock()
            late = overdue(journal.flights, now, self.expire_after)
            proposed = [
                Event("expired", pull=number, arm=journal.flights[number].arm) for number in late
            ]
            first = journal.asked + 1
            proposed += [Event("asked", pull=first + i, key=key) for i in range(n)]
            recorded = self._record(connection, journal, proposed, now)
            return [self._pull(event) for event in recorded if event.kind == "asked"]

        # Asked again after a lost connection, pulls that nobody makes expire.
        return self._write(work, repeatable=True)

    def _pull(self, event: Event) -> Pull:
        assert event.pull is not None
        assert event.arm is not None
        identity = self._identity(event.pull, event.arm, event.at)
        return Pull(identity, self.problem.arms[event.arm], event.at)

    def _identity(self, number: int, arm: int, at: float) -> str:
        """What a pull is called outside: study, number, and a check against mix-ups.

        If a store is put back from an older copy, numbers are given out again; the check tells
        the two apart.
        """
        check = zlib.crc32(f"{self._code} {number} {arm} {at!r}".encode()) & 0xFFFF
        return f"{self._code}-{number}-{check:04x}"

    # ------------------------------------------------------------------ telling

    def tell(
        self,
        pull: str | Pull | None = None,
        reward: float | None = None,
        *,
        arm: str | None = None,
        key: str | None = None,
    ) -> Told:
        """Report the reward of a pull, or of an arm that was played elsewhere.

        Telling a pull twice is harmless if the reward is the same and refused otherwise. A
        reward of a pull made elsewhere counts each time it is told, unless it has a key.
        """
        identity = pull.id if isinstance(pull, Pull) else pull
        return self.tell_many([Reward(reward, identity, arm, key)])[0]  # type: ignore[arg-type]

    def tell_many(self, rewards: Iterable[Reward | tuple[str | Pull, float]]) -> Answers:
        """Report many rewards at once: all are taken in, or none."""
        wanted = [as_reward(item) for item in rewards]
        if len(wanted) > MAX_BATCH:
            raise TooLargeError(f"at most {MAX_BATCH} rewards at a time; got {len(wanted)}.")
        several = len(wanted) > 1
        return self._tell(
            wanted, [f"reward {i + 1}" if several else "" for i in range(len(wanted))]
        )

    def import_csv(self, path: str | os.PathLike[str]) -> Answers:
        """Tell all rewards of a CSV file, or none if a row is wrong.

        The first line names the columns: ``reward``, and ``pull`` (an id that `ask` gave) or
        ``arm`` (for pulls made elsewhere); ``key`` is optional and makes it safe to import an
        arm's reward twice.
        """
        return self._tell(*read_rewards(path))

    def _tell(self, wanted: Sequence[Reward], places: Sequence[str]) -> Answers:
        if not wanted:
            return []
        numbers: dict[str, int] = {}
        for item, place in zip(wanted, places, strict=True):
            with _placed(place):
                self._check(item)
                if item.pull is not None:
                    numbers[item.pull] = self._number(item.pull)
        keys = [item.key for item in wanted if item.key is not None]

        def work(connection: Connection, journal: Journal) -> Answers:
            landed = [number for number in numbers.values() if number not in journal.flights]
            known = _Known(
                self,
                journal,
                numbers,
                self.store.pulls(connection, self._id, landed),
                self.store.keys(connection, self._id, keys),
            )
            proposed: Events = []
            outcomes = []
            for item, place in zip(wanted, places, strict=True):
                with _placed(place):
                    event, outcome = known.settle(item)
                if outcome != "repeated":
                    proposed.append(event)
                assert event.arm is not None
                outcomes.append((item, event.arm, outcome))
            if proposed:
                self._record(connection, journal, proposed, self.store.clock())
            stopped = journal.answer is not None
            return [
                Told(item.pull, self.problem.arms[number], float(item.reward), outcome, stopped)
                for item, number, outcome in outcomes
            ]

        # Without a pull or key, telling twice would count twice.
        known = all(item.pull is not None or item.key is not None for item in wanted)
        return self._write(work, repeatable=known)

    def _check(self, item: Reward) -> None:
        """Refuse what can be refused without looking at the journal."""
        if (item.pull is None) == (item.arm is None):
            raise PullError(
                "name the pull, or the arm if the pull was made elsewhere: one of them."
            )
        if item.reward is None:
            raise RewardError("the reward is missing.")
        if item.arm is not None and item.arm not in self._numbers:
            raise SettingError(
                f"there is no arm {item.arm!r}; arms: {', '.join(self.problem.arms)}."
            )
        _check_key(item.key)
        self.problem.rewards.check_reward(item.reward)

    def _number(self, identity: object) -> int:
        """The number in a pull's id."""
        parts = identity.split("-") if isinstance(identity, str) else []
        if len(parts) != 3 or not parts[1].isdecimal() or len(parts[1]) > 18:
            raise PullError(
                f"{identity!r} is not the id of a pull; ask gives ids like {self._code}-1-0f3a."
            )
        if parts[0] != self._code:
            raise PullError(f"pull {identity!r} belongs to another study, not to {self.name!r}.")
        return int(parts[1])

    # ------------------------------------------------------------------ other events

    def extend(self, delta: float, *, key: str | None = None) -> None:
        """Go on with a smaller delta: more confidence, more samples."""
        delta = self.problem.replace(delta=delta).delta
        _check_key(key)

        def work(connection: Connection, journal: Journal) -> None:
            if self._is_repeated(connection, Event("extended", key=key, data={"delta": delta})):
                return
            present = journal.engine.plan.delta
            if not delta < present:
                raise SettingError(
                    f"a study can only be extended to a smaller delta: it has {present:g}, got "
                    f"{delta:g}."
                )
            event = Event("extended", key=key, data={"delta": delta, "before": present})
            self._record(connection, journal, [event], self.store.clock())

        self._write(work, repeatable=key is not None)

    def note(self, text: str, *, key: str | None = None) -> None:
        """Put a remark into the journal."""
        if not text.strip() or len(text) > 10_000:
            raise SettingError("a note is a text of 1 to 10,000 characters.")
        _check_key(key)

        def work(connection: Connection, journal: Journal) -> None:
            event = Event("noted", key=key, data={"text": text})
            if not self._is_repeated(connection, event):
                self._record(connection, journal, [event], self.store.clock())

        self._write(work, repeatable=key is not None)

    def _is_repeated(self, connection: Connection, event: Event) -> bool:
        """Whether the request that a key names was fulfilled before."""
        earlier = [] if event.key is None else self.store.keys(connection, self._id, [event.key])
        if not earlier:
            return False
        known, wanted = dict(earlier[0].data or {}), dict(event.data or {})
        if earlier[0].kind != event.kind or known | wanted != known:
            raise ConflictError(f"the key {event.key!r} was used for another request.")
        return True

    # ------------------------------------------------------------------ looking

    @property
    def stopped(self) -> bool:
        """Whether the study has its answer."""
        return self.answer is not None

    @property
    def answer(self) -> dict[str, Any] | None:
        """What the study found: policy, value, delta, and the evidence; None while it runs."""
        with self._looking() as journal:
            return journal.answer

    def events(self, after: int = 0, limit: int = ALL) -> Plain:
        """The journal after a given event, as plain dicts."""
        with self.store.reading() as connection:
            found = self.store.read(connection, self._id, after, limit)
        return [self._plain(event) for event in found]

    def each_event(self) -> Iterator[dict[str, Any]]:
        """The whole journal up to now, read in pieces."""
        with self.store.reading() as connection:
            head = self.store.head(connection, self._id)
            for some in self._stretches(connection, 0, head):
                yield from map(self._plain, some)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all pulls with their rewards to a .csv, .json or .parquet file."""
        return write_study(path, self.about | {"answer": self.answer}, self.each_event())

    @property
    def about(self) -> dict[str, Any]:
        """What the study is: everything that was fixed when it was made."""
        return {
            "name": self.name,
            "created": self.created,
            "problem": self.problem.to_text(),
            "sampler": self._plan.sampler.name,
            "threshold": self._plan.threshold.name,
            "tracking": self._plan.tracking,
            "delta": self._plan.delta,
            "scenario": self._plan.scenario,
            "seed": self.seed,
            "expire_after": None if math.isinf(self.expire_after) else self.expire_after,
        }

    def _plain(self, event: Event) -> dict[str, Any]:
        """An event as others read it: arms by name, new pulls by id too."""
        plain: dict[str, Any] = {"seq": event.seq, "at": event.at, "event": event.kind}
        if event.pull is not None:
            plain["number"] = event.pull
        if event.kind == "asked":
            plain["pull"] = self._pull(event).id
        if event.arm is not None:
            plain["arm"] = self.problem.arms[event.arm]
        if event.reward is not None:
            plain["reward"] = event.reward
        if event.key is not None:
            plain["key"] = event.key
        return plain | dict(event.data or {})

    def history(self, after: int = 0) -> Plain:
        """Statistic against threshold over time, for the comparison that is least settled."""
        with self.store.reading() as connection:
            points = self.store.points(connection, self._id, after)
        for point in points:
            del point["study"]
        return points

    def status(self) -> dict[str, Any]:
        """Everything there is to know now, as plain data; see `simplexplore.status`."""
        with self._looking() as journal:
            if self._status is None or self._status[0] != journal.seq:
                self._status = (journal.seq, status_of(journal))
            now = self.store.clock()
            return {
                "name": self.name,
                "store": self.store.name,
                "created": self.created,
                "now": now,
                "seed": self.seed,
                "expire_after": None if math.isinf(self.expire_after) else self.expire_after,
                "overdue": len(overdue(journal.flights, now, self.expire_after)),
                **self._status[1],
            }

    @property
    def answer_in_words(self) -> str:
        """The answer as a sentence."""
        answer = self.answer
        return "No answer yet." if answer is None else self._in_words(answer)

    def _in_words(self, answer: Mapping[str, Any]) -> str:
        mix = policy_in_words(np.array(answer["policy"]), self.problem.arms)
        sure = self._plan.threshold.is_proven(self.problem.rewards.name)
        rule = "" if sure else ", by a rule of thumb"
        return f"The answer, wrong with probability at most {answer['delta']:g}{rule}: {mix}."

    @property
    def head(self) -> int:
        """The number of the last event."""
        with self.store.reading() as connection:
            return self.store.head(connection, self._id)

    def verify(self) -> bool:
        """Replay the whole journal and compare with the state in use, to the last bit."""
        with self._looking() as journal:
            replayed = Journal(self._plan, self.seed)
            with self.store.reading() as connection:
                for events in self._stretches(connection, 0, journal.seq):
                    replayed.replay(events)
            return journal.same_as(replayed)

    # ------------------------------------------------------------------ state and journal

    def _stretches(self, connection: Connection, after: int, head: int) -> Iterator[Events]:
        """Recorded events in pieces, so that memory stays flat."""
        while after < head:
            some = self.store.read(connection, self._id, after, min(50_000, head - after))
            yield some
            after = some[-1].seq

    def _load(self, connection: Connection) -> Journal:
        """The state from the last snapshot, or from nothing."""
        journal = Journal(self._plan, self.seed)
        journal.engine.announce_live()
        data = self.store.snapshot(connection, self._id, _code(journal))
        found = None if data is None else Journal.from_snapshot(self._plan, data)
        return journal if found is None else found

    def _caught_up(self, connection: Connection, head: int) -> Journal:
        """The state after every event up to the head."""
        journal, self._journal = self._journal, None
        if journal is None or not self._catch_up(connection, journal, head):
            journal = self._load(connection)
            self._catch_up(connection, journal, head)
        self._journal = journal
        return journal

    def _catch_up(self, connection: Connection, journal: Journal, head: int) -> bool:
        """Take in what was recorded since; False if the store holds another past.

        It does if an older copy was put back, or if a server crashed with events that others
        had seen and nobody was told of.
        """
        known = journal.last is not None
        if journal.seq > head:
            return False
        for events in self._stretches(connection, journal.seq - known, head):
            if known and not journal.goes_on_with(events[0]):
                return False
            journal.replay(events[known:])
            known = False
        return True

    @contextmanager
    def _looking(self) -> Iterator[Journal]:
        """The state as it is now, for this thread alone."""
        with self._mutex:
            with self.store.reading() as connection:
                journal = self._caught_up(connection, self.store.head(connection, self._id))
            yield journal

    def _write(
        self,
        work: Callable[[Connection, Journal], Result],
        *,
        repeatable: bool = False,
    ) -> Result:
        """Run a decision alone in the store, on the latest state.

        A lost connection is tried again for a while, unless it was lost while the decision was
        being made final and taking it twice would matter.
        """
        started = time.monotonic()
        pause = 0.05
        while True:
            attempt = _Attempt()
            try:
                with self._mutex:
                    result = self._attempt(work, attempt)
                self.store.flush()  # other threads go on meanwhile
                return result
            except StoreError as error:
                settled = attempt.is_final and not repeatable
                if not error.passing or settled or time.monotonic() - started > RETRY_FOR:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _attempt(self, work: Callable[[Connection, Journal], Result], attempt: _Attempt) -> Result:
        if self._journal is None:
            with self._looking():  # a long replay should not hold up other writers
                pass
        head = -1
        try:
            with self.store.writing() as connection:
                head = self.store.lock(connection, self._id)
                result = work(connection, self._caught_up(connection, head))
                attempt.is_final = True
            return result
        except BaseException:
            if self._journal is not None and self._journal.seq > head >= 0:
                # What was decided may not have been recorded: read it again.
                self._journal = None
            raise

    def _record(
        self, connection: Connection, journal: Journal, proposed: Sequence[Event], now: float
    ) -> Events:
        """Decide and write down."""
        before = journal.seq, journal.rewards
        # Until the decision is complete, an error must not leave half of it in memory.
        self._journal = None
        recorded = journal.decide(proposed, now)
        self._journal = journal
        self.store.append(
            connection,
            self._id,
            recorded,
            {
                "head": journal.seq,
                "changed": now,
                "state": "running" if journal.answer is None else "stopped",
                "delta": journal.engine.plan.delta,
                "asked": journal.asked,
                "rewards": journal.rewards,
                "pending": len(journal.flights),
                "answer": None if journal.answer is None else json.dumps(journal.answer),
            },
        )
        if journal.engine.is_warm and _is_due(before[1], journal.rewards, recorded):
            self._remember(connection, journal, now)
        if journal.seq // SNAPSHOT_EVERY > before[0] // SNAPSHOT_EVERY:
            data = journal.snapshot()
            self.store.keep(connection, self._id, _code(journal), journal.seq, data)
        return recorded

    def _remember(self, connection: Connection, journal: Journal, now: float) -> None:
        """Add a point to the history."""
        _, statistics, thresholds = journal.engine.evidence()
        weakest = int((statistics - thresholds).argmin())
        self.store.add_point(
            connection,
            {
                "study": self._id,
                "seq": journal.seq,
                "at": now,
                "rewards": journal.rewards,
                "statistic": float(statistics[weakest]),
                "threshold": float(thresholds[weakest]),
                "policy": json.dumps(journal.engine.policy.tolist()),
            },
        )


def _progress(row: Mapping[str, Any]) -> float | None:
    """Which share of the evidence needed there is, by the last point of the history."""
    if row["state"] == "stopped":
        return 1.0
    if row["statistic"] is None:
        return None
    return float(min(1.0, row["statistic"] / row["threshold"]))


def _code(journal: Journal) -> str:
    """Which program can use a snapshot: this version, with this compiled code."""
    return f"{__version__} {journal.engine.fingerprint}"


class _Attempt:
    """How far a transaction came."""

    is_final = False


def _is_due(before: int, rewards: int, recorded: Sequence[Event]) -> bool:
    """Whether the history needs a point: at every 2% more rewards, and where delta or state change.

    It depends on the journal alone, not on who writes.
    """
    if any(event.kind in ("stopped", "extended") for event in recorded):
        return True
    return rewards > before and (
        before == 0 or math.log(rewards) // HISTORY_STEP > math.log(before) // HISTORY_STEP
    )


class _Known:
    """What a journal holds about some rewards; settles them one after the other."""

    def __init__(
        self,
        study: Study,
        journal: Journal,
        numbers: dict[str, int],
        landed: Sequence[Event],
        keyed: Sequence[Event],
    ) -> None:
        self._study, self._journal, self._numbers = study, journal, numbers
        self._asked = {event.pull: event for event in landed if event.kind == "asked"}
        self._answered = {event.pull: event for event in landed if event.kind in REWARDED}
        self._keyed = {event.key: event for event in keyed}

    def settle(self, item: Reward) -> tuple[Event, str]:
        """The event to record, and what becomes of it."""
        event = self._of_a_pull(item) if item.arm is None else self._made_elsewhere(item)
        earlier = self._keyed.get(event.key) if event.key is not None else None
        if earlier is None and event.pull is not None:
            earlier = self._answered.get(event.pull)
        if earlier is not None:
            if (earlier.pull, earlier.arm, earlier.reward) != (event.pull, event.arm, event.reward):
                self._refuse(item, earlier)
            return event, "repeated"
        if event.pull is not None:
            self._answered[event.pull] = event
        if event.key is not None:
            self._keyed[event.key] = event
        return event, event.kind

    def _made_elsewhere(self, item: Reward) -> Event:
        assert item.arm is not None
        number = self._study._numbers[item.arm]
        if not self._journal.engine.may_play(number):
            raise SettingError(
                f"no feasible policy uses arm {item.arm!r}, so its rewards say nothing; drop them."
            )
        return Event("elsewhere", arm=number, reward=float(item.reward), key=item.key)

    def _of_a_pull(self, item: Reward) -> Event:
        assert item.pull is not None
        number = self._numbers[item.pull]
        flight = self._journal.flights.get(number)
        if flight is not None:
            arm, at, kind = flight.arm, flight.at, "told"
        elif number in self._asked:
            asked = self._asked[number]
            assert asked.arm is not None
            arm, at, kind = asked.arm, asked.at, "late"
        else:
            arm, at, kind = -1, 0.0, "unknown"
        if kind == "unknown" or self._study._identity(number, arm, at) != item.pull:
            raise PullError(
                f"study {self._study.name!r} never gave out a pull {item.pull!r}. If its store was "
                "put back from an older copy, tell the reward with the arm instead of the pull."
            )
        return Event(kind, pull=number, arm=arm, reward=float(item.reward), key=item.key)

    def _refuse(self, item: Reward, earlier: Event) -> None:
        if item.key is not None and earlier.key == item.key:
            raise ConflictError(f"the key {item.key!r} was used for another reward or request.")
        raise ConflictError(
            f"pull {item.pull!r} has the reward {earlier.reward!r} already, and now came "
            f"{float(item.reward)!r}. The first is kept; if it is wrong, note it."
        )


def _check_key(key: object) -> None:
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= 200):
        raise SettingError(f"a key is a text of 1 to 200 characters; got {key!r}.")


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Say in which item of a batch something is wrong."""
    try:
        yield
    except SimplexploreError as error:
        if not place:
            raise
        raise type(error)(f"{place}: {error} Nothing was recorded.") from None
