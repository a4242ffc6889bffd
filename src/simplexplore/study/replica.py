"""The journal of one study in its store, as one process keeps up with it.

The state is in memory. Inside the transaction that writes, it is caught up with what others
have recorded: decisions are taken one after the other, whoever takes them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from simplexplore.errors import StoreError, UnknownStudyError
from simplexplore.exploration.plan import Plan

from .state import Event, Journal
from .store import PIECE, Store
from .transaction import Turn, code_of

Result = TypeVar("Result")

# Seconds for which a lost connection is tried again: a database restarts in a few.
RETRY_FOR = 30.0


class Ledger:
    """A journal that any number of processes and threads write."""

    def __init__(self, store: Store, row: Any, plan: Plan, seed: int) -> None:
        self.store, self.plan, self.seed = store, plan, seed
        self.study: int = row.id
        self._name, self._code = row.name, row.code
        self._mutex = threading.RLock()
        self._journal: Journal | None = None

    # ------------------------------------------------------------------ reading

    @property
    def head(self) -> int:
        """The number of the last event."""
        with self.store.reading() as connection:
            return self._head(connection)

    def _head(self, connection: Connection) -> int:
        return self._found(self.store.head(connection, self.study, self._code))

    def _found(self, head: int | None) -> int:
        if head is None:
            raise UnknownStudyError(
                f"study {self._name!r} is not in {self.store.name} any more: another store was put "
                "in its place. Nothing was recorded; open it again."
            )
        return head

    @contextmanager
    def latest(self) -> Iterator[Journal]:
        """The state as it is now, for this thread alone."""
        with self._mutex:
            with self.store.reading() as connection:
                journal = self._caught_up(connection, self._head(connection))
            yield journal

    def events(self) -> Iterator[Event]:
        """The whole journal up to now."""
        with self.store.reading() as connection:
            head = self._head(connection)
            for some in self._pieces(connection, 0, head):
                yield from some

    def verify(self) -> bool:
        """Replay the whole journal and compare with the state in use, to the last bit."""
        with self.latest() as journal:
            replayed = Journal(self.plan, self.seed)
            with self.store.reading() as connection:
                for events in self._pieces(connection, 0, journal.seq):
                    replayed.replay(events)
            return journal.same_as(replayed)

    def _pieces(
        self, connection: Connection, after: int, head: int, first: Sequence[Event] = ()
    ) -> Iterator[Sequence[Event]]:
        """Recorded events in pieces, so that memory stays flat; the first may be here already."""
        some = first
        while after < head:
            some = some or self.store.read(connection, self.study, after, min(PIECE, head - after))
            yield some
            after, some = some[-1].seq, ()

    # ------------------------------------------------------------------ catching up

    def _caught_up(self, connection: Connection, head: int, first: Sequence[Event] = ()) -> Journal:
        """The state after every event up to the head."""
        journal, self._journal = self._journal, None
        if journal is None or not self._catch_up(connection, journal, head, first):
            journal = self._load(connection)
            self._catch_up(connection, journal, head)
        self._journal = journal
        return journal

    def _load(self, connection: Connection) -> Journal:
        """The state from the last snapshot, or from nothing."""
        journal = Journal(self.plan, self.seed)
        data = self.store.snapshot(connection, self.study, code_of(journal))
        found = None if data is None else Journal.from_snapshot(self.plan, data)
        return journal if found is None else found

    def _catch_up(
        self, connection: Connection, journal: Journal, head: int, first: Sequence[Event] = ()
    ) -> bool:
        """Take in what was recorded since; False if the store holds another past.

        It does if an older copy was put back, or if a server crashed with events that others
        had seen and nobody was told of.
        """
        after = _read_until(journal)
        again = journal.seq - after
        if journal.seq > head:
            return False
        for events in self._pieces(connection, after, head, first):
            if again and not journal.goes_on_with(events[0]):
                return False
            journal.replay(events[again:])
            again = 0
        return True

    # ------------------------------------------------------------------ writing

    def write(self, work: Callable[[Turn], Result], *, repeatable: bool = False) -> Result:
        """Let a decision be taken alone in the store, on the latest state.

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
                if error.passing and attempt.is_final and not repeatable:
                    raise StoreError(
                        f"{error} This may have been recorded all the same: look before you repeat "
                        "it. Under a key, repeating is safe.",
                        passing=True,
                    ) from error
                if not error.passing or time.monotonic() - started > RETRY_FOR:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _attempt(self, work: Callable[[Turn], Result], attempt: _Attempt) -> Result:
        if self._journal is None:
            with self.latest():  # a long replay should not hold up other writers
                pass
        turn = None
        try:
            with self.store.writing() as connection:
                after = 0 if self._journal is None else _read_until(self._journal)
                head, added = self.store.lock(connection, self.study, self._code, after)
                journal = self._caught_up(connection, self._found(head), added)
                turn = Turn(self.store, self.study, connection, journal)
                result = work(turn)
                attempt.is_final = True
            return result
        except BaseException:
            if turn is not None and turn.has_decided:
                # What was decided may not have been recorded: read it again.
                self._journal = None
            raise


def _read_until(journal: Journal) -> int:
    """After which event to read on: the last one is read again, to see that it is the same."""
    return journal.seq if journal.last is None else journal.seq - 1


class _Attempt:
    """How far a transaction came."""

    is_final = False
