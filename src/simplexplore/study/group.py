"""Group commit: requests that share a transaction and its flush.

They are decided one after the other, each with what those before it have decided. One that is
refused has recorded nothing, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from simplexplore.errors import SimplexploreError, StoreError

from .replica import Replica
from .study import Study
from .transaction import Transaction


class Request(NamedTuple):
    """Something to ask or tell.

    Attributes
    ----------
    work : function
        Of the study, by one of its methods.
    events : int
        How many will be recorded.
    keys : list of str or None
        Under which it may have come before; None if it cannot safely be done twice, and so cannot
        be one of a group.
    """

    work: Callable[[Study], Any]
    events: int = 1
    keys: Sequence[str] | None = ()


def may_go_with_others(study: Study, request: Request) -> bool:
    """Whether requests to other studies can wait for this one: on SQLite, where it is quick.

    Writers of all studies take turns there anyway. Whoever has to read a journal first does not.
    """
    replica: Replica = study._replica
    return study.store.is_sqlite and replica.is_loaded and not replica.is_long(request.events)


def commit(
    study: Study,
    requests: list[Request],
    more: Callable[[], Sequence[Request]] = tuple,
    *,
    flushing: bool = True,
) -> list[Any]:
    """Do what is requested; returns results, and errors where something was refused.

    Those who came while others were waited for join: `more` gives them, and they are added to the
    requests. When this returns, all of it is on the disk, or will be once the store is flushed.
    """
    replica: Replica = study._replica

    def decide(transaction: Transaction) -> list[Any]:
        requests.extend(more())
        transaction.look_up(_keys(requests))
        return [_outcome(study, request, transaction) for request in requests]

    try:
        events = sum(request.events for request in requests)
        return replica.transact(
            decide, idempotent=True, events=events, keys=_keys(requests), flushing=flushing
        )
    except Exception as error:
        if isinstance(error, StoreError) and error.passing:  # all have waited long enough
            return [error] * len(requests)
    # Something is wrong with one of them, or with the store: each is told what concerns it.
    return [_alone(study, request) for request in requests]


def _keys(requests: Sequence[Request]) -> list[str]:
    return [key for request in requests for key in request.keys or ()]


def _outcome(study: Study, request: Request, transaction: Transaction) -> Any:
    try:
        return request.work(study)
    except SimplexploreError as error:
        if transaction.is_spoiled or isinstance(error, StoreError):
            raise
        return error


def _alone(study: Study, request: Request) -> Any:
    try:
        return request.work(study)
    except Exception as error:
        return error
