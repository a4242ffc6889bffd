"""How the pulls of a study are called outside."""

from __future__ import annotations

import zlib

from simplexplore.errors import PullError


class PullIds:
    """Ids of pulls: the study's code, the pull's number, and a check against mix-ups.

    If a store is put back from an older copy, numbers are given out again; the check tells
    the two apart.

    Examples
    --------
    >>> ids = PullIds("mix", "e6f11b")
    >>> ids.write(12, arm=0, at=1.5)
    'e6f11b-12-fde9'
    >>> ids.number("e6f11b-12-fde9")
    12
    """

    def __init__(self, study: str, code: str) -> None:
        self.study = study
        self._code = code

    def write(self, number: int, arm: int, at: float) -> str:
        """The id of a pull."""
        check = zlib.crc32(f"{self._code} {number} {arm} {at!r}".encode()) & 0xFFFF
        return f"{self._code}-{number}-{check:04x}"

    def number(self, identity: object) -> int:
        """The number in an id; whether the rest is right, the journal knows."""
        parts = identity.split("-") if isinstance(identity, str) else []
        if len(parts) != 3 or not parts[1].isdecimal() or len(parts[1]) > 18:
            raise PullError(
                f"{identity!r} is not the id of a pull; ask gives ids like {self._code}-1-0f3a."
            )
        if parts[0] != self._code:
            raise PullError(f"pull {identity!r} belongs to another study, not to {self.study!r}.")
        return int(parts[1])
