"""Forks of a process that uses studies.

A fork copies one thread only: locks that others hold stay locked in the child for ever (ours,
SQLite's, those of modules that are being imported), and what SQLite remembers of its files is
wrong there. So a fork waits until no thread is at work on a study, and connections to files are
closed for that moment; the child opens its own.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from simplexplore.errors import StoreError

# Seconds that a fork waits for other threads; if they are not ready by then, the child may not
# use studies.
_PATIENCE = 5.0


class _Forks:
    """Which threads are at work on a study, and what to do about forks."""

    def __init__(self) -> None:
        self.before: weakref.WeakSet[Any] = weakref.WeakSet()
        self.in_child: weakref.WeakSet[Any] = weakref.WeakSet()
        self.is_unsafe = False
        self._reset()

    def _reset(self) -> None:
        self._condition = threading.Condition()
        self._inside: dict[int, int] = {}
        self._forking: int | None = None

    def __enter__(self) -> None:
        """Say that this thread is at work on a study: forks wait."""
        if self.is_unsafe:
            raise StoreError(
                "this process was forked while a study was being used, and cannot use any; start "
                "it before studies are opened, or with the method 'spawn'."
            )
        me = threading.get_ident()
        with self._condition:
            while self._forking not in (None, me) and me not in self._inside:
                self._condition.wait()
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        with self._condition:
            left = self._inside.pop(me, 1) - 1  # none, in a child that was forked inside
            if left:
                self._inside[me] = left
            elif self._forking is not None:
                self._condition.notify_all()

    def prepare(self) -> None:
        """Before a fork, in the parent."""
        me = threading.get_ident()
        with self._condition:
            while self._forking is not None:
                self._condition.wait()
            self._forking = me
            self._condition.wait_for(lambda: not self._inside.keys() - {me}, _PATIENCE)
            busy = bool(self._inside)
        self._child_is_unsafe = busy
        if not busy:
            for one in list(self.before):
                one.before_fork()

    def go_on(self) -> None:
        """After a fork, in the parent."""
        with self._condition:
            self._forking = None
            self._condition.notify_all()

    def begin(self) -> None:
        """After a fork, in the child."""
        self.is_unsafe = self.is_unsafe or self._child_is_unsafe
        self._reset()
        for one in list(self.in_child):
            one.after_fork()


FORKS = _Forks()
if hasattr(os, "register_at_fork"):  # elsewhere there are no forks
    os.register_at_fork(
        before=FORKS.prepare, after_in_parent=FORKS.go_on, after_in_child=FORKS.begin
    )
