"""The other side of a worker process: takes work from its input until that ends."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from simplexplore.errors import SimplexploreError

from . import heavy_work  # so that everything is loaded when work comes
from .refusals import document_of

try:
    import resource
except ImportError:  # not on this platform: memory has no limit
    resource = None  # type: ignore[assignment]

__all__ = ["heavy_work", "main"]

# Bytes that work may use beyond what the program itself takes.
MEMORY = 2 * 2**30

# Bytes by which a process may have grown when its work is done: memory does not come back.
_FAT = 2**29

Work = tuple[Callable[..., Any], tuple[Any, ...]]


def main() -> None:
    """Do what comes in, one after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service
    # Nothing else may write to where the answers go.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit_memory()
    waiting: queue.SimpleQueue[Work] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, waiting), daemon=True).start()
    most = _peak() + _FAT
    stays = True
    while stays:
        outcome = _outcome(*waiting.get())
        stays = _peak() <= most
        pickle.dump((*outcome, stays), answers)
        answers.flush()
    os._exit(0)  # the thread cannot be asked to end


def _read(source: BinaryIO, waiting: queue.SimpleQueue[Work]) -> None:
    """Take work in; the end of it means that the service has gone, so nobody waits."""
    while True:
        try:
            work = pickle.load(source)
        except EOFError:
            os._exit(0)
        waiting.put(work)


def _outcome(work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "done", work(*arguments)
    except SimplexploreError as error:
        return "refused", document_of(error)
    except MemoryError:
        return "no memory", f"this needs more than {MEMORY / 2**30:g} GiB of memory"
    except Exception:
        return "failed", traceback.format_exc()


def _limit_memory() -> None:
    if resource is not None:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = MEMORY + _size()
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _size() -> int:
    """Bytes of address space in use; a guess where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return 2**30
    return pages * resource.getpagesize()


def _peak() -> int:
    """Bytes of memory that were in use at the same time."""
    # getrusage would count what the process that started this one had, too.
    with suppress(OSError), Path("/proc/self/status").open(encoding="ascii") as lines:
        for line in lines:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if not hasattr(resource, "getrusage"):
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
