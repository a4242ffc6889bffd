"""Webhooks of studies: where to say that one stops or stalls, and what there is to say."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

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
            said = f"stopped {row.head}" if row.state == "stopped" else None
            connection.execute(
                webhooks.insert().values(
                    study=row.id, url=webhook.url, stall_after=webhook.stall_after, said=said
                )
            )
    store.flush()


def news(store: Store) -> list[News]:
    """What has happened and was not said yet."""
    last = (
        sa.select(events.c.at)
        .where(events.c.study == studies.c.id, events.c.kind.in_((*REWARDED, "resumed")))
        .order_by(events.c.seq.desc())  # from the end, where they are
        .limit(1)
        .scalar_subquery()
    )
    first = (
        sa.select(events.c.at)
        .where(events.c.study == studies.c.id, events.c.kind == "asked")
        .order_by(events.c.seq)
        .limit(1)
        .scalar_subquery()
    )
    wanted = (
        sa.select(
            *(studies.c[name] for name in ("id", "name", "state", "head", "pending", "rewards")),
            *(webhooks.c[name] for name in ("url", "stall_after", "said")),
            sa.func.coalesce(last, first, studies.c.created).label("last"),
        )
        .join(webhooks, webhooks.c.study == studies.c.id)
        .where(studies.c.state.in_(("running", "stopped")))
    )
    found = []
    with store.reading() as connection:
        for row in connection.execute(wanted).all():
            if row.state == "stopped":
                # Later rewards do not make it news again; an extension in between does.
                is_said = row.said is not None and row.said.startswith("stopped")
                event = None if is_said else "stopped"
            else:
                is_late = row.pending > 0 and store.clock() - row.last > row.stall_after
                event = "stalled" if is_late else None
            code = f"{event} {row.rewards}"
            if event is not None and code != row.said:
                found.append(News(row.id, row.name, event, row.url, code))
            elif row.state == "running" and (row.said or "").startswith("stopped"):
                # It was extended: what comes next is news again.
                found.append(News(row.id, row.name, "running", row.url, "running"))
    return found


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
