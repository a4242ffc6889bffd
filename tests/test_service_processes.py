"""Heavy work: in processes that are ended, and nobody waits for another."""

import contextlib
import json
import os
import resource
import signal
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
import urllib3

import simplexplore as sx
from nightly import nightly
from servers import Process
from service_client import STAR, bearer, new_token, refused, until
from stores import connected
from workers import star

BOUND = ("POST", "/v1/bound", {"problem": STAR.replace("delta", "means = [5, 4, 3, 2, 1]\ndelta")})
MANY = 64  # so many arms that a study is asked in a process


def large(url):
    return sx.Study.create(url, "large", sx.Problem(MANY, ["a1 + a2 <= 0.5"]), "uniform")


class Answer:
    """What a service answered."""

    def __init__(self, response):
        self.status_code, self.headers = response.status, response.headers
        self.text = response.data.decode()

    def json(self):
        return json.loads(self.text)


def send(server, method, path, body=None, headers=()):
    headers = {"Content-Type": "application/json", **dict(headers)}
    content = None if body is None else json.dumps(body)
    return Answer(
        urllib3.request(
            method, server.url + path, body=content, headers=headers, retries=False, timeout=120
        )
    )


def children(server):
    """Process ids of whatever a server has started."""
    found = []
    for one in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = one.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == server.pid and state != "Z":
                found.append(int(one.parent.name))
    return found


def signalled(pids, how):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, how)


@contextlib.contextmanager
def frozen(server):
    """Nothing that a server has started goes on: what it begins there takes for ever."""
    assert send(server, *BOUND).status_code == 200  # a process is there
    pids = children(server)
    assert 1 <= len(pids) <= 2
    signalled(pids, signal.SIGSTOP)
    try:
        yield pids
    finally:
        signalled(pids, signal.SIGCONT)


def under_way(server, count):
    """Wait until so many requests are being worked on, beside the one that asks."""

    def found():
        text = send(server, "GET", "/metrics").text
        (line,) = [x for x in text.splitlines() if x.startswith("simplexplore_requests_in_progr")]
        return float(line.split()[1]) > count

    until(found)
    time.sleep(0.5)  # until they have gone to a process


@pytest.fixture
def here(sqlite_url, tmp_path):
    sx.Study.create(sqlite_url, "mix", star()).close()
    with Process(sqlite_url, tmp_path / "log") as server:
        yield server


# ---------------------------------------------------------------- budgets


def test_a_process_that_dies(here):
    with frozen(here) as pids, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(send, here, *BOUND)
        under_way(here, 1)
        signalled(pids, signal.SIGKILL)
        answer = waiting.result()
    assert answer.status_code == 503
    assert "the worker process died" in answer.json()["detail"]
    assert answer.headers["Retry-After"] == "2"
    # If there were two processes, the other one is found dead first.
    assert 200 in [send(here, *BOUND).status_code for _ in pids + pids[:1]]


def test_work_of_a_client_that_has_gone_is_ended(here):
    """More often than one client has places."""
    path, body = BOUND[1], json.dumps(BOUND[2]).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    for turn in range(3):
        with frozen(here) as pids:
            with socket.create_connection(("127.0.0.1", here.port), 20) as client:
                client.sendall(head.encode() + body)
                under_way(here, 1)
                assert set(pids) <= set(children(here))
            until(lambda pids=pids: set(pids) - set(children(here)))
            counted = f'status="499"}} {turn + 1}.0'
            until(lambda counted=counted: counted in send(here, "GET", "/metrics").text)
    assert send(here, *BOUND).status_code == 200


def test_work_is_ended_with_the_service(sqlite_url, tmp_path):
    with Process(sqlite_url, tmp_path / "log") as server:
        with frozen(server) as pids, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(send, server, *BOUND)
            under_way(server, 1)
            server.stop(signal.SIGTERM)
            with contextlib.suppress(urllib3.exceptions.HTTPError):
                assert waiting.result().status_code >= 500
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_memory_has_a_limit(here):
    assert send(here, *BOUND).status_code == 200
    for pid in children(here):
        limits = resource.prlimit(pid, resource.RLIMIT_AS)
        assert 2**31 <= limits[0] <= 2**31 + 2**30  # beside what Python needs for itself
        # What it may have is less than a large problem needs.
        used = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
        resource.prlimit(pid, resource.RLIMIT_AS, (used + 2**24, limits[1]))
    problem = sx.Problem(1500, ["a1 + a2 <= 0.5"], means=[i / 1500 for i in range(1500)])
    answer = send(here, "POST", "/v1/bound", {"problem": problem.to_text()})
    refused_for_memory = answer.status_code, answer.json()["detail"]
    assert refused_for_memory[0] == 413, refused_for_memory
    assert "more than 2 GiB of memory" in answer.json()["detail"]
    assert send(here, *BOUND).status_code == 200


def test_what_may_have_been_recorded_is_not_refused(sqlite_url, tmp_path):
    """Sent again under its key it happens once, whether or not it was recorded."""
    study = large(sqlite_url)
    with Process(sqlite_url, tmp_path / "log") as server:
        asked = ("POST", "/v1/studies/large/pulls", {"n": 3}, {"Idempotency-Key": "again"})
        assert send(server, *asked[:2], {"n": 1}).status_code == 200  # a process is there
        with contextlib.closing(sqlite3.connect(tmp_path / "studies.db")) as other:
            other.execute("BEGIN IMMEDIATE")  # another program writes
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(send, server, *asked)
                under_way(server, 1)
                signalled(children(server), signal.SIGKILL)
                answer = waiting.result()
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "2"
        words = "may have been recorded. Send it again under the same"
        assert words in answer.json()["detail"]
        until(lambda: send(server, *asked).status_code == 200)  # all processes were killed
        again = [send(server, *asked).json()["pulls"] for _ in range(2)]
    assert again[0] == again[1]
    assert [event["pull"] for event in study.events()][1:] == [one["id"] for one in again[0]]


@nightly
def test_nothing_takes_for_ever(server, tmp_path):
    """A bound, a large study and a small one whose rows somebody keeps: a minute each."""
    url = server.database()
    studies = [large(url), sx.Study.create(url, "mix", star())]
    names = [study.name for study in studies]
    with Process(url, tmp_path / "log") as running, ThreadPoolExecutor(3) as pool:

        def ask(name):
            return send(
                running,
                "POST",
                f"/v1/studies/{name}/pulls",
                {"n": 3},
                {"Idempotency-Key": "again"},
            )

        for name in names:
            assert send(running, "POST", f"/v1/studies/{name}/pulls", {}).status_code == 200
        with connected(url) as other:
            other.execute(sa.text("SELECT * FROM studies FOR UPDATE"))
            asked = [pool.submit(ask, name) for name in names]
            under_way(running, 2)
            signalled(children(running), signal.SIGCONT)
            with frozen(running):
                bound = send(running, *BOUND)
            of_large, of_small = [one.result() for one in asked]
        refused(bound, 413, "too-large", "takes more than 60 s, so the service ended it")
        for answer, words in (
            (of_large, "so the service ended it. It may have been recorded"),
            (of_small, "no answer within 60 s"),
        ):
            assert answer.status_code == 503
            assert words in answer.json()["detail"]
        for name in names:
            assert ask(name).json() == ask(name).json()
    assert [study.head for study in studies] == [4, 4]


# ---------------------------------------------------------------- shares


def test_nobody_waits_for_another(sqlite_url, tmp_path):
    """One token fills its share and its queue; the work of another is done meanwhile."""
    hostile, other = (bearer(new_token(sqlite_url, "run")[1]) for _ in range(2))
    with Process(sqlite_url, tmp_path / "log") as server:
        assert send(server, *BOUND, other).status_code == 200
        pids = children(server)
        signalled(pids, signal.SIGSTOP)
        with ThreadPoolExecutor(6) as pool:
            theirs = [pool.submit(send, server, *BOUND, hostile) for _ in range(6)]
            time.sleep(1.0)
            assert send(server, *BOUND, other).status_code == 200
            assert not any(one.done() for one in theirs)
            signalled(pids, signal.SIGCONT)
            assert {one.result().status_code for one in theirs} == {200}


@nightly
def test_a_study_that_is_held_keeps_no_other_waiting(server, tmp_path):
    """Whoever waits at one study has a share of the threads, and no more."""
    url = server.database()
    for name in ("held", "free"):
        sx.Study.create(url, name, star()).close()
    hostile, other = (bearer(new_token(url, "run")[1]) for _ in range(2))
    with Process(url, tmp_path / "log") as running, ThreadPoolExecutor(40) as pool:
        for name in ("held", "free"):
            assert send(running, "POST", f"/v1/studies/{name}/pulls", {}, other).status_code == 200
        with connected(url) as somebody:
            somebody.execute(sa.text("SELECT * FROM studies WHERE name = 'held' FOR UPDATE"))
            path = "/v1/studies/held/pulls"
            waiting = [pool.submit(send, running, "POST", path, {}, hostile) for _ in range(40)]
            time.sleep(1.0)
            for _ in range(5):
                started = time.monotonic()
                for path in ("/v1/studies/free/pulls", "/v1/studies/free/notes"):
                    body = {"text": "quick"} if path.endswith("notes") else {}
                    assert send(running, "POST", path, body, other).status_code < 300
                assert send(running, "GET", "/v1/studies/free", None, other).status_code == 200
                assert time.monotonic() - started < 20
            assert not any(one.done() for one in waiting)
        assert {one.result().status_code for one in waiting} == {200}
    assert sx.Study.open(url, "held").head == 41
    assert sx.Study.open(url, "held").verify()


# ---------------------------------------------------------------- what is refused


HOSTILE = {
    "arithmetic": 'arms = ["a", "b"]\n[constraints]\nc = "' + "9e300*" * 40_000 + 'a <= 1"',
    "signs": 'arms = ["a", "b"]\n[constraints]\nc = "' + "-" * 250_000 + 'a <= 1"',
    "words": f"arms = {[f'a {i}' for i in range(10_000)]}\n[constraints]\n"
    f'c = "{"x" * 100_000} <= 1"',
    "delta": "arms = 2\ndelta = 1e-320",
    "dots": "a." * 120_000 + "b = 1",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_problems_are_refused_in_words(client, kind):
    for path, more in (("/v1/bound", {}), ("/v1/studies", {"name": "x"})):
        answer = client.post(path, json={"problem": HOSTILE[kind], **more})
        refused(
            answer,
            422,
            "constraint" if kind in ("arithmetic", "signs", "words") else "problem",
            ".",
        )
        assert len(answer.text) < 10_000


def test_a_sampler_without_room(client):
    body = {"name": "x", "problem": "arms = 12000", "sampler": "ptns"}
    refused(client.post("/v1/studies", json=body), 413, "too-large", "a table of 12.9 GiB")


def test_extensions_have_an_end(client, study):
    for delta in (1e-320, 9e-301):
        answer = client.post(f"{study}/extension", json={"delta": delta})
        refused(answer, 422, "problem", "delta must be at least 1e-300")
    assert client.post(f"{study}/extension", json={"delta": 1e-300}).status_code == 200
    assert client.get(f"{study}/status").json()["delta"] == 1e-300


def test_large_studies_are_as_they_are_here(sqlite_url, client):
    """They are asked and told in processes of their own."""
    problem = sx.Problem(MANY, ["a1 + a2 <= 0.5"], delta=0.1)
    here = sx.Study.create(sqlite_url, "here", problem, "uniform")
    path = "/v1/studies/there"
    body = {"name": "there", "problem": problem.to_text(), "sampler": "uniform"}
    assert client.post("/v1/studies", json=body).status_code == 201
    rng = np.random.default_rng(0)
    for _ in range(3):
        pulls = client.post(f"{path}/pulls", json={"n": 8}).json()["pulls"]
        asked = here.ask(8)
        assert [pull["arm"] for pull in pulls] == [pull.arm for pull in asked]
        drawn = rng.normal(size=8).tolist()
        rewards = [{"pull": pull["id"], "reward": x} for pull, x in zip(pulls, drawn, strict=True)]
        told = client.post(f"{path}/rewards", json={"rewards": rewards}).json()["rewards"]
        assert {one["outcome"] for one in told} == {"told"}
        here.tell_many(list(zip(asked, drawn, strict=True)))
    key = {"Idempotency-Key": "k"}
    answers = [client.post(f"{path}/pulls", json={"n": 1}, headers=key) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    wrong = {"rewards": [{"pull": "nobody's", "reward": 1.0}]}
    refused(client.post(f"{path}/rewards", json=wrong), 422, "pull", "nobody's")
    assert client.post(f"{path}/notes", json={"text": "a remark"}).status_code == 204
    extended = client.post(f"{path}/extension", json={"delta": 0.01}).json()
    assert extended == {"delta": 0.01, "answer": None}
    assert client.get(path).json()["head"] == 51
    assert len(client.get(f"{path}/journal").json()["events"]) == 51
    with ThreadPoolExecutor(4) as pool:
        asks = [pool.submit(client.post, f"{path}/pulls", json={"n": 5}) for _ in range(4)]
        ids = [pull["id"] for ask in asks for pull in ask.result().json()["pulls"]]
    assert len(set(ids)) == 20
    assert sx.Study.open(sqlite_url, "there").verify()
