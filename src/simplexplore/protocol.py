"""What service and client agree on: roles, limits, and errors as they travel.

An error travels as a problem document (RFC 9457, application/problem+json). Its type names
one of our classes, so that a client raises what `Study` itself would have raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simplexplore import errors

# Each role may do what the ones before it may do.
ROLES = ("read", "run", "admin")

# Names a request that changes something; sent again under the same key, it happens once.
KEY_HEADER = "Idempotency-Key"

PROBLEM_TYPE = "application/problem+json"

# Pulls or rewards in one request, and bytes of its body.
MAX_BATCH = 10_000
MAX_BODY = 4 * 2**20

# More events than any journal has: no limit.
ALL = 2**62

_PREFIX = "urn:simplexplore:"

# Name on the wire, HTTP status, class; a class before its parent.
_ERRORS: tuple[tuple[str, int, type[errors.SimplexploreError]], ...] = (
    ("unknown-study", 404, errors.UnknownStudyError),
    ("stopped", 409, errors.StoppedError),
    ("paused", 409, errors.PausedError),
    ("conflict", 409, errors.ConflictError),
    ("unlikely", 409, errors.UnlikelyError),
    ("pull", 422, errors.PullError),
    ("study", 422, errors.StudyError),
    ("reward", 422, errors.RewardError),
    ("infeasible", 422, errors.InfeasibleError),
    ("constraint", 422, errors.ConstraintError),
    ("problem", 422, errors.ProblemError),
    ("means", 422, errors.MeansError),
    ("too-large", 413, errors.TooLargeError),
    ("not-converged", 422, errors.NotConvergedError),
    ("setting", 422, errors.SettingError),
    ("store", 503, errors.StoreError),
    ("access", 403, errors.AccessError),
    ("service", 500, errors.ServiceError),
)
# What of an error's place travels.
_PLACE: dict[str, type] = {"line": int, "field": str, "row": int}

_BY_NAME = {name: kind for name, _, kind in _ERRORS}


def to_problem(error: errors.SimplexploreError) -> dict[str, Any]:
    """An error as a problem document."""
    name, status = next((name, code) for name, code, kind in _ERRORS if isinstance(error, kind))
    document: dict[str, Any] = {
        "type": _PREFIX + name,
        "title": name.replace("-", " "),
        "status": status,
        "detail": str(error),
    }
    if isinstance(error, errors.InfeasibleError):
        document["conflict"] = list(error.conflict)
    if isinstance(error, errors.UnlikelyError):
        document["rewards"] = error.rewards
    if error.place is not None:  # files have other names where the document is read
        known = {name: getattr(error.place, name) for name in _PLACE}
        document |= {name: value for name, value in known.items() if value is not None}
    return document


def from_problem(document: Mapping[str, Any]) -> errors.SimplexploreError:
    """The error that a problem document stands for."""
    detail = str(document.get("detail") or document.get("title") or "no reason was given")
    name = str(document.get("type", "")).removeprefix(_PREFIX)
    kind = _BY_NAME.get(name, errors.ServiceError)
    known = {
        name: document[name] for name, kind in _PLACE.items() if type(document.get(name)) is kind
    }
    place = errors.Location(**known) if known else None
    if kind is errors.InfeasibleError:
        return errors.InfeasibleError(detail, document.get("conflict", ()), place=place)
    if kind is errors.UnlikelyError:
        return errors.UnlikelyError(detail, document.get("rewards", ()), place=place)
    if kind is errors.StoreError:
        return errors.StoreError(detail, retryable=True, place=place)
    return kind(detail, place=place)
