"""How a store came to its tables: one step per version, written out and never changed again.

A step is SQL text, not today's tables (schema.py): a store that is made now takes the same
steps as one that has been there since the first version. A change of the schema is a new step.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from simplexplore.errors import StoreError

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


def _statements(text: str) -> Callable[[Connection], None]:
    """A step that executes statements."""

    def step(connection: Connection) -> None:
        words = _DIALECTS[connection.dialect.name]
        for statement in text.split(";"):
            connection.exec_driver_sql(statement.format(**words))

    return step


# Step k brings a store from version k to version k + 1.
MIGRATIONS: list[Callable[[Connection], None]] = [
    _statements(_VERSION_1),
    _statements(_VERSION_2),
]


def version_of(connection: Connection) -> int:
    """The version of a store; 0 if it is empty."""
    if not sa.inspect(connection).has_table("simplexplore_schema"):
        return 0
    found = connection.exec_driver_sql("SELECT version FROM simplexplore_schema")
    return int(found.scalar_one())


def migrate(connection: Connection, name: str) -> int:
    """Take the steps that are missing, if nobody else did meanwhile; returns the version."""
    version = version_of(connection)
    if version == 0 and sa.inspect(connection).has_table("studies"):
        raise StoreError(f"{name} holds tables of another program; use a database of its own.")
    for step in MIGRATIONS[version:]:
        step(connection)
    now = max(version, len(MIGRATIONS))
    connection.exec_driver_sql("DELETE FROM simplexplore_schema")
    connection.exec_driver_sql(f"INSERT INTO simplexplore_schema (version) VALUES ({now})")
    return now
