"""How a store came to its tables: one step per version, written out and never changed again.

A step is SQL text, not today's tables (schema.py): a store that is made now takes the same
steps as one that has been there since the first version. A change of the schema is a new step.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from simplexplore.errors import StoreError

from .checksums import link, of_study
from .events import Event, from_json

# What databases call the same thing.
_DIALECTS = {
    "sqlite": {
        "serial": "INTEGER",
        "double": "DOUBLE",
        "bytes": "BLOB",
        "without_rowid": " WITHOUT ROWID",
    },
    "postgresql": {
        "serial": "SERIAL",
        "double": "DOUBLE PRECISION",
        "bytes": "BYTEA",
        "without_rowid": "",
    },
}

# By the index events_by_pull, a pull is asked for once, expires at most once, and has at most
# one reward.
_VERSION_1 = """
    CREATE TABLE simplexplore_schema (version INTEGER);
    CREATE TABLE studies (
        id {serial} NOT NULL,
        name TEXT NOT NULL,
        code TEXT NOT NULL,
        created {double} NOT NULL,
        problem TEXT NOT NULL,
        settings TEXT NOT NULL,
        head BIGINT NOT NULL,
        changed {double} NOT NULL,
        state TEXT NOT NULL,
        delta {double} NOT NULL,
        asked BIGINT NOT NULL,
        rewards BIGINT NOT NULL,
        pending BIGINT NOT NULL,
        answer TEXT,
        PRIMARY KEY (id),
        UNIQUE (name)
    );
    CREATE TABLE events (
        study INTEGER NOT NULL,
        seq BIGINT NOT NULL,
        at {double} NOT NULL,
        kind TEXT NOT NULL,
        pull BIGINT,
        arm INTEGER,
        reward {double},
        "key" TEXT,
        data TEXT,
        PRIMARY KEY (study, seq),
        FOREIGN KEY (study) REFERENCES studies (id)
    ){without_rowid};
    CREATE INDEX events_by_key ON events (study, "key") WHERE "key" IS NOT NULL;
    CREATE UNIQUE INDEX events_by_pull
        ON events (study, pull, (CASE WHEN kind = 'late' THEN 'told' ELSE kind END))
        WHERE pull IS NOT NULL;
    CREATE TABLE history (
        study INTEGER NOT NULL,
        seq BIGINT NOT NULL,
        at {double} NOT NULL,
        rewards BIGINT NOT NULL,
        statistic {double} NOT NULL,
        threshold {double} NOT NULL,
        policy TEXT NOT NULL,
        PRIMARY KEY (study, seq),
        FOREIGN KEY (study) REFERENCES studies (id)
    );
    CREATE TABLE snapshots (
        study INTEGER NOT NULL,
        code TEXT NOT NULL,
        seq BIGINT NOT NULL,
        data {bytes} NOT NULL,
        PRIMARY KEY (study, code),
        FOREIGN KEY (study) REFERENCES studies (id)
    )
"""

_VERSION_2 = """
    CREATE TABLE tokens (
        id TEXT NOT NULL,
        digest TEXT NOT NULL,
        role TEXT NOT NULL,
        note TEXT NOT NULL,
        created {double} NOT NULL,
        revoked {double},
        PRIMARY KEY (id)
    )
"""


# By the checksums, damage to a journal shows. The table is built anew: a program of an older
# version that still runs must not add events without one.
_VERSION_3 = """
    CREATE TABLE simplexplore_identity (identity TEXT NOT NULL);
    ALTER TABLE studies ADD COLUMN progress {double};
    ALTER TABLE studies ADD COLUMN fixed BIGINT;
    ALTER TABLE studies ADD COLUMN checksum BIGINT;
    ALTER TABLE snapshots ADD COLUMN checksum BIGINT;
    CREATE TABLE events_3 (
        study INTEGER NOT NULL,
        seq BIGINT NOT NULL,
        at {double} NOT NULL,
        kind TEXT NOT NULL,
        pull BIGINT,
        arm INTEGER,
        reward {double},
        "key" TEXT,
        data TEXT,
        checksum BIGINT NOT NULL,
        PRIMARY KEY (study, seq),
        FOREIGN KEY (study) REFERENCES studies (id)
    ){without_rowid}
"""

_VERSION_3_FILLED = """
    DROP TABLE events;
    ALTER TABLE events_3 RENAME TO events;
    CREATE INDEX events_by_key ON events (study, "key") WHERE "key" IS NOT NULL;
    CREATE UNIQUE INDEX events_by_pull
        ON events (study, pull, (CASE WHEN kind = 'late' THEN 'told' ELSE kind END))
        WHERE pull IS NOT NULL
"""

# A pull has one more reward for each that was struck out; which one it replaces is in its data.
_VERSION_4 = """
    ALTER TABLE studies ADD COLUMN tags TEXT;
    ALTER TABLE history ADD COLUMN counts TEXT;
    DROP INDEX events_by_pull;
    CREATE UNIQUE INDEX events_by_pull
        ON events (
            study, pull, (CASE WHEN kind = 'late' THEN 'told' ELSE kind END), (COALESCE(data, ''))
        )
        WHERE pull IS NOT NULL;
    CREATE INDEX events_voided ON events (study, seq) WHERE kind = 'voided';
    CREATE TABLE webhooks (
        study INTEGER NOT NULL,
        url TEXT NOT NULL,
        stall_after {double} NOT NULL,
        said TEXT,
        trouble TEXT,
        PRIMARY KEY (study),
        FOREIGN KEY (study) REFERENCES studies (id)
    )
"""

_VERSION_5 = "ALTER TABLE history ADD COLUMN means TEXT"

# Events that are in memory at a time.
_CHUNK = 10_000


def _execute(connection: Connection, text: str) -> None:
    words = _DIALECTS[connection.dialect.name]
    for statement in text.split(";"):
        connection.exec_driver_sql(statement.format(**words))


def _to_version_1(connection: Connection) -> None:
    _execute(connection, _VERSION_1)


def _to_version_2(connection: Connection) -> None:
    _execute(connection, _VERSION_2)


def _to_version_3(connection: Connection) -> None:
    _execute(connection, _VERSION_3)
    connection.execute(
        sa.text("INSERT INTO simplexplore_identity (identity) VALUES (:identity)"),
        {"identity": secrets.token_hex(16)},
    )
    studies = connection.execute(
        sa.text("SELECT id, code, created, problem, settings, state FROM studies")
    )
    for study, *fixed, state in studies.all():
        point = connection.execute(
            sa.text(
                "SELECT statistic, threshold FROM history WHERE study = :study "
                "ORDER BY seq DESC LIMIT 1"
            ),
            {"study": study},
        ).first()
        try:
            progress = None if point is None else min(1.0, point.statistic / point.threshold)
        except (TypeError, ZeroDivisionError):  # damaged, which must not keep the others back
            progress = None
        connection.execute(
            sa.text(
                "UPDATE studies SET progress = :progress, fixed = :fixed, checksum = :checksum "
                "WHERE id = :study"
            ),
            {
                "study": study,
                "progress": 1.0 if state == "stopped" else progress,
                "fixed": of_study(*fixed),
                "checksum": _link_events(connection, study),
            },
        )
    _execute(connection, _VERSION_3_FILLED)


def _to_version_4(connection: Connection) -> None:
    _execute(connection, _VERSION_4)


def _to_version_5(connection: Connection) -> None:
    _execute(connection, _VERSION_5)


def _link_events(connection: Connection, study: int) -> int | None:
    """Copy a journal as it is, with checksums; returns the last, if there is one."""
    columns = 'kind, pull, arm, reward, "key", data, at, seq'
    last, checksum = 0, study
    while True:
        found = connection.execute(
            sa.text(
                f"SELECT {columns} FROM events WHERE study = :study AND seq > :last "
                "ORDER BY seq LIMIT :limit"
            ),
            {"study": study, "last": last, "limit": _CHUNK},
        ).all()
        rows = []
        for row in found:
            checksum = link(checksum, Event(*row)._replace(data=from_json(row.data)))
            rows.append({**row._mapping, "study": study, "checksum": checksum})
        if not rows:
            return checksum if last else None
        connection.execute(
            sa.text(
                f"INSERT INTO events_3 (study, {columns}, checksum) VALUES "
                "(:study, :kind, :pull, :arm, :reward, :key, :data, :at, :seq, :checksum)"
            ),
            rows,
        )
        last = rows[-1]["seq"]


# Step k brings a store from version k to version k + 1.
MIGRATIONS: list[Callable[[Connection], None]] = [
    _to_version_1,
    _to_version_2,
    _to_version_3,
    _to_version_4,
    _to_version_5,
]


def version_of(connection: Connection) -> int | None:
    """The version of a store; 0 if it is empty, None if it does not say."""
    if not sa.inspect(connection).has_table("simplexplore_schema"):
        return 0
    found = connection.exec_driver_sql("SELECT version FROM simplexplore_schema").scalars().all()
    return found[0] if len(found) == 1 and type(found[0]) is int and found[0] > 0 else None


def migrate(connection: Connection, name: str) -> int | None:
    """Take the steps that are missing, if nobody else did meanwhile; returns the version."""
    version = version_of(connection)
    if version is None:
        return None
    if version == 0 and sa.inspect(connection).has_table("studies"):
        raise StoreError(f"{name} holds tables of another program; use a database of its own.")
    for step in MIGRATIONS[version:]:
        step(connection)
    now = max(version, len(MIGRATIONS))
    connection.exec_driver_sql("DELETE FROM simplexplore_schema")
    connection.exec_driver_sql(f"INSERT INTO simplexplore_schema (version) VALUES ({now})")
    return now
