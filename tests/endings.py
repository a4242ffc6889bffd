"""What processes of the service do in tests; they read this file, which imports little."""

import os
import signal
import time
from pathlib import Path


def endless(path):
    """Never come back; say who one is."""
    written = Path(path).with_suffix(".written")
    written.write_text(str(os.getpid()))
    written.rename(path)  # there with all that it says, or not there
    while True:
        time.sleep(0.001)


def endless_request(first, *_):
    """The same, as any of the functions for requests: the file is beside the store or given."""
    endless(first if isinstance(first, str) else Path(sqlite_path(first[0])).with_name("pid"))


def late_request(*arguments):
    """Record something, and never say so."""
    from simplexplore.service import heavy_work

    (heavy_work.on_study if callable(arguments[2]) else heavy_work.create)(*arguments)
    time.sleep(1000)


def fatal_request(*arguments):
    from simplexplore.service import heavy_work

    heavy_work.on_study(*arguments)
    dead()


def greedy_request(*arguments):
    from simplexplore.service import heavy_work

    heavy_work.on_study(*arguments)
    large(6)


def sqlite_path(url):
    return url.removeprefix("sqlite:///")


def large(gibibytes):
    import numpy as np

    return int(np.ones(int(gibibytes * 2**27)).sum())


def dead():
    os.kill(os.getpid(), signal.SIGKILL)


def wrong():
    from simplexplore.errors import InfeasibleError

    raise InfeasibleError("these cannot hold together", ["one", "two"])


def broken():
    raise RuntimeError("a reason")
