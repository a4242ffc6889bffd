"""Live studies: durable ask and tell for weeks, with many workers.

A study is its journal of events in a store. Each process has a replica of the state that they
add up to, and what changes it is one transaction each.
"""

from __future__ import annotations

import builtins
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from sqlalchemy.engine import Row

from simplexplore import defaults
from simplexplore.errors import (
    SimplexploreError,
    StoreError,
    TooLargeError,
)
from simplexplore.exploration.plan import Plan
from simplexplore.problem.problem import Problem, check_problem
from simplexplore.protocol import ALL

from .asking import MAX_BATCH, asking, assigning, pending_pulls, releasing
from .database import retried
from .events import Event
from .import_export import (
    CsvSource,
    checked_file,
    measured_columns,
    read_rewards,
    write_study,
)
from .live_study import LiveStudy
from .pending import overdue
from .pulls import (
    Answers,
    Pull,
    PullIds,
    Pulls,
    Reward,
    check_key,
    id_of,
    named,
)
from .records import (
    About,
    Answer,
    CheckedFile,
    EventRecord,
    HistoryPoint,
    StateName,
    StudySummary,
    event_record,
)
from .registry import check_name, find_damage, register, summaries
from .replica import Replica
from .settings import DEFAULT_EXPIRY, Definition, Settings
from .state import State
from .status import status_of
from .status_records import StateStatus, Status
from .steering import extending, noting, stopping, switching
from .store import Store
from .telling import Unlikely, checking, telling
from .voiding import confirming, voiding

# Inside the class, `list` is the method.
Summaries = list[StudySummary]
Records = list[EventRecord]
Points = list[HistoryPoint]


class Study(LiveStudy):
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
    replica : Replica
        What asks and tells several things in one transaction.

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
        ids = PullIds(row.name, row.code)
        self.replica = Replica(
            store, Definition(row.id, row.identity, ids, plan, self.seed, self.expire_after)
        )
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
            return cls(store, store.find(name))

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

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the whole store, if it is SQLite, to a file: see `Store.backup`.

        Parameters
        ----------
        path : str or path
            Where to.
        """
        self.store.backup(path)

    def close(self) -> None:
        """Close the store's connections."""
        self.store.close()

    def __repr__(self) -> str:
        return f"Study({self.name!r} in {self.store.name})"

    # ------------------------------------------------------------------ asking

    def ask(self, n: int = 1, *, by: str | None = None, key: str | None = None) -> Pulls:
        """Say which arms to play next.

        Parameters
        ----------
        n : int
            How many pulls. Pending ones count as made, so a batch is spread over the arms.
        by : str, optional
            Who makes them: a name of up to 50 characters.
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
        return self.replica.run(asking(n, key, by))

    def pending(
        self,
        *,
        by: str | None = None,
        arm: str | None = None,
        limit: int | None = None,
        after: int = 0,
    ) -> Pulls:
        """Pulls that have neither a reward nor expired, oldest first.

        Parameters
        ----------
        by : str, optional
            Only those that this one makes.
        arm : str, optional
            Only those of this arm.
        limit : int, optional
            At most so many.
        after : int
            Only pulls with greater numbers: the number of a pull is the middle part of its id.

        Returns
        -------
        list of Pull
        """
        with self.replica.latest() as state:
            found = [
                pull
                for number, pull in pending_pulls(state, self.replica.definition)
                if number > after and by in (None, pull.by) and arm in (None, pull.arm)
            ]
        return found[:limit]

    def assign(self, pulls: Iterable[str | Pull], by: str) -> Pulls:
        """Let pending pulls be somebody's.

        Parameters
        ----------
        pulls : iterable of str or Pull
        by : str
            Who makes them from now on.

        Returns
        -------
        list of Pull

        Raises
        ------
        PullError
            If one of them is not pending; then none is assigned.
        """
        return self.replica.run(assigning([*map(id_of, pulls)], by))

    def release(self, pulls: Iterable[str | Pull], reason: str = "not made") -> Pulls:
        """Let pulls that were not made expire at once, so that their arms can be asked for again.

        Parameters
        ----------
        pulls : iterable of str or Pull
        reason : str
            Kept in the journal. It must not depend on what the reward was or would have been.

        Returns
        -------
        list of Pull
            Those that were pending; one that had expired stays as it is.

        Raises
        ------
        PullError
            If one of them has a reward; then none is released.
        """
        return self.replica.run(releasing([*map(id_of, pulls)], reason))

    # ------------------------------------------------------------------ telling

    def _tell(self, rewards: Sequence[Reward], unlikely: Unlikely) -> Answers:
        if len(rewards) > MAX_BATCH:
            raise TooLargeError(f"at most {MAX_BATCH} rewards at a time; got {len(rewards)}.")
        return self.replica.run(telling(rewards, unlikely=unlikely))

    def import_csv(
        self,
        path: CsvSource,
        *,
        key: str | None = None,
        unlikely: Unlikely = "hold",
    ) -> Answers:
        """Tell all rewards of a CSV file, or none if a row is wrong.

        The first line names the columns: ``reward``, and ``pull`` (an id that `ask` gave) or
        ``arm`` (for pulls made elsewhere); ``key`` is optional and makes it safe to import an
        arm's reward twice, as a `key` for the whole file does. Each measured limit has a column of
        its name. Sums of rewards have the columns ``arm``, ``key``, ``n``, and ``mean`` (with
        ``sd`` if sigma is unknown), ``successes`` or ``total``. Columns are separated by commas or
        semicolons.

        Parameters
        ----------
        path : str, path or file
            The CSV file.
        key : str, optional
            A name for the whole file, so that importing it twice counts once.
        unlikely : str
            What becomes of rewards that look impossible, as for `tell`.

        Returns
        -------
        list of Told
            In the order of the rows.

        Raises
        ------
        RewardError, PullError, ConflictError
            As `tell` does, naming the line that is wrong.
        """
        check_key(key)
        rewards, places = read_rewards(path, self.problem)
        if not rewards:
            return []
        return self.replica.run(telling(named(rewards, key), places, unlikely))

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
        rewards, places = read_rewards(path, self.problem, faults)
        outcomes = self.replica.run(checking(rewards))
        return checked_file(rewards, places, outcomes, faults)

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
        self.replica.run(extending(delta, key))

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
        return self.replica.run(noting(text, key))

    def _void(
        self, pull: str | None, event: int | None, reason: str, key: str | None
    ) -> EventRecord:
        return self.replica.run(voiding(pull, event, reason, key, self.head))

    def stop(self, reason: str, *, key: str | None = None) -> Answer:
        """Say that what is known is good enough; delta is not promised then.

        Rewards of pending pulls are still recorded and change nothing. `extend` goes on.

        Parameters
        ----------
        reason : str
            Kept in the journal.
        key : str, optional
            A name for the request: sent again under the same key, it happens once.

        Returns
        -------
        dict
            The answer, with `by_hand` and the confidence and the regret bound of this moment,
            which hold although somebody chose it.

        Raises
        ------
        StoppedError
            If the study has its answer.
        ConflictError
            If a reward is held that looks impossible.
        StudyError
            If there is no mix to recommend yet.
        PausedError
            If the study is archived.
        """
        return self.replica.run(stopping(reason, key))

    def _confirm(self, pull: str | None, event: int | None, key: str | None) -> EventRecord:
        return self.replica.run(confirming(pull, event, key))

    def pause(self) -> None:
        """Hand out no more pulls until `resume`; rewards are still recorded."""
        self.replica.run(switching("paused"))

    def archive(self) -> None:
        """Put the study aside: lists leave it out, and it records nothing until `resume`."""
        self.replica.run(switching("archived"))

    def resume(self) -> None:
        """Let a study go on that was paused or archived."""
        self.replica.run(switching("resumed"))

    # ------------------------------------------------------------------ looking

    @property
    def state(self) -> StateName:
        """Whether the study runs, in a word: running, stopped, paused or archived."""
        with self.replica.latest() as state:
            return state.name

    @property
    def answer(self) -> Answer | None:
        """What the study found: policy, value, delta, and the evidence; None while it runs."""
        with self.replica.latest() as state:
            return state.answer

    @property
    def answer_in_words(self) -> str:
        """The answer as a sentence."""
        with self.replica.latest() as state:
            return state.answer_in_words

    @property
    def head(self) -> int:
        """The number of the last event."""
        return self.replica.head

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
        return [self._record(event) for event in self.replica.events(after, limit)]

    def each_event(self) -> Iterator[EventRecord]:
        """Iterate over the whole journal, which is read in pieces."""
        return map(self._record, self.replica.each_event())

    def _record(self, event: Event) -> EventRecord:
        return event_record(event, self.replica.definition)

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
        return self.replica.history(after)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all pulls with their rewards to a .csv or .json file.

        Parameters
        ----------
        path : str or path
            The ending chooses the format.

        Returns
        -------
        int
            How many pulls were written.
        """
        with self.replica.latest() as state:
            head, voided, answer = state.seq, state.corrections.voided, state.answer
            has_sums = state.totals["batch"] > 0
        events = takewhile(lambda event: event["seq"] <= head, self.each_event())
        measured = measured_columns(self.problem)
        about = {**self.about, "answer": answer}
        return write_study(path, about, events, voided, measured, has_sums=has_sums)

    @property
    def about(self) -> About:
        """What the study is: everything that was fixed when it was made."""
        plan = self.replica.definition.plan
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
        with self.replica.latest() as state:
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
                "overdue": len(overdue(state.pending, now, self.expire_after)),
                "health": self.replica.health(),
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
        return self.replica.verify()


def _made_with(store: Store, row: Row[Any]) -> tuple[Problem, Settings, Plan]:
    """What a study was made with, or `StoreError` if its row is damaged."""
    trouble = find_damage(row._asdict())
    if trouble is None:
        try:
            problem = Problem.from_text(row.problem, source=f"study {row.name!r}")
            settings = Settings.from_text(row.settings)
        except (SimplexploreError, ValueError, TypeError) as error:
            trouble = f"what it was made with cannot be read ({str(error).rstrip('.')})"
        else:
            return problem, settings, settings.plan(problem)  # its faults are not the store's
    raise StoreError(
        f"{store.name}: study {row.name!r} is damaged: {trouble}. Nothing was changed; put back a "
        "copy of the store."
    )
