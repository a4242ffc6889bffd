"""A dashboard with something to see and to play with: a service, three studies, two workers.

    python examples/dashboard.py [STORE]

"tastings" is a kitchen that has its answer after a minute or so. "pages" is a shop that shows its
visitors one of five pages, a few every second: rewards are sales, and it takes an hour or two.
"yours" has no worker: ask for dishes on its page, taste them, and tell what they were like. Ctrl-C
ends it; started again on the same store, it goes on where it was. `make serve` runs this.
"""

import json
import random
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path

import simplexplore as sx

HERE = Path(__file__).parent
TASTE = {"pizza": 8.0, "salmon": 7.5, "lentils": 6.0}
SALES = {"today": 0.10, "short": 0.13, "video": 0.09, "partner": 0.16, "partner video": 0.15}
# Name, problem file, rewards at a time, and how a reward is drawn; nobody works for the last.
STUDIES: dict[str, tuple[str, int, Callable[[str], float] | None]] = {
    "tastings": ("meal.toml", 3, lambda arm: random.gauss(TASTE[arm], 2.0)),
    "pages": ("traffic.toml", 8, lambda arm: float(random.random() < SALES[arm])),
    "yours": ("meal.toml", 3, None),
}


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


def work(url: str, pause: float = 0.5, rounds: int | None = None, name: str = "tastings") -> None:
    """Ask and tell until a study has its answer, or for some rounds."""
    file, batch, draw = STUDIES[name]
    with sx.connect(url) as service:
        try:
            study = service.open(name)
        except sx.UnknownStudyError:
            study = service.create(name, sx.Problem.from_file(HERE / file), "top-two")
            if draw is None:
                study.ask(batch)
        while draw is not None and (rounds is None or rounds > 0):
            try:
                pulls = study.ask(batch)
                time.sleep(pause)
                study.tell_many([(pull, draw(pull.arm)) for pull in pulls])
            except sx.StoppedError:
                return
            except sx.PausedError:  # somebody pressed the button
                time.sleep(2.0)
                continue
            rounds = None if rounds is None else rounds - 1


if __name__ == "__main__":
    server, url = start(sys.argv[1] if len(sys.argv) > 1 else "dashboard.db")
    try:
        sys.stdout.write(f"The dashboard is at {url} (Ctrl-C ends it)\n")
        for name in STUDIES:
            work(url, rounds=1, name=name)  # makes the study
            threading.Thread(target=work, args=(url,), kwargs={"name": name}, daemon=True).start()
        webbrowser.open(url)
        server.wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.terminate()
        server.wait(30)
