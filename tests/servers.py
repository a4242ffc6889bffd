"""Services for tests and benchmarks: in a process of their own, or in a thread of this one."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import uvicorn

from simplexplore.service import server as serving
from simplexplore.service.app import make_app


class Process:
    """`simplexplore serve` as a user runs it; its log goes to a file."""

    def __init__(self, url, log, port=0, *options):
        self._log = Path(log)
        with self._log.open("ab") as file:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-c", "from simplexplore.cli.app import main; main()"),
                    *("serve", "--store", str(url), "--port", str(port), "--json", *options),
                ],
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(self.log())
        self.url = json.loads(line)["url"]
        self.port = int(self.url.rpartition(":")[2])

    def log(self):
        return self._log.read_text()

    def stop(self, how=signal.SIGTERM, seconds=60):
        """Send a signal, and return how the process ended."""
        self._process.send_signal(how)
        self._process.stdout.close()
        return self._process.wait(seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self.stop(signal.SIGKILL)


class Thread:
    """A server in this process, so that a test can change its settings."""

    def __init__(self, store):
        listener = serving._listen("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.app = make_app(store)
        config = uvicorn.Config(
            self.app, http=serving._Protocol, ws="none", log_config=None, access_log=False
        )
        ready = threading.Event()
        self._server = serving._Server(config, self.app, ready.set)
        self._thread = threading.Thread(target=self._server.run, args=([listener],))
        self._thread.start()
        assert ready.wait(120)

    def close(self):
        self._server.handle_exit(signal.SIGTERM, None)
        self._thread.join(120)
        assert not self._thread.is_alive()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
