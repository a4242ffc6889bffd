"""Who may do what: bearer tokens with roles, of which the store keeps only a digest.

A token is ``sx_ID_SECRET``. The secret is 256 random bits, so a plain SHA-256 of it cannot be
turned back; a slow password hash would only slow down the service. Tokens are revoked, never
deleted: a store that has had one stays closed to everybody without.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from dataclasses import dataclass

import sqlalchemy as sa

from simplexplore.errors import AccessError, SettingError
from simplexplore.protocol import ROLES
from simplexplore.study.schema import tokens as table
from simplexplore.study.store import Store

# Seconds for which a look into the store is remembered: a revoked token works no longer.
REMEMBERED = 2.0

# Tokens remembered at a time; strangers' inventions are never among them.
_MOST = 10_000


@dataclass(frozen=True)
class Token:
    """A token without its secret."""

    id: str
    role: str
    note: str
    created: float
    revoked: float | None = None

    @property
    def owner(self) -> str | None:
        """Whose pulls are that it asks for, unless the request says so."""
        return self.note.strip()[:50].strip() or None

    def allows(self, role: str) -> bool:
        """Whether it may do what a role may do."""
        return ROLES.index(self.role) >= ROLES.index(role)


# Who comes to a store without tokens, on the machine itself.
LOCAL_ADMIN = Token("-", ROLES[-1], "", 0.0)


def create_token(store: Store, role: str, note: str = "") -> tuple[Token, str]:
    """Make a token; its text is returned here and can never be seen again."""
    if role not in ROLES:
        raise SettingError(f"unknown role {role!r}; choose one of {', '.join(ROLES)}.")
    if len(note) > 200 or not (note == "" or note.isprintable()):
        raise SettingError("a token's note is one line of at most 200 characters.")
    token = Token(secrets.token_hex(4), role, note, store.clock())
    secret = secrets.token_urlsafe(32)
    with store.writing() as connection:
        connection.execute(
            table.insert().values(
                id=token.id, digest=_digest(secret), role=role, note=note, created=token.created
            )
        )
    return token, f"sx_{token.id}_{secret}"


def list_tokens(store: Store) -> list[Token]:
    """All tokens, the newest first, revoked ones too."""
    query = sa.select(*_COLUMNS).order_by(table.c.created.desc(), table.c.id)
    with store.reading() as connection:
        return [Token(*row) for row in connection.execute(query).all()]


def revoke_token(store: Store, identity: str) -> Token:
    """Make a token useless, at once in the store and within seconds in every service."""
    for token in list_tokens(store):
        if token.id == identity:
            break
    else:
        raise SettingError(f"there is no token {identity!r}; 'simplexplore token list' names them.")
    if token.revoked is None:
        with store.writing() as connection:
            connection.execute(
                table.update().where(table.c.id == identity).values(revoked=store.clock())
            )
    return token


class TokenCache:
    """Looks tokens up in a store, and remembers for a moment what it saw."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mutex = threading.Lock()
        self._known: dict[str, tuple[float, Token]] = {}
        self._open_until = 0.0
        self._is_closed = False

    def cached_open(self) -> bool | None:
        """Whether the store was open a moment ago, without asking it; None if that is not known.

        Once it has had a token, a store never opens again.
        """
        if self._is_closed:
            return False
        return True if time.monotonic() < self._open_until else None

    def is_open(self) -> bool:
        """Whether the store has never had a token."""
        known = self.cached_open()
        if known is None:
            with self._store.reading() as connection:
                self._is_closed = connection.execute(_ANY).first() is not None
            self._open_until = time.monotonic() + REMEMBERED
            known = not self._is_closed
        return known

    def cached_token(self, text: str) -> Token | None:
        """A token that was seen a moment ago, without asking the store."""
        until, token = self._known.get(_digest(text), (0.0, LOCAL_ADMIN))
        return token if time.monotonic() < until else None

    def look_up(self, text: str) -> Token:
        """The token that a text stands for; raises if there is none, or it was revoked."""
        parts = _SHAPE.fullmatch(text)
        if parts is not None:
            query = sa.select(*_COLUMNS, table.c.digest).where(table.c.id == parts[1])
            with self._store.reading() as connection:
                row = connection.execute(query).first()
            # Compared in constant time, so that the time taken tells nothing.
            if row is not None and hmac.compare_digest(row.digest, _digest(parts[2])):
                token = Token(*row[:-1])
                if token.revoked is None:
                    self._remember(text, token)
                    return token
        raise AccessError("this token is not known here, or was revoked.")

    def _remember(self, text: str, token: Token) -> None:
        with self._mutex:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[_digest(text)] = (time.monotonic() + REMEMBERED, token)


_SHAPE = re.compile(r"sx_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_COLUMNS = [table.c[name] for name in ("id", "role", "note", "created", "revoked")]
_ANY = sa.select(table.c.id).limit(1)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
