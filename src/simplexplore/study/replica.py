"""A replica of one study's state in the memory of one process.

Inside the transaction that writes, it catches up with what others have recorded: decisions
are taken one after the other, whoever takes them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy.engine import Connection, Row

from simplexplore.errors import StoreError, UnknownStudyError
from simplexplore.exploration.plan import Plan

from .events import Event
from .pulls import PullIds
from .records import HistoryPoint
from .state import State
from .store import CHUNK, Store
from .transaction import Transaction, snapshot_code

Result = TypeVar("Result")

# Seconds for which a lost connection is tried again: a database restarts in a few.
RETRY_FOR = 30.0


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
        self._study: int = row.id
        self._mutex = threading.RLock()
        self._state: State | None = None

    # ------------------------------------------------------------------ reading

    @property
    def head(self) -> int:
        """The number of the last event."""
        with self.store.reading() as connection:
            return self._head(connection)

    def _head(self, connection: Connection) -> int:
        return self._found(self.store.head(connection, self._study, self.ids.code))

    def _found(self, head: int | None) -> int:
        if head is None:
            raise UnknownStudyError(
                f"study {self.ids.study!r} is not in {self.store.name} any more: another store was "
                "put in its place. Nothing was recorded; open it again."
            )
        return head

    @contextmanager
    def latest(self) -> Iterator[State]:
        """The state as it is now, for this thread alone."""
        with self._mutex:
            with self.store.reading() as connection:
                state = self._caught_up(connection, self._head(connection))
            yield state

    def events(self, after: int, limit: int) -> list[Event]:
        """The journal after a given event."""
        with self.store.reading() as connection:
            return self.store.read(connection, self._study, after, limit)

    def each_event(self) -> Iterator[Event]:
        """The whole journal up to now, read in chunks."""
        with self.store.reading() as connection:
            for chunk in self._chunks(connection, 0, self._head(connection)):
                yield from chunk

    def history(self, after: int) -> list[HistoryPoint]:
        """Statistic against threshold after a given event."""
        with self.store.reading() as connection:
            return self.store.points(connection, self._study, after)

    def verify(self) -> bool:
        """Replay the whole journal and compare with the state in use, to the last bit."""
        with self.latest() as state:
            replayed = State(self.plan, self.seed)
            with self.store.reading() as connection:
                for events in self._chunks(connection, 0, state.seq):
                    replayed.replay(events)
            return state.same_as(replayed)

    def _chunks(
        self, connection: Connection, after: int, head: int, first: Sequence[Event] = ()
    ) -> Iterator[Sequence[Event]]:
        """Recorded events in chunks, so that memory stays flat; the first may be here already."""
        chunk = first
        while after < head:
            limit = min(CHUNK, head - after)
            chunk = chunk or self.store.read(connection, self._study, after, limit)
            yield chunk
            after, chunk = chunk[-1].seq, ()

    # ------------------------------------------------------------------ catching up

    def _caught_up(self, connection: Connection, head: int, first: Sequence[Event] = ()) -> State:
        """The state after every event up to the head."""
        state, self._state = self._state, None
        if state is None or not self._catch_up(connection, state, head, first):
            state = self._load(connection)
            self._catch_up(connection, state, head)
        self._state = state
        return state

    def _load(self, connection: Connection) -> State:
        """The state from the last snapshot, or from nothing."""
        state = State(self.plan, self.seed)
        data = self.store.snapshot(connection, self._study, snapshot_code(state))
        found = None if data is None else State.from_snapshot(self.plan, data)
        return state if found is None else found

    def _catch_up(
        self, connection: Connection, state: State, head: int, first: Sequence[Event] = ()
    ) -> bool:
        """Take in what was recorded since; False if the store holds another past.

        It does if an older copy was put back, or if a server crashed with events that others
        had seen and nobody was told of.
        """
        after = _read_until(state)
        again = state.seq - after
        if state.seq > head:
            return False
        for events in self._chunks(connection, after, head, first):
            if again and not state.ends_with(events[0]):
                return False
            state.replay(events[again:])
            again = 0
        return True

    # ------------------------------------------------------------------ writing

    def transact(
        self, work: Callable[[Transaction], Result], *, idempotent: bool = False
    ) -> Result:
        """Let a decision be taken in a transaction of its own, on the latest state.

        A lost connection is tried again for a while, unless it was lost during the commit and
        the decision is not idempotent: then nobody knows whether it was recorded.
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
                if error.passing and attempt.is_committing and not idempotent:
                    raise StoreError(
                        f"{error} This may have been recorded all the same: look before you repeat "
                        "it. Under a key, repeating is safe.",
                        passing=True,
                    ) from error
                if not error.passing or time.monotonic() - started > RETRY_FOR:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _attempt(self, work: Callable[[Transaction], Result], attempt: _Attempt) -> Result:
        if self._state is None:
            with self.latest():  # a long replay should not hold up other writers
                pass
        transaction = None
        try:
            with self.store.writing() as connection:
                after = 0 if self._state is None else _read_until(self._state)
                head, added = self.store.lock(connection, self._study, self.ids.code, after)
                state = self._caught_up(connection, self._found(head), added)
                transaction = Transaction(self.store, self._study, connection, state)
                result = work(transaction)
                attempt.is_committing = True
            return result
        except BaseException:
            if transaction is not None and transaction.is_dirty:
                # What was decided may not have been recorded: read it again.
                self._state = None
            raise


def _read_until(state: State) -> int:
    """After which event to read on: the last one is read again, to see that it is the same."""
    return state.seq if state.last is None else state.seq - 1


class _Attempt:
    """How far a transaction came."""

    is_committing = False
