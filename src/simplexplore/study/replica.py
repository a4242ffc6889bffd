"""A replica of one study's state in the memory of one process.

Inside the transaction that writes, it catches up with what others have recorded: decisions
are taken one after the other, whoever takes them. On SQLite such a transaction keeps the writers of
all studies waiting, so what takes long is decided before it begins, and decided anew in the seldom
case that another process has recorded something meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy.engine import Connection, Row

from simplexplore.errors import StoreError
from simplexplore.exploration.plan import Plan

from .decision import CorrectedError, Corrections
from .events import Event
from .forks import FORKS
from .journal import AnotherPast, Journal
from .pulls import PullIds
from .records import HistoryPoint
from .retries import Retries
from .state import State
from .store import CHUNK, Head, Store
from .transaction import Transaction, snapshot_code

Result = TypeVar("Result")

# Decisions with so many arms or events, or of studies of which one took so many seconds lately, are
# not taken while others wait.
_MANY_ARMS, _MANY_EVENTS, _LONG = 16, 256, 0.02

# How much of a long time is remembered at the next decision: functions are slow until compiled.
_MEMORY = 0.9

# Seconds in which a study that several processes write to decides inside its transactions.
_CROWDED = 60.0


class Replica:
    """The state of a study whose journal any number of processes and threads write.

    Attributes
    ----------
    store : Store
        Where the journal is.
    plan : Plan
        What is explored, and how.
    ids : PullIds
        What pulls are called outside.
    """

    def __init__(self, store: Store, row: Row[Any], plan: Plan, seed: int) -> None:
        self.store, self.plan, self.seed = store, plan, seed
        self.ids = PullIds(row.name, row.code)
        self._journal = Journal(store, row, plan.problem)
        self.after_fork()
        FORKS.in_child.add(self)

    def after_fork(self) -> None:
        """Begin anew: another thread may have been at work on the state."""
        self._mutex = threading.RLock()
        self._state: State | None = None
        self._transaction: Transaction | None = None
        self._decider: int | None = None  # the thread whose transaction it is
        self._longest = 0.0  # seconds that a decision took lately
        self._crowded_until = 0.0

    # ------------------------------------------------------------------ reading

    @property
    def head(self) -> int:
        """The number of the last event."""
        with self.store.reading() as connection:
            return int(self._journal.head(connection).seq)

    @property
    def is_loaded(self) -> bool:
        """Whether the state is in memory; else the journal has to be read."""
        return self._state is not None

    @contextmanager
    def latest(self) -> Iterator[State]:
        """The state as it is now, for this thread alone."""
        with FORKS, self._mutex:
            with self.store.reading() as connection:
                state = self._caught_up(connection, self._journal.head(connection))
            yield state

    def events(self, after: int, limit: int) -> list[Event]:
        """The journal after a given event."""
        with self.store.reading() as connection:
            limit = min(limit, self._journal.head(connection).seq - after)
            found = self._journal.read(connection, after, limit) if limit > 0 else []
        if len(found) < limit:
            raise self._journal.damaged(f"event {after + len(found) + 1} is missing")
        return found

    def each_event(self) -> Iterator[Event]:
        """The whole journal up to now, read in chunks."""
        with self.store.reading() as connection:
            head = self._journal.head(connection).seq
            for chunk in self._journal.chunks(connection, 0, head):
                yield from chunk

    def history(self, after: int) -> list[HistoryPoint]:
        """Statistic against threshold after a given event."""
        with self.store.reading() as connection:
            return self._journal.points(connection, after)

    def verify(self) -> bool:
        """Replay the whole journal and compare with the state in use, to the last bit.

        `StoreError` says which event was damaged, if one was.
        """
        with self.latest() as state:
            with self.store.reading() as connection, self._journal.explained():
                replayed = self._beginning(self._journal.corrections(connection, state.seq))
                for events in self._journal.chunks(connection, 0, state.seq):
                    replayed.replay(events)
            return state.same_as(replayed)

    # ------------------------------------------------------------------ catching up

    def _beginning(self, corrections: Corrections) -> State:
        return State(self.plan, self.seed, self._journal.study, corrections)

    def _caught_up(self, connection: Connection, head: Head, found: Sequence[Event] = ()) -> State:
        """The state after every event up to the head."""
        state, self._state = self._state, None
        try:
            if (
                state is None
                or state.seq > head.seq
                or (state.seq == head.seq and state.checksum != head.checksum)
            ):
                raise AnotherPast
            self._catch_up(connection, state, head.seq, found)
        except (AnotherPast, CorrectedError):
            state = self._load(connection, head.seq)
            self._catch_up(connection, state, head.seq)
        if state.checksum != head.checksum:
            raise self._journal.damaged(f"its row and event {head.seq}, the last one, do not agree")
        self._state = state
        return state

    def _load(self, connection: Connection, head: int) -> State:
        """The state from the last snapshot, or from nothing.

        A snapshot is used only if it is of the journal that the store holds, of which the last
        events before it are checked here, and all of them by `verify`.
        """
        corrections = self._journal.corrections(connection, head)
        fresh = self._beginning(corrections)
        data = self.store.snapshot(connection, self._journal.study, snapshot_code(fresh))
        state = None if data is None else State.from_snapshot(self.plan, data)
        if state is None or not 0 < state.seq <= head or state.corrections != corrections:
            return fresh
        first = max(0, state.seq - CHUNK)
        events = self._journal.read(connection, first, state.seq - first)
        return state if events and events[-1].checksum == state.checksum else fresh

    def _catch_up(
        self, connection: Connection, state: State, head: int, found: Sequence[Event] = ()
    ) -> None:
        """Take in what was recorded since."""
        chunks = self._journal.chunks(
            connection, state.seq, head, found=found, checksum=state.checksum
        )
        with self._journal.explained():
            for events in chunks:
                state.replay(events)

    # ------------------------------------------------------------------ writing

    def transact(
        self,
        work: Callable[[Transaction], Result],
        *,
        idempotent: bool = False,
        events: int = 1,
        keys: Sequence[str] = (),
        flushing: bool = True,
    ) -> Result:
        """Let a decision about some events be taken in a transaction of its own.

        It sees the latest state, and what was recorded under keys is read when it begins. Inside
        another decision it becomes part of that one's transaction, which is flushed when it ends.
        Who has it not flushed does so before anything is acknowledged.

        A lost connection is tried again for a while, unless it was lost during the commit and
        the decision is not idempotent: then nobody knows whether it was recorded.
        """
        if self._decider == threading.get_ident():
            assert self._transaction is not None
            return work(self._transaction)
        retries = Retries()
        while True:
            attempt = _Attempt()
            try:
                with FORKS, self._mutex:
                    result = self._attempt(work, attempt, events, keys)
                if flushing:
                    self.store.flush()  # other threads go on meanwhile
                return result
            except StoreError as error:
                if error.passing and attempt.is_committing and not idempotent:
                    raise StoreError(
                        f"{error} This may have been recorded all the same: look before you repeat "
                        "it. Under a key, repeating is safe.",
                        passing=True,
                    ) from error
                retries.wait_or_raise(error)

    def _attempt(
        self,
        work: Callable[[Transaction], Result],
        attempt: _Attempt,
        events: int,
        keys: Sequence[str],
    ) -> Result:
        if self.is_long(events):
            try:
                return self._decided_before(work, attempt, keys)
            except _OvertakenError:
                self._crowded_until = time.monotonic() + _CROWDED
        if self._state is None:
            with self.latest():  # a long replay should not hold up other writers
                pass
        with self._forgetting() as kept, self.store.writing() as connection:
            after = 0 if self._state is None else self._state.seq
            head, found, keyed = self._journal.lock(connection, after, keys)
            began = time.perf_counter()
            state = self._caught_up(connection, head, found)
            transaction = Transaction(self.store, self._journal, connection, state, self._beginning)
            transaction.remember(keys, keyed)
            kept.append(transaction)
            result = self._decided(work, transaction, began)
            transaction.write(connection)
            self._state = transaction.state
            attempt.is_committing = True
        return result

    def _decided(
        self, work: Callable[[Transaction], Result], transaction: Transaction, began: float
    ) -> Result:
        self._transaction, self._decider = transaction, threading.get_ident()
        try:
            result = work(transaction)
        finally:
            self._transaction = self._decider = None
        transaction.conclude()
        self._longest = max(_MEMORY * self._longest, time.perf_counter() - began)
        return result

    def is_long(self, events: int) -> bool:
        """Whether a decision may take so long that the writers of other studies should not wait."""
        if not self.store.is_sqlite or time.monotonic() < self._crowded_until:
            return False
        large = self.plan.problem.size >= _MANY_ARMS or events >= _MANY_EVENTS
        return large or self._longest > _LONG

    def _decided_before(
        self, work: Callable[[Transaction], Result], attempt: _Attempt, keys: Sequence[str]
    ) -> Result:
        """Decide, then write if nobody else has written to this study meanwhile."""
        with self.latest() as state:
            seen = state.seq, state.checksum
        with self._forgetting() as kept:
            transaction = Transaction(self.store, self._journal, None, state, self._beginning)
            transaction.look_up(keys)
            kept.append(transaction)
            result = self._decided(work, transaction, time.perf_counter())
            if transaction.is_dirty:
                with self.store.writing() as connection:
                    head, *_ = self._journal.lock(connection, seen[0])
                    if (head.seq, head.checksum) != seen:
                        raise _OvertakenError
                    transaction.write(connection)
                    self._state = transaction.state
                    attempt.is_committing = True
        return result

    @contextmanager
    def _forgetting(self) -> Iterator[list[Transaction]]:
        """Read the state again after a failure: what was decided may not have been recorded."""
        begun: list[Transaction] = []
        try:
            yield begun
        except BaseException:
            if any(transaction.is_dirty for transaction in begun):
                self._state = None
            raise


class _OvertakenError(Exception):
    """Somebody else has written to the study since a decision was begun."""


class _Attempt:
    """How far a transaction came."""

    is_committing = False
