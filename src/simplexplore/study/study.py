"""Live studies: durable ask and tell for weeks, with many workers.

A study is its journal (journal.py) in a store (store.py); ledger.py keeps a process up to
date with it, and what changes it is one turn each (turn.py).
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from simplexplore.errors import ConflictError, SettingError, StoppedError, TooLargeError
from simplexplore.problem.checks import whole_number
from simplexplore.problem.problem import Problem
from simplexplore.problem.spelling import policy_in_words

from .import_export import read_rewards, write_study
from .pull_ids import PullIds
from .pulls import Pull, Reward, Told, as_reward, check_key
from .replica import Ledger
from .settings import DEFAULT_EXPIRY, Settings
from .state import Event, Journal, overdue
from .status import status_of
from .store import ALL, Store
from .telling import Intake
from .transaction import Turn

# Pulls or rewards in one request: a request is one transaction.
MAX_BATCH = 100_000

# Inside the class, `list` is the method.
Pulls = list[Pull]
Answers = list[Told]
Plain = list[dict[str, Any]]


class Study:
    """A live exploration of a problem, kept in a store; see `create` and `open`.

    Every method is one transaction: it happens as a whole or not at all. Objects may be
    shared by threads, and any number of processes may open the same study.
    """

    def __init__(self, store: Store, row: Any) -> None:
        self.store = store
        self.name: str = row.name
        self.created: float = row.created
        self.problem = Problem.from_text(row.problem, source=f"study {row.name!r}")
        settings = Settings.from_text(row.settings)
        self.seed = settings.seed
        self.expire_after = settings.expire_after or math.inf
        self._plan = settings.plan(self.problem)
        self._ids = PullIds(row.name, row.code)
        self._ledger = Ledger(store, row, self._plan, settings.seed)
        self._status: tuple[Journal, int, dict[str, Any]] | None = None

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
        _check_name(name)
        if delta is not None:
            problem = problem.replace(delta=delta)
        if scenario is not None:
            problem = problem.replace(scenario=scenario)
        settings = Settings(sampler, threshold, tracking, seed, expire_after, key)
        Journal(settings.plan(problem), int(seed))  # complains about what cannot be explored
        store = url if isinstance(url, Store) else Store(url)
        with store.writing() as connection:
            earlier = store.reserve(connection, name)
            if earlier is not None:
                if key is None or Settings.from_text(earlier.settings) != settings:
                    raise ConflictError(
                        f"there is a study {name!r} in {store.name} already; open it, or choose "
                        "another name."
                    )
                if earlier.problem != problem.to_text():
                    raise ConflictError(f"the key {key!r} was used for another request.")
                return cls(store, earlier)
            store.create(
                connection,
                name=name,
                code=secrets.token_hex(3),
                created=store.clock(),
                problem=problem.to_text(),
                settings=settings.to_text(),
                delta=problem.delta,
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
        check_key(key)

        def work(turn: Turn) -> Pulls:
            earlier = [] if key is None else turn.under_keys([key])
            if earlier:
                if {event.kind for event in earlier} != {"asked"} or len(earlier) != n:
                    raise ConflictError(f"the key {key!r} was used for another request.")
                return [self._pull(event) for event in earlier]
            journal = turn.journal
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
            recorded = turn.record(proposed, now)
            return [self._pull(event) for event in recorded if event.kind == "asked"]

        # Asked again after a lost connection, pulls that nobody makes expire.
        return self._ledger.write(work, repeatable=True)

    def _pull(self, event: Event) -> Pull:
        assert event.pull is not None
        assert event.arm is not None
        identity = self._ids.write(event.pull, event.arm, event.at)
        return Pull(identity, self.problem.arms[event.arm], event.at)

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
        intake = Intake(self.problem, self._ids, wanted, places)

        def work(turn: Turn) -> Answers:
            proposed, told = intake.settle(
                turn.journal,
                turn.of_pulls(intake.landed(turn.journal)),
                turn.under_keys(intake.keys),
            )
            if proposed:
                turn.record(proposed, self.store.clock())
            stopped = turn.journal.answer is not None
            return [replace(one, stopped=stopped) for one in told]

        return self._ledger.write(work, repeatable=intake.is_repeatable)

    # ------------------------------------------------------------------ other events

    def extend(self, delta: float, *, key: str | None = None) -> None:
        """Go on with a smaller delta: more confidence, more samples."""
        delta = self.problem.replace(delta=delta).delta
        check_key(key)

        def work(turn: Turn) -> None:
            if turn.fulfilled(Event("extended", key=key, data={"delta": delta})):
                return
            present = turn.journal.engine.plan.delta
            if not delta < present:
                raise SettingError(
                    f"a study can only be extended to a smaller delta: it has {present:g}, got "
                    f"{delta:g}."
                )
            event = Event("extended", key=key, data={"delta": delta, "before": present})
            turn.record([event], self.store.clock())

        self._ledger.write(work, repeatable=key is not None)

    def note(self, text: str, *, key: str | None = None) -> dict[str, Any]:
        """Put a remark into the journal; returns it as `events` does."""
        if not text.strip() or len(text) > 10_000:
            raise SettingError("a note is a text of 1 to 10,000 characters.")
        check_key(key)

        def work(turn: Turn) -> Event:
            event = Event("noted", key=key, data={"text": text})
            return turn.fulfilled(event) or turn.record([event], self.store.clock())[0]

        return self._plain(self._ledger.write(work, repeatable=key is not None))

    # ------------------------------------------------------------------ looking

    @property
    def stopped(self) -> bool:
        """Whether the study has its answer."""
        return self.answer is not None

    @property
    def answer(self) -> dict[str, Any] | None:
        """What the study found: policy, value, delta, and the evidence; None while it runs."""
        with self._ledger.latest() as journal:
            return journal.answer

    def events(self, after: int = 0, limit: int = ALL) -> Plain:
        """The journal after a given event, as plain dicts."""
        with self.store.reading() as connection:
            found = self.store.read(connection, self._ledger.study, after, limit)
        return [self._plain(event) for event in found]

    def each_event(self) -> Iterator[dict[str, Any]]:
        """The whole journal up to now, read in pieces."""
        return map(self._plain, self._ledger.events())

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
            points = self.store.points(connection, self._ledger.study, after)
        for point in points:
            del point["study"]
        return points

    def status(self) -> dict[str, Any]:
        """Everything there is to know now, as plain data; see `simplexplore.status`."""
        with self._ledger.latest() as journal:
            # Another journal may be as long: an older copy of the store was put back.
            if self._status is None or self._status[:2] != (journal, journal.seq):
                self._status = (journal, journal.seq, status_of(journal))
            now = self.store.clock()
            return {
                "name": self.name,
                "store": self.store.name,
                "created": self.created,
                "now": now,
                "seed": self.seed,
                "expire_after": None if math.isinf(self.expire_after) else self.expire_after,
                "overdue": len(overdue(journal.flights, now, self.expire_after)),
                **self._status[2],
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
        epsilon = self.problem.epsilon
        within = f"within {epsilon:g} of the best, " if epsilon else ""
        return (
            f"The answer, {within}wrong with probability at most {answer['delta']:g}{rule}: {mix}."
        )

    @property
    def head(self) -> int:
        """The number of the last event."""
        return self._ledger.head

    def verify(self) -> bool:
        """Replay the whole journal and compare with the state in use, to the last bit."""
        return self._ledger.verify()


def _check_name(name: str) -> None:
    if not 0 < len(name) <= 200 or name != name.strip() or not name.isprintable():
        raise SettingError(
            f"a study's name is one line of 1 to 200 characters, without spaces around it; got "
            f"{name!r}."
        )
    if name in (".", ".."):  # they mean something else in the address of a page
        raise SettingError(f"a study cannot be called {name!r}.")


def _progress(row: Mapping[str, Any]) -> float | None:
    """Which share of the evidence needed there is, by the last point of the history."""
    if row["state"] == "stopped":
        return 1.0
    if row["statistic"] is None:
        return None
    return float(min(1.0, row["statistic"] / row["threshold"]))
