"""Live studies: durable ask and tell for weeks, with many workers.

A study is its journal of events in a store. Each process has a replica of the state that they
add up to, and what changes it is one transaction each.
"""

from __future__ import annotations

import builtins
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from sqlalchemy.engine import Row

from simplexplore import defaults
from simplexplore.errors import (
    Place,
    SettingError,
    SimplexploreError,
    StoppedError,
    StoreError,
    TooLargeError,
)
from simplexplore.exploration.plan import Plan
from simplexplore.kernels.collector import without_collector
from simplexplore.problem.problem import Problem, check_problem
from simplexplore.protocol import ALL
from simplexplore.tabular import Rows, Tabular

from .asking import MAX_BATCH, ask, paused
from .correcting import void
from .events import Event
from .import_export import CsvSource, measured_columns, read_rewards, write_study
from .pulls import Answers, Pull, Pulls, Reward, RewardLike, Told, as_reward, check_key, named
from .records import (
    About,
    Answer,
    CheckedFile,
    EventRecord,
    HistoryPoint,
    StateName,
    StudySummary,
    checked_file,
    event_record,
)
from .registry import check_name, find, register, summaries, trouble_of
from .replica import Replica
from .retries import retried
from .settings import DEFAULT_EXPIRY, Settings
from .state import State
from .status import status_of
from .status_records import StateStatus, Status
from .store import Store
from .telling import check, tell
from .transaction import Transaction

# Inside the class, `list` is the method.
Summaries = list[StudySummary]
Records = list[EventRecord]
Points = list[HistoryPoint]


class Study(Tabular):
    """A live exploration of a problem, kept in a store; see `create` and `open`.

    Every method is one transaction: it happens as a whole or not at all. Objects may be
    shared by threads, and any number of processes may open the same study.

    Attributes
    ----------
    store : Store
        Where it is kept.
    name : str
    problem : Problem
    created : float
        When, in seconds since 1970.
    seed : int
    expire_after : float
        Seconds after which a pull without a reward expires; infinite if never.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from simplexplore import Problem
    >>> folder = TemporaryDirectory()
    >>> study = Study.create(f"{folder.name}/mix.db", "mix", Problem(["a", "b"], delta=0.1))
    >>> (pull,) = study.ask()
    >>> pull.arm, study.tell(pull, 1.5).outcome
    ('a', 'told')
    >>> study.status()["rewards"], study.stopped
    (1, False)
    >>> study.close()
    >>> folder.cleanup()
    """

    def __init__(self, store: Store, row: Row[Any]) -> None:
        self.store = store
        self.name: str = row.name
        self.created: float = row.created
        self.problem, settings, plan = _made_with(store, row)
        self.seed = settings.seed
        self.expire_after = settings.expire_after or math.inf
        self._replica = Replica(store, row, plan, settings.seed)
        self._status: tuple[State, int, StateStatus] | None = None

    # ------------------------------------------------------------------ making and finding

    @classmethod
    def create(
        cls,
        url: str | os.PathLike[str] | Store,
        name: str,
        problem: Problem,
        sampler: str = defaults.SAMPLER,
        *,
        delta: float | None = None,
        scenario: str | None = None,
        threshold: str = defaults.THRESHOLD,
        tracking: str | None = None,
        seed: int = 0,
        expire_after: float | None = DEFAULT_EXPIRY,
        key: str | None = None,
    ) -> Study:
        """Start a study.

        Parameters
        ----------
        url : str, path or Store
            ``sqlite:///file.db``, a file's path, or ``postgresql://user@host/database``.
        name : str
            Unique in the store.
        problem : Problem
            Kept in the store; it cannot be changed afterwards. Its means are not used.
        sampler : str
            One of `simplexplore.SAMPLERS`, except the oracle.
        delta : float, optional
            Allowed probability of a wrong answer; the problem's unless given.
        scenario : str, optional
            The problem's unless given.
        threshold : str
            One of `simplexplore.THRESHOLDS`; ``"tilt"`` guarantees delta for every family.
        tracking : str, optional
            How pulls follow the allocation; the sampler's own way unless given.
        seed : int
            Driven one pull at a time, the arms are those of run 0 of `simulate`.
        expire_after : float or None
            Seconds after which a pull without a reward expires and its arm may be asked for
            again; None for never. A reward that arrives later still counts.
        key : str, optional
            A name for the request: made again under the same key, it gives the same study.

        Returns
        -------
        Study

        Raises
        ------
        SettingError
            If the sampler, the threshold or another setting cannot be used for this problem.
        ConflictError
            If the store has a study of that name.
        StoreError
            If the store cannot be used.
        """
        check_name(name)
        problem = check_problem(problem)
        if delta is not None:
            problem = problem.replace(delta=delta)
        if scenario is not None:
            problem = problem.replace(scenario=scenario)
        settings = Settings(sampler, threshold, tracking, seed, expire_after, key)
        State(settings.plan(problem), int(seed))  # complains about what cannot be explored
        store = url if isinstance(url, Store) else Store(url)
        return cls(store, register(store, name, problem, settings))

    @classmethod
    def open(cls, url: str | os.PathLike[str] | Store, name: str) -> Study:
        """Open a study by its name; a database that restarts is waited for.

        Parameters
        ----------
        url : str, path or Store
            As for `create`.
        name : str
            The study's name.

        Returns
        -------
        Study

        Raises
        ------
        UnknownStudyError
            If the store has no study of that name.
        StoreError
            If the store is not there, damaged, or made by a newer version.
        """

        def opened() -> Study:
            store = url if isinstance(url, Store) else Store(url, must_exist=True)
            return cls(store, find(store, name))

        return retried(opened)

    @staticmethod
    def list(url: str | os.PathLike[str] | Store, *, archived: bool = False) -> Summaries:
        """Say of every study in a store how far it is, the latest change first.

        Parameters
        ----------
        url : str, path or Store
            As for `create`.
        archived : bool
            Whether to list archived studies too.

        Returns
        -------
        list of dict
            Of each study: `name`, `state`, `rewards`, `pending`, `delta`, `changed` and more.
        """
        store = url if isinstance(url, Store) else Store(url, must_exist=True)
        return summaries(store, archived=archived)

    def close(self) -> None:
        """Close the store's connections."""
        self.store.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self) -> Rows:
        """One row per arm, as `status` has them."""
        return [dict(arm) for arm in self.status()["arms"]]

    def __repr__(self) -> str:
        return f"Study({self.name!r} in {self.store.name})"

    # ------------------------------------------------------------------ asking

    def ask(self, n: int = 1, *, key: str | None = None) -> Pulls:
        """Say which arms to play next.

        Parameters
        ----------
        n : int
            How many pulls. Pending ones count as made, so a batch is spread over the arms.
        key : str, optional
            A name for the request: asked again under the same key, it gives the same pulls.

        Returns
        -------
        list of Pull
            Each with an id under which its reward is told.

        Raises
        ------
        StoppedError
            If the study has its answer.
        PausedError
            If it is paused or archived.
        """
        return ask(self._replica, n, key, self.expire_after)

    def pending(self) -> Pulls:
        """Pulls that have neither a reward nor expired, oldest first.

        Returns
        -------
        list of Pull
        """
        with self._replica.latest() as state:
            waiting = state.pending.copy()
        ids, arms = self._replica.ids, self.problem.arms
        return [
            Pull(ids.write(number, one.arm, one.at), arms[one.arm], one.at)
            for number, one in waiting.items()
        ]

    # ------------------------------------------------------------------ telling

    def tell(
        self,
        pull: str | Pull | None = None,
        reward: float | None = None,
        *,
        measured: Mapping[str, float] | None = None,
        arm: str | None = None,
        key: str | None = None,
    ) -> Told:
        """Report the reward of a pull, or of an arm that was played elsewhere.

        Telling a pull twice is harmless if the reward is the same and refused otherwise. A reward
        of a pull made elsewhere counts each time it is told, unless it has a key.

        Parameters
        ----------
        pull : str or Pull
            What `ask` gave, or its id.
        reward : float
            In the unit of the problem's means.
        measured : mapping, optional
            The measurements of the pull by name, if the problem has measured limits.
        arm : str, optional
            Instead of a pull, the arm that was played elsewhere.
        key : str, optional
            A name for the reward of an arm, so that telling it twice counts once.

        Returns
        -------
        Told
            How it was recorded, and whether the study has its answer now.

        Raises
        ------
        RewardError
            If the family cannot produce such a reward, or a measurement is missing.
        PullError
            If the study never handed out this pull.
        ConflictError
            If another reward is recorded for it; `void` strikes that out.
        """
        identity = pull.id if isinstance(pull, Pull) else pull
        told = Reward(reward, identity, arm, key, measured)  # type: ignore[arg-type]
        return self.tell_many([told])[0]

    def tell_many(self, rewards: Iterable[RewardLike]) -> Answers:
        """Report many rewards at once: all are recorded, or none.

        Parameters
        ----------
        rewards : iterable of Reward or tuple
            A tuple is a pull, its reward and, with measured limits, its measurements.

        Returns
        -------
        list of Told
            In the same order.

        Raises
        ------
        RewardError, PullError, ConflictError
            As `tell` does, naming the reward that is wrong.
        """
        wanted = [as_reward(item) for item in rewards]
        if len(wanted) > MAX_BATCH:
            raise TooLargeError(f"at most {MAX_BATCH} rewards at a time; got {len(wanted)}.")
        return tell(self._replica, wanted, [Place(row=i) for i in range(len(wanted))])

    def import_csv(
        self,
        path: CsvSource,
        *,
        key: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Answers:
        """Tell all rewards of a CSV file, or none if a row is wrong.

        The first line names the columns: ``reward``, and ``pull`` (an id that `ask` gave) or
        ``arm`` (for pulls made elsewhere); ``key`` is optional and makes it safe to import an
        arm's reward twice, as a `key` for the whole file does. Each measured limit has a column of
        its name. Columns are separated by commas or semicolons.

        Parameters
        ----------
        path : str, path or file
            The CSV file.
        key : str, optional
            A name for the whole file, so that importing it twice counts once.
        progress : callable, optional
            Called now and then with how many rewards are recorded, and how many there are.

        Returns
        -------
        list of Told
            In the order of the rows.

        Raises
        ------
        RewardError, PullError, ConflictError
            As `tell` does, naming the line that is wrong.
        """
        return import_rows(self, path, key, progress)[2]

    def check_csv(self, path: CsvSource) -> CheckedFile:
        """Say what importing a CSV file would do, and name all rows that are wrong.

        Parameters
        ----------
        path : str, path or file
            The CSV file.

        Returns
        -------
        dict
            `rows` that can be imported, each with its outcome, and `faults`, each with its `line`
            and `text`.
        """
        faults: builtins.list[SimplexploreError] = []
        with without_collector():
            rewards, places = read_rewards(path, self.problem, faults)
            outcomes, wrong = check(self._replica, rewards, places)
        return checked_file(rewards, places, outcomes, [*faults, *wrong])

    # ------------------------------------------------------------------ other events

    def extend(self, delta: float, *, key: str | None = None) -> None:
        """Go on with a smaller delta: more confidence, more samples.

        Parameters
        ----------
        delta : float
            The new, smaller probability of a wrong answer.
        key : str, optional
            A name for the request: sent again under the same key, it happens once.

        Raises
        ------
        SettingError
            If it is not smaller than the present one.
        PausedError
            If the study is archived.
        """
        delta = self.problem.replace(delta=delta).delta
        check_key(key)

        def work(transaction: Transaction) -> None:
            if transaction.earlier(Event("extended", key=key, data={"delta": delta})):
                return
            if transaction.state.is_archived:
                raise paused(self.name, transaction.state, "cannot be extended")
            present = transaction.state.engine.plan.delta
            if not delta < present:
                raise SettingError(
                    f"a study can only be extended to a smaller delta: it has {present:g}, got "
                    f"{delta:g}."
                )
            event = Event("extended", key=key, data={"delta": delta, "before": present})
            transaction.record([event], self.store.clock())

        self._replica.transact(work, idempotent=key is not None)

    def note(self, text: str, *, key: str | None = None) -> EventRecord:
        """Put a remark into the journal.

        Parameters
        ----------
        text : str
            Up to 10,000 characters.
        key : str, optional
            A name for the request: sent again under the same key, it happens once.

        Returns
        -------
        dict
            The event, as `events` has it.
        """
        if not text.strip() or len(text) > 10_000:
            raise SettingError("a note is a text of 1 to 10,000 characters.")
        check_key(key)

        def work(transaction: Transaction) -> Event:
            event = Event("noted", key=key, data={"text": text})
            return transaction.earlier(event) or transaction.record([event], self.store.clock())[0]

        return self._record(self._replica.transact(work, idempotent=key is not None))

    def void(
        self,
        pull: str | Pull | None = None,
        *,
        reason: str,
        event: int | None = None,
        key: str | None = None,
    ) -> EventRecord:
        """Strike a reward out: the study goes on as if it had never been told.

        Parameters
        ----------
        pull : str or Pull
            Whose reward it is. The pull is pending again: another reward can be told for it, or
            it expires.
        reason : str
            Kept in the journal.
        event : int, optional
            Instead of a pull, the number of the reward in the journal (`events`), for pulls made
            elsewhere.
        key : str, optional
            A name for the request: sent again under the same key, it happens once.

        Returns
        -------
        dict
            The event, as `events` has it.
        """
        identity = pull.id if isinstance(pull, Pull) else pull
        return self._record(void(self._replica, identity, event, reason, key))

    def pause(self) -> None:
        """Hand out no more pulls until `resume`; rewards are still recorded."""
        self._switch("paused", lambda state: state.is_paused)

    def archive(self) -> None:
        """Put the study aside: lists leave it out, and it records nothing until `resume`."""
        self._switch("archived", lambda state: state.is_archived)

    def resume(self) -> None:
        """Let a study go on that was paused or archived."""
        self._switch("resumed", lambda state: not (state.is_paused or state.is_archived))

    def _switch(self, kind: str, is_so: Callable[[State], bool]) -> None:
        def work(transaction: Transaction) -> None:
            state = transaction.state
            if kind == "paused" and state.is_archived:
                raise paused(self.name, state, "hands out no pulls anyway")
            if is_so(state):
                return
            if kind == "paused" and state.answer is not None:
                raise StoppedError(
                    f"study {self.name!r} has stopped: it hands out no pulls anyway."
                )
            transaction.record([Event(kind)], self.store.clock())

        self._replica.transact(work, idempotent=True)

    def tag(self, *tags: str) -> None:
        """Give the study these tags and no others; the dashboard's list can be searched by them.

        Parameters
        ----------
        *tags : str
            Up to 20, each of 1 to 50 characters without commas.
        """
        chosen = [*dict.fromkeys(tag.strip() if type(tag) is str else "" for tag in tags)]
        if len(chosen) > 20 or not all(
            0 < len(tag) <= 50 and tag.isprintable() and "," not in tag for tag in chosen
        ):
            raise SettingError("a study has up to 20 tags of 1 to 50 characters, without commas.")

        def work(transaction: Transaction) -> None:
            if transaction.state.tags != chosen:
                event = Event("tagged", data={"tags": chosen})
                transaction.record([event], self.store.clock())

        self._replica.transact(work, idempotent=True)

    # ------------------------------------------------------------------ looking

    @property
    def state(self) -> StateName:
        """Whether the study runs, in a word: running, stopped, paused or archived."""
        with self._replica.latest() as state:
            return state.name

    @property
    def stopped(self) -> bool:
        """Whether the study has its answer."""
        return self.answer is not None

    @property
    def answer(self) -> Answer | None:
        """What the study found: policy, value, delta, and the evidence; None while it runs."""
        with self._replica.latest() as state:
            return state.answer

    @property
    def answer_in_words(self) -> str:
        """The answer as a sentence."""
        with self._replica.latest() as state:
            return state.answer_in_words

    @property
    def head(self) -> int:
        """The number of the last event."""
        return self._replica.head

    def events(self, after: int = 0, limit: int = ALL) -> Records:
        """The journal after a given event, as plain dicts.

        Parameters
        ----------
        after : int
            The number (`seq`) of the event before the first one; 0 for the whole journal.
        limit : int
            At most so many events.

        Returns
        -------
        list of dict
        """
        return [self._record(event) for event in self._replica.events(after, limit)]

    def each_event(self) -> Iterator[EventRecord]:
        """Iterate over the whole journal, which is read in pieces."""
        return map(self._record, self._replica.each_event())

    def _record(self, event: Event) -> EventRecord:
        return event_record(event, self._replica.ids, self.problem.arms)

    def history(self, after: int = 0) -> Points:
        """Evidence over time, after a given event.

        Parameters
        ----------
        after : int
            The number (`seq`) of an event; 0 for all points.

        Returns
        -------
        list of dict
            Points at every 2% more rewards: `seq`, `at`, `rewards`; `statistic` against
            `threshold` for the comparison that is least settled; `policy`; rewards by arm
            (`counts`); at every 10% more rewards, low, mean and high by arm (`means`).
        """
        return self._replica.history(after)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all pulls with their rewards to a .csv, .json or .parquet file.

        Parameters
        ----------
        path : str or path
            The ending chooses the format.

        Returns
        -------
        int
            How many pulls were written.
        """
        with self._replica.latest() as state:
            head, voided, answer = state.seq, state.corrections.voided, state.answer
        events = takewhile(lambda event: event["seq"] <= head, self.each_event())
        measured = measured_columns(self.problem)
        return write_study(path, {**self.about, "answer": answer}, events, voided, measured)

    @property
    def about(self) -> About:
        """What the study is: everything that was fixed when it was made."""
        plan = self._replica.plan
        return {
            "name": self.name,
            "created": self.created,
            "problem": self.problem.to_text(),
            "sampler": plan.sampler.name,
            "threshold": plan.threshold.name,
            "tracking": plan.tracking,
            "delta": plan.delta,
            "scenario": plan.scenario,
            "seed": self.seed,
            "expire_after": None if math.isinf(self.expire_after) else self.expire_after,
        }

    def status(self) -> Status:
        """Say how far the study is, as plain data.

        Returns
        -------
        dict
            Policy, value, confidence, evidence by edge, samples to go, arms, constraints and
            more; ``study/status_records.py`` lists every key.
        """
        with self._replica.latest() as state:
            # Another state may be as long: an older copy of the store was put back.
            if self._status is None or self._status[:2] != (state, state.seq):
                self._status = (state, state.seq, status_of(state))
            now = self.store.clock()
            return {
                "name": self.name,
                "store": self.store.name,
                "created": self.created,
                "now": now,
                "seed": self.seed,
                "expire_after": None if math.isinf(self.expire_after) else self.expire_after,
                "overdue": len(state.pending.overdue(now, self.expire_after)),
                **self._status[2],
            }

    def verify(self) -> bool:
        """Replay the whole journal and compare the result with the current state, bit by bit.

        Returns
        -------
        bool
            Whether they agree.

        Raises
        ------
        StoreError
            If an event of the journal is damaged; the message says which.
        """
        return self._replica.verify()


def import_rows(
    study: Study,
    path: CsvSource,
    key: str | None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Reward], list[Place], Answers]:
    """`Study.import_csv` for those who also want to know what was in the file, and where."""
    check_key(key)
    with without_collector():
        rewards, places = read_rewards(path, study.problem)
        return rewards, places, tell(study._replica, named(rewards, key), places, progress)


def _made_with(store: Store, row: Row[Any]) -> tuple[Problem, Settings, Plan]:
    """What a study was made with, or `StoreError` if its row is damaged."""
    trouble = trouble_of(row._asdict())
    if trouble is None:
        try:
            problem = Problem.from_text(row.problem, source=f"study {row.name!r}")
            settings = Settings.from_text(row.settings)
            return problem, settings, settings.plan(problem)
        except (SimplexploreError, ValueError, TypeError) as error:
            trouble = f"what it was made with cannot be read ({str(error).rstrip('.')})"
    raise StoreError(
        f"{store.name}: study {row.name!r} is damaged: {trouble}. Nothing was changed; put back a "
        "copy of the store."
    )
