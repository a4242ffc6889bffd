"""Services for tests and benchmarks: in a process of their own, or in a thread of this one."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import uvicorn

from simplexplore.service.app import make_app


class Process:
    """`simplexplore serve` as a user runs it; its log goes to a file."""

    def __init__(self, url, log, port=0, *options, files=None):
        self._log = Path(log)
        program = ["-m", "simplexplore"]
        if files is not None:  # that it may open
            limit = f"import resource as r; r.setrlimit(r.RLIMIT_NOFILE, ({files}, {files}))"
            program = ["-c", f"{limit}; from simplexplore.cli.app import main; main()"]
        with self._log.open("ab") as file:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, *program),
                    *("serve", "--store", str(url), "--port", str(port), "--json", *options),
                ],
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self.pid = self._process.pid
        line = self._process.stdout.readline()
        if not line:
            self.stop()
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
    """The application in this process, served by uvicorn as anybody may serve it."""

    def __init__(self, store):
        app = make_app(store)
        config = uvicorn.Config(app, ws="none", log_config=None, timeout_graceful_shutdown=10)
        self._server = uvicorn.Server(config)
        app.state.is_ending = lambda: self._server.should_exit
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        arguments = {"sockets": [self._listener]}
        self._thread = threading.Thread(target=self._server.run, kwargs=arguments)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.005)

    def close(self):
        self._server.should_exit = True
        self._thread.join(120)
        assert not self._thread.is_alive()
        self._listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
