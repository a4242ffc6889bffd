"""A dashboard with something to see: a service, a sample study, and a worker that feeds it.

    python examples/dashboard.py [STORE]

The worker is a simulated kitchen with a little patience: it asks over HTTP for dishes to cook
and tells how they tasted, a few every second. Ctrl-C ends it; started again on the same store,
it goes on where it was. `make serve` runs this.
"""

import json
import random
import subprocess
import sys
import time
import webbrowser
from pathlib import Path

import simplexplore as sx

TASTE = {"pizza": 8.0, "salmon": 7.5, "lentils": 6.0}
STUDY = "tastings"


def start(store: str) -> tuple[subprocess.Popen[str], str]:
    """Serve a store in a process of its own, at an address that is free."""
    command = [sys.executable, "-c", "from simplexplore.cli.app import main; main()", "serve"]
    server = subprocess.Popen(
        [*command, "--store", store, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        sys.exit(f"The service did not start; 'simplexplore serve --store {store}' says why.")
    return server, json.loads(line)["url"]


def work(url: str, pause: float = 0.5, rounds: int | None = None) -> None:
    """Cook and taste until the study has its answer, or for some rounds."""
    problem = sx.Problem.from_file(Path(__file__).parent / "meal.toml")
    with sx.connect(url) as service:
        try:
            study = service.open(STUDY)
        except sx.UnknownStudyError:
            study = service.create(STUDY, problem, "top-two")
        while rounds is None or rounds > 0:
            try:
                pulls = study.ask(3)
            except sx.StoppedError:
                return
            time.sleep(pause)
            study.tell_many([(pull, random.gauss(TASTE[pull.arm], 2.0)) for pull in pulls])
            rounds = None if rounds is None else rounds - 1


if __name__ == "__main__":
    server, url = start(sys.argv[1] if len(sys.argv) > 1 else "dashboard.db")
    try:
        page = f"{url}/studies/{STUDY}"
        sys.stdout.write(f"The dashboard is at {page} (Ctrl-C ends it)\n")
        work(url, rounds=1)  # makes the study
        webbrowser.open(page)
        work(url)
        sys.stdout.write("The study has its answer; it stays on show until Ctrl-C.\n")
        server.wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.terminate()
        server.wait(30)
