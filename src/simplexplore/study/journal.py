"""The journal of one study: what a store holds is checked before anybody acts on it.

Checksums find what was changed, lost, doubled or moved; what an event may be, and what may
follow what, is checked apart from them, because a journal may have been damaged before it had
checksums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy.engine import Connection, Row

from simplexplore.errors import StoreError, UnknownStudyError
from simplexplore.problem.problem import Problem

from .checksums import link
from .decision import Corrections
from .events import Event, EventError, check_event
from .records import HistoryPoint
from .store import CHUNK, Head, Store


class AnotherPast(Exception):  # noqa: N818 - it is no error
    """A store holds other events than it did.

    An older copy was put back, or a server crashed with events that others had seen and nobody
    was told of.
    """


class Journal:
    """The events of a study in a store.

    Attributes
    ----------
    study : int
        The study's number in the store.
    """

    def __init__(self, store: Store, row: Row[Any], problem: Problem) -> None:
        self._store, self._arms = store, problem.size
        self._measured = tuple(limit.name for limit in problem.measured)
        self.study: int = row.id
        self._name: str = row.name
        self._owner = (row.code, row.identity)

    # ------------------------------------------------------------------ complaints

    def damaged(self, what: object) -> StoreError:
        """What to say of damage."""
        return StoreError(
            f"{self._store.name}: study {self._name!r} is damaged: {what}. Nothing was changed. "
            "Put back a copy of the store; 'events' with a limit still shows what comes before."
        )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Say of which study an event is that cannot be."""
        try:
            yield
        except EventError as error:
            raise self.damaged(error) from error

    # ------------------------------------------------------------------ reading

    def head(self, connection: Connection) -> Head:
        """The end of the journal."""
        return self._whole(self._store.head(connection, self.study))

    def lock(
        self, connection: Connection, after: int, keys: Sequence[str] = ()
    ) -> tuple[Head, list[Event], list[Event]]:
        """Wait for other writers.

        Returns the head, events from a given one on, unchecked, and events recorded under keys.
        """
        found, added, keyed = self._store.lock(connection, self.study, max(0, after - 1), keys)
        head = self._whole(found)
        if 0 < after <= head.seq and (not added or added[0].seq != after):
            raise self.damaged(f"event {after} is missing")
        return head, added, self._checked(connection, keyed)

    def _whole(self, head: Head | None) -> Head:
        if head is None or head[2:] != self._owner:
            raise UnknownStudyError(
                f"study {self._name!r} is not in {self._store.name} any more: another store was "
                "put in its place. Nothing was recorded; open it again."
            )
        if type(head.seq) is not int or head.seq < 0:
            raise self.damaged(f"its row says that the last event is {head.seq!r}")
        if head.seq == 0 and head.checksum is None:
            return head._replace(checksum=self.study)
        return head

    def read(
        self,
        connection: Connection,
        after: int,
        limit: int,
        *,
        found: Sequence[Event] = (),
        checksum: int | None = None,
    ) -> list[Event]:
        """Events after a given one.

        `found` may hold what `lock` has read; `checksum` is that up to the given event, if it
        is known: `AnotherPast` says that the store has another one.
        """
        if not found:
            more = limit + (after > 0)
            found = self._store.read(connection, self.study, max(0, after - 1), more)
        if after == 0:
            return self._linked(self.study, 0, found)
        if not found:
            return []
        if found[0].seq != after:
            raise self.damaged(f"event {after} is missing")
        if checksum not in (None, found[0].checksum):
            raise AnotherPast
        return self._linked(found[0].checksum, after, found[1:])

    def chunks(
        self,
        connection: Connection,
        after: int,
        head: int,
        *,
        found: Sequence[Event] = (),
        checksum: int | None = None,
    ) -> Iterator[list[Event]]:
        """Events up to the head, so that memory stays flat; see `read`."""
        while after < head:
            limit = min(CHUNK, head - after)
            chunk = self.read(connection, after, limit, found=found, checksum=checksum)
            if not chunk:
                raise self.damaged(f"event {after + 1} is missing")
            yield chunk
            after, checksum, found = chunk[-1].seq, chunk[-1].checksum, ()

    def of_pulls(self, connection: Connection, numbers: Sequence[int]) -> list[Event]:
        """Events of given pulls."""
        return self._checked(connection, self._store.pulls(connection, self.study, numbers))

    def under_keys(self, connection: Connection, keys: Sequence[str]) -> list[Event]:
        """Events recorded under given keys."""
        return self._checked(connection, self._store.keys(connection, self.study, keys))

    def corrections(self, connection: Connection, head: int) -> Corrections:
        """Rewards that were struck out up to an event."""
        found = self._store.voids(connection, self.study, head)
        with self.explained():
            return Corrections.of(self._checked(connection, found))

    def points(self, connection: Connection, after: int) -> list[HistoryPoint]:
        """The history after a given event."""
        try:
            return self._store.points(connection, self.study, after)
        except (ValueError, TypeError) as error:
            raise self.damaged("its history cannot be read") from error

    # ------------------------------------------------------------------ checking

    def _linked(self, checksum: int, seq: int, events: Sequence[Event]) -> list[Event]:
        """Events that follow the one with this number and checksum."""
        with self.explained():
            for event in events:
                seq += 1
                if event.seq != seq:
                    raise EventError(seq, f"is missing; the next one there is {event.seq!r}")
                if link(checksum, event) != event.checksum:
                    raise EventError(seq, "is not what was recorded: its checksum is wrong")
                check_event(event, self._arms, self._measured)
                checksum = event.checksum
        return list(events)

    def _checked(self, connection: Connection, events: list[Event]) -> list[Event]:
        """Events from anywhere in the journal."""
        if not events:
            return events
        with self.explained():
            for event in events:
                if type(event.seq) is not int:
                    raise EventError(repr(event.seq), "has no number")
        before = [event.seq - 1 for event in events if event.seq != 1]
        checksums = self._store.checksums(connection, self.study, before) | {0: self.study}
        for event in events:
            if event.seq - 1 not in checksums:
                raise self.damaged(f"event {event.seq - 1} is missing")
            self._linked(checksums[event.seq - 1], event.seq - 1, [event])
        return events
