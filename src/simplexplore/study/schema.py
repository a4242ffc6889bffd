"""The tables of a store.

One table holds the journals, and nothing in it is ever changed. The rest can be told from
them and is there for speed: the head of each study for lists, snapshots for opening. Checksums
(events.py) tell whether something was changed all the same.
"""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from sqlalchemy.engine import Connection

# Another definition of tables, events or checksums is another version.
VERSION = 1

METADATA = sa.MetaData()

# One row: the version, and what tells this store from every other one.
store = sa.Table(
    "simplexplore_store",
    METADATA,
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("identity", sa.Text, nullable=False),
)

studies = sa.Table(
    "studies",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("code", sa.Text, nullable=False),  # part of every pull's id
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("problem", sa.Text, nullable=False),  # a problem file
    sa.Column("settings", sa.Text, nullable=False),  # JSON
    # What follows can be told from the journal.
    sa.Column("head", sa.BigInteger, nullable=False),  # number of the last event
    sa.Column("changed", sa.Double, nullable=False),
    sa.Column("state", sa.Text, nullable=False),  # running, stopped, paused, archived
    sa.Column("delta", sa.Double, nullable=False),
    sa.Column("asked", sa.BigInteger, nullable=False),
    sa.Column("rewards", sa.BigInteger, nullable=False),
    sa.Column("pending", sa.BigInteger, nullable=False),
    sa.Column("answer", sa.Text),  # JSON
    sa.Column("progress", sa.Double),  # at every 10% more rewards
    sa.Column(
        "fixed", sa.BigInteger, nullable=False
    ),  # checksum of code, created, problem and settings
    sa.Column("checksum", sa.BigInteger),  # of the journal up to its head
)

events = sa.Table(
    "events",
    METADATA,
    sa.Column("study", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("pull", sa.BigInteger),
    sa.Column("arm", sa.Integer),
    sa.Column("reward", sa.Double),
    sa.Column("key", sa.Text),
    sa.Column("data", sa.Text),  # JSON
    sa.Column("checksum", sa.BigInteger, nullable=False),  # of the journal up to this event
    sqlite_with_rowid=False,
)
_of_pulls = events.c.pull.is_not(None)
_of_keys = events.c.key.is_not(None)
_voids = events.c.kind == "voided"
sa.Index(
    "events_by_key", events.c.study, events.c.key, sqlite_where=_of_keys, postgresql_where=_of_keys
)
# A pull is asked for once, expires at most once, and has at most one reward, and one more for
# each that was voided: which one it replaces is in its data.
sa.Index(
    "events_by_pull",
    events.c.study,
    events.c.pull,
    sa.text("(CASE WHEN kind = 'late' THEN 'told' ELSE kind END)"),
    sa.text("(COALESCE(data, ''))"),
    unique=True,
    sqlite_where=_of_pulls,
    postgresql_where=_of_pulls,
)
sa.Index(
    "events_voided", events.c.study, events.c.seq, sqlite_where=_voids, postgresql_where=_voids
)

snapshots = sa.Table(
    "snapshots",
    METADATA,
    sa.Column("study", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("code", sa.Text, primary_key=True),  # of the compiled code that can use it
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("checksum", sa.BigInteger, nullable=False),
)

tokens = sa.Table(
    "tokens",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),  # of the secret, which is kept nowhere
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("revoked", sa.Double),
)


def version_of(connection: Connection) -> int | None:
    """The version of a store; 0 if it is empty, None if it does not say."""
    found = sa.inspect(connection)
    if not found.has_table(store.name):
        return 0
    versions = connection.execute(sa.select(store.c.version)).scalars().all()
    return versions[0] if len(versions) == 1 and versions[0] > 0 else None


def make_tables(connection: Connection) -> None:
    """Make the tables of a new store."""
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(store.insert().values(version=VERSION, identity=secrets.token_hex(16)))
