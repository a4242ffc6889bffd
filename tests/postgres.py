"""A PostgreSQL server of our own: installed binaries, a free port, an unprivileged user."""

import atexit
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path


def binaries() -> Path | None:
    """The folder that holds initdb and postgres; Debian keeps it off the path."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return folders[-1].parent if folders else None


def unprivileged() -> str | None:
    """Whom to run the server as: it refuses to be run by root."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


# For databases that need not outlast a power failure, nor grow old.
QUICK = (
    *("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "autovacuum=off"),
    *("-c", "wal_level=minimal", "-c", "max_wal_senders=0"),
)

# Whoever was connected may still hold a lock.
EMPTY = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid != pg_backend_pid();
    DROP SCHEMA public CASCADE; CREATE SCHEMA public;
"""


class Server:
    """A server in a temporary folder."""

    def __init__(self, durable: bool = False) -> None:
        self._bin = binaries()
        if self._bin is None:
            raise FileNotFoundError("there is no initdb: install PostgreSQL")
        self._user = unprivileged()
        self._folder = Path(tempfile.mkdtemp(prefix="simplexplore-pg-"))
        self._data = self._folder / "data"
        self.port = free_port()
        self._durable = durable
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        self._call(
            "initdb", "-U", "tester", "--auth=trust", "--no-sync", "-E", "UTF8", "-D", self._data
        )
        self._process: subprocess.Popen | None = None
        self._databases = 0
        atexit.register(self.close)  # whatever happens to the program
        self.start()

    def _options(self):
        return (
            {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": []}
            if self._user
            else {}
        )

    def _call(self, program, *arguments):
        done = subprocess.run(
            [self._bin / program, *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=self._folder,
            **self._options(),
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr or done.stdout}")

    def start(self) -> None:
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(
            [
                self._bin / "postgres",
                *("-D", self._data),
                *("-p", str(self.port)),
                *("-k", self._folder),
                *("-c", "listen_addresses=127.0.0.1"),
                *("-c", "max_connections=200"),
                *(() if self._durable else QUICK),
            ],
            stdout=log,
            stderr=log,
            cwd=self._folder,
            **self._options(),
        )
        log.close()
        for _ in range(600):
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1),
            ):
                break
            time.sleep(0.05)
        deadline = time.monotonic() + 30
        while True:
            try:
                self._call("psql", *self._psql("SELECT 1"))
                return
            except RuntimeError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.1)

    def _psql(self, command, database="postgres"):
        where = ("-h", "127.0.0.1", "-p", str(self.port), "-U", "tester", "-d", database)
        return (*where, "-X", "-q", "-c", command)

    def database(self) -> str:
        """The URL of a new, empty database."""
        self._databases += 1
        name = f"test{self._databases}"
        self._call("psql", *self._psql(f"CREATE DATABASE {name}"))
        return f"postgresql://tester@127.0.0.1:{self.port}/{name}"

    def empty(self, url: str) -> None:
        """Make a database as good as new, which takes a fraction of making one."""
        self._call("psql", *self._psql(EMPTY, url.rpartition("/")[2]))

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop at once: SIGINT ends connections, SIGQUIT leaves the mess of a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(120)
            self._process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
