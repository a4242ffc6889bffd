"""A replica of one study's state in the memory of one process.

Inside the transaction that writes, it catches up with what others have recorded: decisions
are taken one after the other, whoever takes them. Requests that come together share a transaction
and its flush, each decided with what those before it have decided; one that comes alone is such a
group, too.

On SQLite a transaction keeps the writers of all studies waiting, so requests are decided before it
begins, and decided anew in the seldom case that another process has recorded something meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from simplexplore.errors import SimplexploreError, StoreError

from .database import Retries
from .decision import Corrections
from .events import Event
from .health import Health, HealthCheck
from .history import History
from .journal import CHUNK, Head, Journal
from .records import HistoryPoint
from .settings import Definition
from .snapshot import code_of, from_bytes
from .state import State
from .store import Store
from .transaction import Request, Result, Transaction, beginning

View = TypeVar("View", History, Health)

# Seconds in which a study that several processes write to decides inside its transactions.
_CONTENDED = 60.0


class Replica:
    """The state of a study whose journal any number of processes and threads write.

    Attributes
    ----------
    store : Store
        Where the journal is.
    definition : Definition
        What was fixed when the study was made.
    """

    def __init__(self, store: Store, definition: Definition) -> None:
        self.store, self.definition = store, definition
        self._mutex = threading.RLock()
        self._state: State | None = None
        self._views = threading.Lock()  # the first time they take as long as a replay
        self._history: History | None = None
        self._health: Health | None = None
        self._contended_until = 0.0

    @contextmanager
    def _reading(self) -> Iterator[Journal]:
        with self.store.reading() as connection:
            yield Journal(self.store, self.definition, connection)

    @contextmanager
    def _writing(self) -> Iterator[Journal]:
        with self.store.writing() as connection:
            yield Journal(self.store, self.definition, connection)

    # ------------------------------------------------------------------ reading

    @property
    def head(self) -> int:
        """The number of the last event."""
        with self._reading() as journal:
            return int(journal.head().seq)

    @contextmanager
    def latest(self) -> Iterator[State]:
        """The state as it is now, for this thread alone."""
        self.store.check_process()  # in a child, nobody would ever unlock the mutex
        with self._mutex:
            with self._reading() as journal:
                state = self._caught_up(journal, journal.head())
            yield state

    def events(self, after: int, limit: int) -> list[Event]:
        """The journal after a given event."""
        with self._reading() as journal:
            limit = min(limit, journal.head().seq - after)
            found = journal.read(after, limit) if limit > 0 else []
            if len(found) < limit:
                raise journal.damaged(f"event {after + len(found) + 1} is missing")
        return found

    def each_event(self) -> Iterator[Event]:
        """The whole journal up to now, read in chunks."""
        with self._reading() as journal:
            for chunk in journal.chunks(0, journal.head().seq):
                yield from chunk

    def history(self, after: int) -> list[HistoryPoint]:
        """Evidence over time after a given event, derived from the journal."""
        self.store.check_process()
        with self._views:
            self._history = self._followed(
                self._history, lambda found: History(self.definition, found)
            )
            return [point for point in self._history.points if point["seq"] > after]

    def health(self) -> list[HealthCheck]:
        """What is unusual about the study so far, derived from the journal."""
        self.store.check_process()
        made = self.definition
        with self._views:
            self._health = self._followed(
                self._health, lambda found: Health(made.plan.problem, found, made.number)
            )
            return self._health.report()

    def _followed(self, known: View | None, new: Callable[[Corrections], View]) -> View:
        """A view of the whole journal: the known one brought up to date, or a new one."""
        with self._reading() as journal:
            head = journal.head().seq
            found = journal.corrections(head)
            if known is None or not _is_prefix(known, journal, head, found):
                known = new(found)
            for events in journal.chunks(known.seq, head):
                known.take(events)
            return known

    def verify(self) -> bool:
        """Replay the whole journal and compare with the state in use, to the last bit.

        `StoreError` says which event was damaged, if one was.
        """
        with self.latest() as state:
            with self._reading() as journal:
                replayed = beginning(self.definition, journal.corrections(state.seq))
                for events in journal.chunks(0, state.seq):
                    replayed.replay(events)
            return state.same_as(replayed)

    # ------------------------------------------------------------------ catching up

    def _caught_up(self, journal: Journal, head: Head) -> State:
        """The state after every event up to the head."""
        state, self._state = self._state, None
        if state is None or (state.seq, state.checksum, state.checksum) != head[:3]:
            corrections = journal.corrections(head.seq)
            if state is None or not _is_prefix(state, journal, head.seq, corrections):
                state = self._load(journal, head.seq, corrections)
            for events in journal.chunks(state.seq, head.seq):
                state.replay(events)
        if not state.checksum == head.checksum == head.last:
            raise journal.damaged(f"its row and event {head.seq}, the last one, do not agree")
        self._state = state
        return state

    def _load(self, journal: Journal, head: int, corrections: Corrections) -> State:
        """The state from the last snapshot, or from nothing.

        A snapshot is used only if it is of the journal that the store holds, of which the last
        events before it are checked here, and all of them by `verify`.
        """
        fresh = beginning(self.definition, corrections)
        data = journal.snapshot(code_of(fresh))
        state = None if data is None else from_bytes(data, self.definition.plan)
        if state is None or not _is_prefix(state, journal, head, corrections):
            return fresh
        first = max(0, state.seq - CHUNK)
        journal.read(first, state.seq - first)
        return state

    # ------------------------------------------------------------------ writing

    def run(self, request: Request[Result]) -> Result:
        """Decide one request; returns its result, or raises its error."""
        (outcome,) = self.commit([request])
        if isinstance(outcome, BaseException):
            raise outcome
        result: Result = outcome
        return result

    def commit(self, requests: Sequence[Request[Any]]) -> list[Any]:
        """Decide requests in one transaction.

        Returns results, and errors in place of those that were refused. When this returns, all of
        it is on the disk.
        """
        try:
            return self._committed(requests)
        except Exception as error:
            # Of a store that is away, all have waited long enough.
            if len(requests) == 1 or (isinstance(error, StoreError) and error.retryable):
                return [error] * len(requests)
        # Something is wrong with one of them, or with the store: each is told what concerns it.
        return [self.commit([one])[0] for one in requests]

    def _committed(self, requests: Sequence[Request[Any]]) -> list[Any]:
        """Decide and write.

        A lost connection is tried again for a while, unless it was lost during the commit and
        a request is not idempotent: then nobody knows whether it was recorded.
        """
        retries = Retries()
        while True:
            is_committing = False
            try:
                self.store.check_process()
                with self._mutex, self._forgetting():
                    decided = self._decide_optimistically(requests)
                    with self._writing() as journal:
                        transaction, outcomes = self._decided_now(journal, requests, decided)
                        transaction.write(journal)
                        is_committing = True
                    self._state = transaction.state
                return outcomes
            except StoreError as error:
                is_safe = all(request.idempotent for request in requests)
                if error.retryable and is_committing and not is_safe:
                    raise StoreError(
                        f"{error} This may have been recorded all the same: look before you repeat "
                        "it. Under a key, repeating is safe.",
                        retryable=True,
                    ) from error
                retries.wait_or_raise(error)

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """Forget the state after an error: what was decided may not have been recorded."""
        try:
            yield
        except BaseException:
            self._state = None
            raise

    def _decide_optimistically(self, requests: Sequence[Request[Any]]) -> _Decided | None:
        """What is decided while the writers of other studies need not wait."""
        if self.store.is_sqlite and time.monotonic() > self._contended_until:
            with self._reading() as journal:
                return self._decided(journal, journal.head(), requests)
        if self._state is None:  # nor should they for a long replay
            with self.latest():
                pass
        return None

    def _decided_now(
        self, journal: Journal, requests: Sequence[Request[Any]], before: _Decided | None
    ) -> tuple[Transaction, list[Any]]:
        """What was decided before, unless somebody else has written to this study since."""
        head = journal.lock()
        if before is not None and before.head != head:
            self._contended_until = time.monotonic() + _CONTENDED
            self._state = before = None
        decided = before or self._decided(journal, head, requests)
        return decided.transaction, decided.outcomes

    def _decided(self, journal: Journal, head: Head, requests: Sequence[Request[Any]]) -> _Decided:
        state = self._caught_up(journal, head)
        keys = [key for request in requests for key in request.keys]
        found = journal.under_keys(keys)
        transaction, outcomes = Transaction(self.definition, journal, state, keys, found), []
        for request in requests:
            try:
                outcomes.append(request.work(transaction))
            except SimplexploreError as error:
                if transaction.is_broken or isinstance(error, StoreError):
                    raise
                outcomes.append(error)
        return _Decided(head, transaction, outcomes)


def _is_prefix(view: State | Health, journal: Journal, head: int, corrections: Corrections) -> bool:
    """Whether what was made of a journal is what its first events make, with the same voided.

    Another one may have been put in its place: an older copy, or what a server had left of it after
    a crash.
    """
    return (
        view.seq <= head
        and view.corrections == corrections
        and journal.holds(view.seq, view.checksum)
    )


class _Decided(NamedTuple):
    head: Head  # of the journal before it
    transaction: Transaction
    outcomes: list[Any]
