"""Hostile clients beside one that works: how long its requests take, and what the others get.

    python benchmarks/service_attacks.py [--seconds S]

Hostile clients with tokens of their own send, again and again: constraints of endless arithmetic,
a million signs, unknown words among ten thousand names, problems whose bound or vertices take
long, samplers without room, deltas beyond floats, the status of a study with epsilon; eight more
send bodies of 3.9 MB without a token. Others ask for thousands of pulls of a study with 200 arms,
hang up on work that takes long, or send random problems, most of them nonsense. Meanwhile
one client asks and tells, and one asks for /health. Aim: a p99 of 200 ms for these. The hostile
clients would be on other machines, so that they leave the processor to all others here. Figures:
benchmarks/service.md.
"""

# ruff: noqa: E402 - the path must be set before the package is imported

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "tests"))
os.environ["PYTHONPATH"] = str(ROOT / "src")

import numpy as np

import simplexplore as sx
import workers
from servers import Process
from simplexplore.service.tokens import create_token
from simplexplore.study.store import Store

Request = tuple[str, str, Any]  # method, path, body


def degenerate(arms: int = 10, rows: int = 30) -> str:
    """Many constraints that are tight at one point, the middle of the simplex."""
    rng = np.random.default_rng(0)
    lines = [f"arms = {arms}", f"means = {[i / arms for i in range(arms)]}", "[constraints]"]
    for i in range(rows):
        weights = rng.integers(-5, 6, arms)
        terms = " + ".join(f"({w})*a{a}" for a, w in enumerate(weights, 1))
        lines.append(f'c{i} = "{terms} <= {int(weights.sum())}/{arms}"')
    return "\n".join(lines)


def capped(arms: int) -> str:
    """At most 2 / K of every arm: a central binomial coefficient of vertices."""
    caps = "".join(f'c{i} = "a{i} <= 2/{arms}"\n' for i in range(1, arms + 1))
    return f"arms = {arms}\n[constraints]\n{caps}"


def create(problem: str, **more: Any) -> Iterator[Request]:
    for i in itertools.count():
        name = f"{os.getpid()} {i} {time.time()}"
        yield "POST", "/v1/studies", {"name": name, "problem": problem, **more}


def crowd(arms: int = 200, n: int = 2000) -> Iterator[Request]:
    """A large study, asked for many pulls at a time and told many rewards."""
    rng = np.random.default_rng(os.getpid())
    for i in itertools.count():
        name = f"crowd {os.getpid()} {i}"
        problem = capped(arms) if i % 2 else f"arms = {arms}\n[rewards]\nfamily = 'bernoulli'"
        yield "POST", "/v1/studies", {"name": name, "problem": problem}
        path = f"/v1/studies/{quote(name)}"
        for _ in range(20):
            rewards = [{"arm": f"a{a}", "reward": int(rng.integers(2))} for a in range(1, arms + 1)]
            yield "POST", f"{path}/rewards", {"rewards": rewards}
            yield "POST", f"{path}/pulls", {"n": n}


# What random problems are made of.
PIECES = [
    *("a1", "a2", "a300", "arms", "means", "sum", "action", "`a 1`", "[constraints]", "c = ", "'"),
    *("+", "-", "*", "/", "(", ")", "<=", ">=", "==", "0", "1", "1e308", "9e-320", "1/3", "nan"),
    *("inf", "0x1", "1_0", ",", '"', "\n", " = ", "[", "]", "[[", "é", "\u202e", "#", "0.5", "2"),
]


def nonsense() -> Iterator[Request]:
    """Random problems: some fit, most do not."""
    rng = np.random.default_rng(os.getpid())
    for i in itertools.count():
        size = int(rng.choice([2, 3, 5, 10, 30, 100]))
        names = [f"a{a}" for a in range(1, size + 1)]
        lines = [f"arms = {size}", f"delta = {10.0 ** -rng.uniform(0, 310):g}"]
        if rng.random() < 0.5:
            family = rng.choice(["gaussian", "bernoulli", "poisson", "bounded", "cauchy"])
            lines.append(f"rewards = {{ family = '{family}' }}")
        if rng.random() < 0.8:
            lines.append(f"means = {(10.0 ** rng.uniform(-12, 1, size)).tolist()}")
        if rng.random() < 0.3:
            lines.append(f"epsilon = {10.0 ** rng.uniform(-6, 1):g}")
        lines.append("[constraints]")
        for c in range(int(rng.integers(0, 30))):
            if rng.random() < 0.2:
                text = " ".join(rng.choice(PIECES, int(rng.integers(1, 40))))
            else:
                some = rng.choice(names, min(size, int(rng.integers(1, 12))), replace=False)
                terms = [f"{rng.normal() * 10.0 ** rng.uniform(-6, 6):.6g}*{a}" for a in some]
                sign = rng.choice(["<=", ">=", "=="], p=[0.6, 0.3, 0.1])
                text = f"{' + '.join(terms)} {sign} {rng.normal():.3g}"
            lines.append(f"c{c} = '{text}'")
        body = {"problem": "\n".join(lines)}
        if i % 2:
            yield "POST", "/v1/bound", body
        else:
            yield "POST", "/v1/studies", {"name": f"{os.getpid()} nonsense {i}", **body}


def again(*request: Any) -> Iterator[Request]:
    return itertools.repeat(request)


def hostile() -> dict[str, Callable[[], Iterator[Request]]]:
    two = 'arms = ["a", "b"]\n[constraints]\nc = "'
    names = f"arms = {[f'a {i}' for i in range(10_000)]}\n[constraints]\n"
    return {
        "arithmetic of 600 KB": lambda: create(two + "9e300*" * 100_000 + 'a <= 1"'),
        "a million signs": lambda: create(two + "-" * 1_000_000 + 'a <= 1"'),
        "words": lambda: create(names + f'c = "{"x" * 800_000} <= 1"'),
        "degenerate bound": lambda: again("POST", "/v1/bound", {"problem": degenerate()}),
        "many vertices": lambda: create(capped(40)),
        "many vertices, fewer arms": lambda: create(capped(12)),
        "ptns, 12,000 arms": lambda: create("arms = 12000", sampler="ptns"),
        "delta 1e-320": lambda: create("arms = 2\ndelta = 1e-320"),
        "status with epsilon": lambda: again("GET", "/v1/studies/relaxed/status", None),
        "verification": lambda: again("POST", "/v1/studies/relaxed/verification", None),
        "export": lambda: again("GET", "/v1/studies/relaxed/export", None),
        "200 arms, 2,000 pulls": crowd,
        "random problems": nonsense,
        "hanging up": lambda: again("POST", "/v1/bound", {"problem": degenerate()}),
    }


def send(connection: HTTPConnection, request: Request, token: str | None) -> tuple[int, bytes]:
    method, path, body = request
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    content = None if body is None else json.dumps(body)
    if content is not None:
        headers["Content-Type"] = "application/json"
    connection.request(method, path, content, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def attack(port: int, kind: str, token: str, until: float, answers: Any) -> None:
    """Send one kind of request until the time is over."""
    os.nice(19)
    seen: Counter[str] = Counter()
    patience = 0.3 if kind == "hanging up" else 120.0
    connection = HTTPConnection("127.0.0.1", port, timeout=patience)
    for request in hostile()[kind]():
        if time.monotonic() > until:
            break
        try:
            seen[str(send(connection, request, token)[0])] += 1
        except (OSError, HTTPException) as error:
            seen[type(error).__name__] += 1
            connection.close()
    answers.put((kind, seen))


def stuff(port: int, until: float, answers: Any) -> None:
    """Send large bodies without a token."""
    os.nice(19)
    body = json.dumps({"name": "x" * 3_900_000})
    head = (
        "POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    seen: Counter[str] = Counter()
    while time.monotonic() < until:
        connection = HTTPConnection("127.0.0.1", port, timeout=120)
        with contextlib.closing(connection):
            connection.connect()
            try:
                connection.sock.sendall((head + body).encode())
                seen[connection.sock.recv(12)[9:].decode()] += 1
            except OSError as error:
                seen[type(error).__name__] += 1
    answers.put(("3.9 MB without a token", seen))


def look(port: int, until: float, answers: Any) -> None:
    """Ask for /health, and note how long it takes."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    times = []
    while time.monotonic() < until:
        start = time.perf_counter()
        status, _ = send(connection, ("GET", "/health", None), None)
        assert status == 200
        times.append(time.perf_counter() - start)
        time.sleep(0.02)
    answers.put(("/health", times))


def work(port: int, token: str, until: float, answers: Any) -> None:
    """Ask and tell, and note how long it takes."""
    rng = np.random.default_rng(0)
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    asks, tells = [], []
    while time.monotonic() < until:
        start = time.perf_counter()
        status, content = send(connection, ("POST", "/v1/studies/mine/pulls", {"n": 1}), token)
        asks.append(time.perf_counter() - start)
        assert status == 200, content
        pull = json.loads(content)["pulls"][0]
        reward = {"pull": pull["id"], "reward": float(rng.normal(workers.MEANS[pull["arm"]]))}
        start = time.perf_counter()
        body = {"rewards": [reward]}
        status, content = send(connection, ("POST", "/v1/studies/mine/rewards", body), token)
        tells.append(time.perf_counter() - start)
        assert status == 200, content
        time.sleep(0.02)
    answers.put(("ask", asks))
    answers.put(("tell", tells))


def memory(pid: int) -> int:
    """Most bytes that the server itself had in use."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of the attacks")
    parser.add_argument("--peace", action="store_true", help="no attacks, to compare with")
    options = parser.parse_args()
    kinds = [] if options.peace else list(hostile())
    processes = get_context("fork")
    answers: Any = processes.Queue()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/attacks.db")
        own = create_token(store, "run")[1]
        sx.Study.create(store, "mine", workers.star(), "ctns")
        relaxed = sx.Problem(8, [f"a{i} + a{i + 1} <= 1/2" for i in range(1, 8)], epsilon=0.05)
        study = sx.Study.create(store, "relaxed", relaxed, "ctns")
        rng = np.random.default_rng(0)
        arms = [f"a{i}" for i in range(1, 9)]
        study.tell_many([sx.Reward(float(rng.normal()), arm=arm) for arm in arms * 20])
        # Who verifies must be an admin.
        tokens = {kind: create_token(store, "admin", kind)[1] for kind in kinds}
        study.close()
        store.close()  # no connection is shared with the clients below
        with Process(f"sqlite:///{folder}/attacks.db", Path(folder, "log")) as server:
            port = server.port
            connection = HTTPConnection("127.0.0.1", port)
            assert send(connection, ("POST", "/v1/studies/mine/pulls", {"n": 5}), own)[0] == 200
            until = time.monotonic() + options.seconds
            print(
                f"{platform.machine()}, {os.cpu_count()} cores, load average "
                f"{os.getloadavg()[0]:.1f} at the start, Python {platform.python_version()}, "
                f"{options.seconds:g} s"
            )
            crew = [
                processes.Process(target=work, args=(port, own, until, answers)),
                processes.Process(target=look, args=(port, until, answers)),
            ]
            crew += [
                processes.Process(target=attack, args=(port, kind, token, until, answers))
                for kind, token in tokens.items()
            ]
            if kinds:
                crew += [
                    processes.Process(target=stuff, args=(port, until, answers)) for _ in range(8)
                ]
            loads = []
            for one in crew:
                one.start()
            while time.monotonic() < until:
                time.sleep(min(10.0, options.seconds / 2))
                loads.append(os.getloadavg()[0])
            found = [answers.get() for _ in range(len(crew) + 1)]
            for one in crew:
                one.join()
            peak = memory(server._process.pid)
            server.stop()
    print("\n| request | requests | p50 ms | p99 | longest |\n|---|---|---|---|---|")
    for kind, times in found:
        if isinstance(times, list):
            marks = 1000 * np.quantile(times, [0.5, 0.99, 1.0])
            print(f"| {kind} | {len(times):,} | " + " | ".join(f"{x:.1f}" for x in marks) + " |")
    print("\n| attack | answers |\n|---|---|")
    totals: dict[str, Counter[str]] = {}
    for kind, seen in found:
        if isinstance(seen, Counter):
            totals.setdefault(kind, Counter()).update(seen)
    for kind, seen in totals.items():
        print(f"| {kind} | {', '.join(f'{n} x {s}' for s, n in sorted(seen.items()))} |")
    print(
        f"\nMost memory of the server itself: {peak / 2**20:.0f} MiB. Load average meanwhile: "
        f"{min(loads):.1f} to {max(loads):.1f}, mean {np.mean(loads):.1f}."
    )


if __name__ == "__main__":
    main()
