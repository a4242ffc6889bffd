"""The tables of a store as queries see them; keys and indexes are in migrations.py.

One table holds the journals, and nothing in it is ever changed. The rest can be told from
them and is there for speed: the head of each study for lists, a history for plots, snapshots
for opening. Checksums (checksums.py) tell whether something was changed all the same.
"""

from __future__ import annotations

import sqlalchemy as sa

METADATA = sa.MetaData()

# One row that tells this store from every other one.
identity = sa.Table("simplexplore_identity", METADATA, sa.Column("identity", sa.Text))

studies = sa.Table(
    "studies",
    METADATA,
    sa.Column("id", sa.Integer),
    sa.Column("name", sa.Text),
    sa.Column("code", sa.Text),  # part of every pull's id
    sa.Column("created", sa.Double),
    sa.Column("problem", sa.Text),  # a problem file
    sa.Column("settings", sa.Text),  # JSON
    # What follows can be told from the journal.
    sa.Column("head", sa.BigInteger),  # number of the last event
    sa.Column("changed", sa.Double),
    sa.Column("state", sa.Text),  # running, stopped, paused, archived
    sa.Column("delta", sa.Double),
    sa.Column("asked", sa.BigInteger),
    sa.Column("rewards", sa.BigInteger),
    sa.Column("pending", sa.BigInteger),
    sa.Column("answer", sa.Text),  # JSON
    sa.Column("progress", sa.Double),  # at the last point of the history
    sa.Column("fixed", sa.BigInteger),  # checksum of code, created, problem and settings
    sa.Column("checksum", sa.BigInteger),  # of the journal up to its head
    sa.Column("tags", sa.Text),  # JSON
)

events = sa.Table(
    "events",
    METADATA,
    sa.Column("study", sa.Integer),
    sa.Column("seq", sa.BigInteger),
    sa.Column("at", sa.Double),
    sa.Column("kind", sa.Text),
    sa.Column("pull", sa.BigInteger),
    sa.Column("arm", sa.Integer),
    sa.Column("reward", sa.Double),
    sa.Column("key", sa.Text),
    sa.Column("data", sa.Text),  # JSON
    sa.Column("checksum", sa.BigInteger),  # of the journal up to this event
)

history = sa.Table(
    "history",
    METADATA,
    sa.Column("study", sa.Integer),
    sa.Column("seq", sa.BigInteger),
    sa.Column("at", sa.Double),
    sa.Column("rewards", sa.BigInteger),
    sa.Column("statistic", sa.Double),
    sa.Column("threshold", sa.Double),
    sa.Column("policy", sa.Text),  # JSON
    sa.Column("counts", sa.Text),  # JSON: rewards by arm; None in points of version 3
    sa.Column("means", sa.Text),  # JSON: low, mean, high by arm; None in most points
)

snapshots = sa.Table(
    "snapshots",
    METADATA,
    sa.Column("study", sa.Integer),
    sa.Column("code", sa.Text),  # of the compiled code that can use it
    sa.Column("seq", sa.BigInteger),
    sa.Column("data", sa.LargeBinary),
    sa.Column("checksum", sa.BigInteger),
)

# Where to say that a study stops or stalls. It is not in the journal: whoever may read a study
# reads that, and an address may hold a secret.
webhooks = sa.Table(
    "webhooks",
    METADATA,
    sa.Column("study", sa.Integer),
    sa.Column("url", sa.Text),
    sa.Column("stall_after", sa.Double),  # seconds without a reward while pulls are pending
    sa.Column("said", sa.Text),  # what was said last, so that a restart does not repeat it
    sa.Column("trouble", sa.Text),  # why it could not be delivered
)

tokens = sa.Table(
    "tokens",
    METADATA,
    sa.Column("id", sa.Text),
    sa.Column("digest", sa.Text),  # of the secret, which is kept nowhere
    sa.Column("role", sa.Text),
    sa.Column("note", sa.Text),
    sa.Column("created", sa.Double),
    sa.Column("revoked", sa.Double),
)
