"""Where studies live: the rows of a database that say what they are, and how far."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from simplexplore.errors import StoreError, UnknownStudyError

from . import schema
from .database import Database
from .schema import VERSION, events, make_tables, studies, version_of

_IDENTITY = sa.select(schema.store.c.identity).scalar_subquery().label("identity")
_STUDY = sa.select(studies, _IDENTITY).where(studies.c.name == sa.bindparam("name"))
# Studies with the checksum of the event that is their head, the latest change first.
_PAGE = (
    sa.select(studies, events.c.checksum.label("last"))
    .outerjoin(events, (events.c.study == studies.c.id) & (events.c.seq == studies.c.head))
    .order_by(studies.c.changed.desc(), studies.c.name.desc())
)
_TOTALS = sa.select(
    *[
        sa.func.count().filter(studies.c.state == name).label(name)
        for name in ("running", "stopped", "paused", "archived")
    ],
    *[sa.func.sum(studies.c[name]).label(name) for name in ("asked", "rewards", "pending")],
)


class Store(Database):
    """A database of studies.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` or just a file's path; ``postgresql://user@host/database``.
    clock : function, optional
        Seconds since 1970: the only clock that studies look at.
    must_exist : bool
        Whether to complain instead of making a file or tables.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        clock: Callable[[], float] | None = None,
        must_exist: bool = False,
    ) -> None:
        super().__init__(url, must_exist=must_exist)
        self.clock = clock or time.time
        self._prepare(must_exist)

    def _prepare(self, must_exist: bool) -> None:
        """Make the tables of an empty store; refuse one of another version."""
        with self.reading() as connection:
            version = version_of(connection)
        if version == 0 and must_exist:
            hint = (
                " If it is a plain copy of a store in use, what it lacks is in the file beside the "
                "original whose name ends in -wal: 'simplexplore study backup FILE' copies both."
            )
            raise StoreError(
                f"{self.name} holds no studies; 'simplexplore study create' makes one."
                f"{hint if self.is_sqlite else ''}"
            )
        if version == 0:
            with self.writing() as connection:
                self._queue(connection)
                if version_of(connection) == 0:  # nobody else did meanwhile
                    if sa.inspect(connection).has_table(studies.name):
                        raise StoreError(
                            f"{self.name} holds tables of another program; use a database of its "
                            "own."
                        )
                    make_tables(connection)
            self.checkpoint()
        elif version is None:
            raise StoreError(
                f"{self.name} is damaged: it does not say of which version it is (the table "
                "simplexplore_store should hold one row). Nothing was changed; put back a copy of "
                "it."
            )
        elif version > VERSION:
            raise StoreError(
                f"{self.name} was made by a newer simplexplore (store version {version}; this "
                f"program knows {VERSION}); upgrade simplexplore. Nothing was changed."
            )

    def _queue(self, connection: Connection) -> None:
        """Let one program at a time make tables or studies; until the transaction ends."""
        if not self.is_sqlite:  # there, whoever writes is alone
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7416930518)")

    # ------------------------------------------------------------------ studies

    def reserve(self, connection: Connection, name: str) -> Row[Any] | None:
        """The row of a study, if there is one; else nobody makes it before this transaction."""
        self._queue(connection)
        return connection.execute(_STUDY, {"name": name}).first()

    def find(self, name: str) -> Row[Any]:
        """A study's row, by name."""
        with self.reading() as connection:
            row = connection.execute(_STUDY, {"name": name}).first()
            if row is not None:
                return row
            names = connection.execute(
                sa.select(studies.c.name).order_by(studies.c.changed.desc()).limit(10)
            )
            known = ", ".join(names.scalars())
        hint = f"It holds: {known}." if known else "It holds none yet."
        raise UnknownStudyError(f"there is no study {name!r} in {self.name}. {hint}")

    def page(
        self,
        limit: int | None = None,
        after: tuple[float, str] | None = None,
        *,
        archived: bool = False,
    ) -> list[dict[str, Any]]:
        """Studies, the latest change first; `after` is change and name of the last one seen.

        Of what was changed at the same moment, the names decide.
        """
        query = _PAGE.limit(limit)
        if not archived:
            query = query.where(studies.c.state != "archived")
        if after is not None:
            query = query.where(sa.tuple_(studies.c.changed, studies.c.name) < after)
        with self.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def totals(self) -> dict[str, int]:
        """Sums over all studies: how many there are by state, and of their pulls and rewards."""
        with self.reading() as connection:
            found = connection.execute(_TOTALS).mappings().one()
        return {name: int(value or 0) for name, value in found.items()}
