"""Worker processes for tests and benchmarks of live studies; run as a program.

    python workers.py URL NAME COUNT BATCH SECONDS FOLDER

lets COUNT processes ask and tell until the time is over, FOLDER has a file "enough" or the study
stops. What the store
has acknowledged goes to a file of each worker in FOLDER (pull, reward), so that a killed one
leaves a list of what must be in the journal. URL is that of a store or of a service. The
workers are forks of one process that has everything loaded, because 32 fresh interpreters
would take a minute to start.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

import simplexplore as sx

MEANS = {"a": 1.0, "b": 0.5, "c": 0.4, "d": 0.95, "e": 0.8}


def star(delta=1e-300, means=None):
    """A study of it goes on for as long as a test wants, unless delta says otherwise."""
    return sx.Problem(
        list(MEANS),
        {"first": "a + b <= 0.5", "second": "c + d <= 0.5"},
        scenario="anytime",
        delta=delta,
        means=means,
    )


def work(study, batch, seconds, seed, log):
    """Ask and tell; returns the seconds that each call took."""
    enough = Path(log).with_name("enough")
    rng = np.random.default_rng(seed)
    asks, tells = [], []
    until = time.monotonic() + seconds
    with Path(log).open("a", buffering=1) as file:
        while time.monotonic() < until and not enough.exists():
            start = time.perf_counter()
            try:
                pulls = study.ask(batch)
            except sx.StoppedError:
                break
            asks.append(time.perf_counter() - start)
            rewards = [(pull, float(rng.normal(MEANS[pull.arm]))) for pull in pulls]
            start = time.perf_counter()
            study.tell_many(rewards)
            tells.append(time.perf_counter() - start)
            file.write("".join(f"{pull.id} {reward!r}\n" for pull, reward in rewards))
    return asks, tells


class Crew:
    """Workers under way."""

    def __init__(self, url, name, count, batch, seconds, folder):
        self.logs = [Path(folder) / f"{i}.log" for i in range(count)]
        arguments = [url, name, str(count), str(batch), str(seconds), str(folder)]
        self._process = subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.pids = json.loads(self._process.stdout.readline() or "[]")
        if not self.pids:
            raise RuntimeError(self._process.communicate()[1])

    def stop(self, rewards=0):
        """Let them finish what they are at, once they have recorded so many rewards."""
        while self._process.poll() is None and len(acknowledged(self._begun())) < rewards:
            time.sleep(0.05)
        self.logs[0].with_name("enough").touch()

    def _begun(self):
        return [log for log in self.logs if log.exists()]

    def wait(self, seconds=300):
        """Times of all calls, by worker; a worker that was killed gives none."""
        output, errors = self._process.communicate(timeout=seconds)
        if self._process.returncode:
            raise RuntimeError(errors)
        return json.loads(output)


def open_study(url, name):
    return sx.connect(url).open(name) if url.startswith("http") else sx.Study.open(url, name)


def main():
    url, name, count, batch, seconds, folder = sys.argv[1:]
    # Compiled and loaded before anything starts.
    with (
        tempfile.TemporaryDirectory() as elsewhere,
        sx.Study.create(Path(elsewhere, "x.db"), "warm", star(), "ctns") as study,
    ):
        study.tell_many([(pull, 0.5) for pull in study.ask(len(MEANS))])
    seed = time.time_ns()
    pids = []
    for i in range(int(count)):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                study = open_study(url, name)  # connections are not for children
                times = work(study, int(batch), float(seconds), [seed, i], f"{folder}/{i}.log")
                Path(folder, f"{i}.times").write_text(json.dumps(times))
                code = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(code)
        pids.append(pid)
    print(json.dumps(pids), flush=True)  # noqa: T201
    ends = [os.waitpid(pid, 0)[1] for pid in pids]
    files = [Path(folder, f"{i}.times") for i in range(int(count))]
    times = [json.loads(file.read_text()) for file in files if file.exists()]
    print(json.dumps(times))  # noqa: T201
    # Killed is fine, failed is not.
    sys.exit(any(os.WIFEXITED(end) and os.WEXITSTATUS(end) for end in ends))


def acknowledged(logs):
    """Pull and reward of everything that workers were told is recorded."""
    found = []
    for log in logs:
        # A line without its end was being written when the worker was killed.
        for line in Path(log).read_text().split("\n")[:-1]:
            pull, reward = line.split()
            found.append((pull, float(reward)))
    return found


def is_sound(study, told):
    """Every acknowledged reward is in the journal once, and the state is that of a replay."""
    recorded = {}
    identity = {}
    for event in study.each_event():
        if event["event"] == "asked":
            assert event["number"] not in identity, "a pull was given out twice"
            identity[event["number"]] = event["pull"]
        elif "reward" in event and "number" in event:
            pull = identity[event["number"]]
            assert pull not in recorded, "a reward was recorded twice"
            recorded[pull] = event["reward"]
    for pull, reward in told:
        assert recorded.get(pull) == reward, f"{pull} was acknowledged and is not there"
    return study.verify()


if __name__ == "__main__":
    main()
