"""Webhooks of studies: where to say that one stops or stalls, and what there is to say."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .events import REWARDED
from .schema import events, studies, webhooks
from .store import Store

# Seconds without a reward after which a study with pending pulls stalls, unless told otherwise.
DEFAULT_STALL = 86_400.0


class Webhook(NamedTuple):
    """An address, and why it could not be reached if it could not."""

    url: str
    stall_after: float
    trouble: str | None = None


class News(NamedTuple):
    """What is to be said of a study; `code` is new for all that is new."""

    study: int
    name: str
    event: str  # "stopped" or "stalled"; "running" is only remembered
    url: str
    code: str


def find(store: Store, name: str) -> Webhook | None:
    """The webhook of a study, if it has one."""
    with store.reading() as connection:
        row = store.find(connection, name)
        found = connection.execute(
            sa.select(webhooks.c.url, webhooks.c.stall_after, webhooks.c.trouble).where(
                webhooks.c.study == row.id
            )
        ).first()
    return None if found is None else Webhook(*found)


def put(store: Store, name: str, webhook: Webhook | None) -> None:
    """Give a study a webhook in the place of the one it has; None takes it away.

    What has happened already is not said.
    """
    with store.writing() as connection:
        row = store.find(connection, name)
        connection.execute(webhooks.delete().where(webhooks.c.study == row.id))
        if webhook is not None:
            said = f"stopped {row.delta!r}" if row.state == "stopped" else None
            connection.execute(
                webhooks.insert().values(
                    study=row.id, url=webhook.url, stall_after=webhook.stall_after, said=said
                )
            )
    store.flush()


def news(store: Store) -> list[News]:
    """What has happened and was not said yet."""
    wanted = (
        sa.select(
            *(studies.c[name] for name in ("id", "name", "state", "delta", "pending", "rewards")),
            *(webhooks.c[name] for name in ("url", "stall_after", "said")),
        )
        .join(webhooks, webhooks.c.study == studies.c.id)
        .where(studies.c.state.in_(("running", "stopped")))
    )
    found = []
    with store.reading() as connection:
        for row in connection.execute(wanted).all():
            was_stopped = (row.said or "").startswith("stopped")
            if row.state == "stopped":
                code = f"stopped {row.delta!r}"  # later rewards do not make it news again
            elif row.pending and store.clock() - _since(connection, row.id) > row.stall_after:
                code = f"stalled {row.rewards}"
            else:
                code = "running" if was_stopped else row.said
            if code != row.said:
                found.append(News(row.id, row.name, code.partition(" ")[0], row.url, code))
    return found


def _since(connection: Connection, study: int) -> float:
    """When the last reward came, or when somebody asked for the first time after it."""
    mine = sa.select(events.c.seq, events.c.at).where(events.c.study == study)
    last = connection.execute(
        mine.where(events.c.kind.in_((*REWARDED, "resumed")))
        .order_by(events.c.seq.desc())  # from the end, where they are
        .limit(1)
    ).first()
    asked = connection.execute(
        mine.where(events.c.kind == "asked", events.c.seq > (0 if last is None else last.seq))
        .order_by(events.c.seq)
        .limit(1)
    ).first()
    return max(float(row.at) for row in (last, asked) if row is not None)


def claim(store: Store, one: News) -> bool:
    """Whether it is ours to say: of several servers, one does."""
    with store.writing() as connection:
        changed = connection.execute(
            webhooks.update()
            .where(
                webhooks.c.study == one.study,
                sa.func.coalesce(webhooks.c.said, "") != one.code,
            )
            .values(said=one.code, trouble=None)
        )
    return changed.rowcount == 1


def note_trouble(store: Store, one: News, trouble: str) -> None:
    """Remember why an address could not be reached."""
    with store.writing() as connection:
        connection.execute(
            webhooks.update().where(webhooks.c.study == one.study).values(trouble=trouble[:500])
        )
