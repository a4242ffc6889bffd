"""Heavy work: in processes that are ended, and nobody waits for another."""

import asyncio
import gc
import json
import os
import socket
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from starlette.exceptions import HTTPException

import simplexplore as sx
from endings import (
    broken,
    dead,
    endless,
    endless_request,
    fatal_request,
    greedy_request,
    large,
    late_request,
    sqlite_path,
    wrong,
)
from servers import Thread
from service_client import STAR, refused, serving
from simplexplore.errors import TooLargeError
from simplexplore.service import fair_queue, heavy_work, open_studies, worker_processes
from simplexplore.service.fair_queue import FairQueue
from simplexplore.service.refusals import DocumentError
from simplexplore.service.worker_processes import WorkerProcesses
from simplexplore.study.store import Store
from workers import star


def is_alive(path):
    try:
        os.kill(int(Path(path).read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def within(seconds, condition):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return condition()


def run(*works):
    """Run pieces of work one after the other, as the same token."""

    async def go():
        processes = WorkerProcesses()
        try:
            return [await processes.run("one", *work) for work in works]
        finally:
            processes.close()

    return asyncio.run(go())


# ---------------------------------------------------------------- budgets


def test_plain_data_comes_back():
    assert run((sorted, [3, 1, 2]), (dict.fromkeys, ["a"], 1.5)) == [[1, 2, 3], {"a": 1.5}]


def test_the_process_is_used_again():
    first, second = run((os.getpid,), (os.getpid,))
    assert first == second != os.getpid()


def test_work_is_ended_at_its_deadline(tmp_path, monkeypatch):
    run((large, 0))  # so that a process is there, and has read this file
    monkeypatch.setattr(worker_processes, "DEADLINE", 2.0)
    path = tmp_path / "pid"
    with pytest.raises(TooLargeError, match="takes more than 2 s, so the service ended it"):
        run((endless, path))
    assert within(60, lambda: not is_alive(path))


def test_work_is_ended_when_nobody_waits(tmp_path):
    path = tmp_path / "pid"
    complaints = []

    async def impatient():
        asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
        processes = WorkerProcesses()
        task = asyncio.ensure_future(processes.run("one", endless, path))
        while not path.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        while is_alive(path):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # the thread that waited for it says so
        processes.close()
        del task
        gc.collect()

    asyncio.run(impatient())
    assert complaints == []  # nothing for the log: nobody wants to know how it ended


def test_work_is_ended_with_the_service(tmp_path):
    path = tmp_path / "pid"

    async def closing():
        processes = WorkerProcesses()
        task = asyncio.ensure_future(processes.run("one", endless, path))
        while not path.exists():
            await asyncio.sleep(0.01)
        processes.close()
        with pytest.raises(HTTPException):
            await task

    asyncio.run(closing())
    assert within(60, lambda: not is_alive(path))


def test_memory_has_a_limit():
    with pytest.raises(TooLargeError, match="more than 2 GiB of memory; make it smaller"):
        run((large, 6))


def test_a_process_that_has_grown_is_not_kept():
    first, _, second = run((os.getpid,), (large, 0.75), (os.getpid,))
    assert first != second


def test_few_processes_are_kept(monkeypatch):
    async def go():
        processes = WorkerProcesses()
        work = [processes.run(str(i), time.sleep, 0.2) for i in range(5)]
        await asyncio.gather(*work)
        processes.close()

    worker_processes._end_idle(0.0, 0)
    asyncio.run(go())
    idle = [process for _, process in worker_processes._idle]
    assert len(idle) == 5
    worker_processes._end_idle()  # they have just come back
    assert len(worker_processes._idle) == 5
    monkeypatch.setattr(time, "monotonic", lambda: 1e9)
    worker_processes._end_idle()
    assert [process for _, process in worker_processes._idle] == idle[3:]
    assert [process.is_alive for process in idle] == [False] * 3 + [True] * 2


def test_a_process_that_dies():
    with pytest.raises(HTTPException) as caught:
        run((dead,))
    assert (caught.value.status_code, caught.value.headers) == (503, {"Retry-After": "2"})
    assert run((len, "abc")) == [3]


def test_errors_come_back_as_documents():
    with pytest.raises(DocumentError) as caught:
        run((wrong,))
    assert caught.value.document["conflict"] == ["one", "two"]
    with pytest.raises(RuntimeError, match=r"(?s)in broken.*a reason"):
        run((broken,))


# ---------------------------------------------------------------- shares


def test_nobody_waits_for_another(tmp_path):
    """One token fills its share and its queue; the work of another is done meanwhile."""

    async def go():
        processes = WorkerProcesses()
        paths = [tmp_path / str(i) for i in range(6)]
        hostile = [asyncio.ensure_future(processes.run("hostile", endless, path)) for path in paths]
        while sum(path.exists() for path in paths) < 2:
            await asyncio.sleep(0.01)
        answers = [await processes.run("other", len, "abc") for _ in range(5)]
        # What is quick has a place of its own even for the hostile one.
        answers.append(await processes.run("hostile", len, "abc", quick=True))
        begun = sum(path.exists() for path in paths)
        processes.close()
        await asyncio.gather(*hostile, return_exceptions=True)
        return answers, begun

    assert asyncio.run(go()) == ([3] * 6, 2)


def enter_all(queue, tokens):
    """Let tokens enter one after the other; returns their tasks after a moment."""

    async def one(token, entered):
        await queue.enter(token)
        entered.append(token)

    async def go(leaving):
        entered = []
        tasks = []
        for token in tokens:
            tasks.append(asyncio.ensure_future(one(token, entered)))
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        for token in leaving:
            queue.leave(token)
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return "".join(entered)

    return lambda leaving="": asyncio.run(go(leaving))


def test_turns_are_fair():
    # Half of the places are for those who have none yet.
    assert enter_all(FairQueue(4, 2), "aaabbcde")() == "aabc"
    # Those with the least inside come first; of these, those who have waited longest.
    assert enter_all(FairQueue(4, 2), "aaabbcde")("c") == "aabcd"
    assert enter_all(FairQueue(4, 2), "aaabbcde")("cd") == "aabcde"
    assert enter_all(FairQueue(2, 1), "aabbcc")("abab") == "ababc"
    assert enter_all(FairQueue(2, 1), "aaaabc")("aac") == "abaca"


def test_waiting_has_an_end(monkeypatch):
    monkeypatch.setattr(fair_queue, "WAIT", 0.05)
    monkeypatch.setattr(fair_queue, "_LONGEST_QUEUE", 2)

    async def go():
        queue = FairQueue(2, 1)
        await queue.enter("a")
        waiting = [asyncio.ensure_future(queue.enter("a")) for _ in range(3)]
        errors = await asyncio.gather(*waiting, return_exceptions=True)
        assert [error.status_code for error in errors] == [503] * 3
        assert errors[0].headers == {"Retry-After": "2"}
        queue.leave("a")  # nobody who has gone is let in
        await asyncio.wait_for(queue.enter("a"), 1)
        await asyncio.wait_for(queue.enter("b"), 1)

    asyncio.run(go())


# ---------------------------------------------------------------- over HTTP


def test_requests_meet_their_budget(client, study, monkeypatch):
    monkeypatch.setattr(worker_processes, "DEADLINE", 0.0)
    for method, path, body in (
        ("POST", "/v1/bound", {"problem": STAR}),
        ("POST", "/v1/studies", {"name": "new", "problem": STAR}),
        ("GET", f"{study}/status", None),
        ("GET", f"{study}/export", None),
        ("POST", f"{study}/verification", None),
    ):
        answer = client.request(method, path, json=body)
        refused(answer, 413, "too-large", "takes more than 0 s")
    monkeypatch.undo()
    time.sleep(1)  # in which a study would be made by work that went on
    assert [one["name"] for one in client.get("/v1/studies").json()["studies"]] == ["mix"]
    assert client.get(f"{study}/status").status_code == 200


@pytest.mark.parametrize(
    ("name", "method", "path", "body"),
    [
        ("bound", "POST", "/v1/bound", {"problem": "{pid}"}),
        ("create", "POST", "/v1/studies", {"name": "new", "problem": STAR}),
        ("status", "GET", "/v1/studies/mix/status", None),
        ("export", "GET", "/v1/studies/mix/export", None),
        ("verify", "POST", "/v1/studies/mix/verification", None),
    ],
)
def test_work_of_a_client_that_has_gone_is_ended(sqlite_url, monkeypatch, name, method, path, body):
    monkeypatch.setattr(heavy_work, name, endless_request)
    pid = Path(sqlite_path(sqlite_url)).with_name("pid")
    text = json.dumps(body).replace("{pid}", str(pid)) if body else ""
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(text)}"]
    head += ["Content-Type: application/json"] if text else []
    store = Store(sqlite_url)
    sx.Study.create(store, "mix", star())
    with Thread(store) as server:
        times = 3 if name == "bound" else 1  # more than one client's share
        for _ in range(times):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
                client.sendall("\r\n".join([*head, "", text]).encode())
                assert within(30, lambda: pid.exists() and pid.read_text())
            assert within(10, lambda: not is_alive(pid))
            pid.unlink()
        queue = server.app.state.processes._queue
        assert within(10, lambda: queue._inside.total() == 0)
        assert within(10, lambda: f'status="499"}} {times}.0' in scraped(server))
    assert [one["name"] for one in sx.Study.list(store)] == ["mix"]


def scraped(server):
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=20) as answer:
        return answer.read().decode()


HOSTILE = {
    "arithmetic": 'arms = ["a", "b"]\n[constraints]\nc = "' + "9e300*" * 100_000 + 'a <= 1"',
    "signs": 'arms = ["a", "b"]\n[constraints]\nc = "' + "-" * 900_000 + 'a <= 1"',
    "words": f"arms = {[f'a {i}' for i in range(10_000)]}\n[constraints]\n"
    f'c = "{"x" * 800_000} <= 1"',
    "delta": "arms = 2\ndelta = 1e-320",
    "dots": "a." * 400_000 + "b = 1",
    "coefficients": "arms = 100000\n[constraints]\n"
    + "".join(f'c{i} = "a1<=1"\n' for i in range(50_000)),
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


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (late_request, "takes more than 5 s, so the service ended it"),
        (fatal_request, "the process that worked on this died"),
        (greedy_request, "needs more than 2 GiB of memory"),
    ],
)
def test_what_may_have_been_recorded_is_not_refused(client, study, monkeypatch, ending, words):
    """Sent again under its key it happens once, whether or not it was recorded."""
    monkeypatch.setattr(open_studies, "_LARGE", 5)
    assert client.post(f"{study}/pulls", json={"n": 1}).status_code == 200  # a process is there
    if ending is late_request:  # the others may take their time on a busy machine
        monkeypatch.setattr(worker_processes, "DEADLINE", 5.0)
    monkeypatch.setattr(heavy_work, "on_study", ending)
    key = {"Idempotency-Key": "again"}
    answer = client.post(f"{study}/pulls", json={"n": 3}, headers=key)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "2"
    assert words in answer.json()["detail"]
    assert "may have been recorded. Send it again under the same" in answer.json()["detail"]
    monkeypatch.undo()
    again = client.post(f"{study}/pulls", json={"n": 3}, headers=key)
    assert again.status_code == 200
    events = client.get(f"{study}/journal").json()["events"]
    assert [event["arm"] for event in events][1:] == [one["arm"] for one in again.json()["pulls"]]
    assert len(events) == 4


def test_a_study_that_was_made_too_late_is_not_refused(client, monkeypatch):
    monkeypatch.setattr(worker_processes, "DEADLINE", 5.0)
    monkeypatch.setattr(heavy_work, "create", late_request)
    body, key = {"name": "new", "problem": STAR}, {"Idempotency-Key": "again"}
    answer = client.post("/v1/studies", json=body, headers=key)
    made = [one["name"] for one in client.get("/v1/studies").json()["studies"]]
    assert answer.status_code == (503 if "new" in made else 413)  # a slow machine
    assert ("may have been recorded" in answer.json()["detail"]) == ("new" in made)
    monkeypatch.undo()
    assert client.post("/v1/studies", json=body, headers=key).status_code == 201
    assert client.post("/v1/studies", json=body).status_code == 409


def test_open_studies_have_room(sqlite_url, monkeypatch):
    """Large ones are closed sooner."""
    monkeypatch.setattr(open_studies, "_MOST_BYTES", 3 * 96 * 25)
    store = Store(sqlite_url)
    for i in range(6):
        sx.Study.create(store, f"s{i}", star())
    with serving(store) as client:
        for i in range(6):
            assert client.post(f"/v1/studies/s{i}/pulls", json={}).status_code == 200
        assert [name for name, _ in client.app.state.studies._open] == ["s3", "s4", "s5"]


def test_large_studies_are_left_to_the_processes(sqlite_url, monkeypatch):
    monkeypatch.setattr(open_studies, "_LARGE", 5)
    store = Store(sqlite_url)
    here = sx.Study.create(store, "here", star(delta=0.1))
    with serving(store) as client:
        path = "/v1/studies/there"
        client.post("/v1/studies", json={"name": "there", "problem": STAR})
        rng = np.random.default_rng(0)
        for _ in range(3):
            pulls = client.post(f"{path}/pulls", json={"n": 8}).json()["pulls"]
            assert [pull["arm"] for pull in pulls] == [pull.arm for pull in here.ask(8)]
            drawn = rng.normal(size=8).tolist()
            rewards = [
                {"pull": pull["id"], "reward": x} for pull, x in zip(pulls, drawn, strict=True)
            ]
            told = client.post(f"{path}/rewards", json={"rewards": rewards}).json()["rewards"]
            assert {one["outcome"] for one in told} == {"told"}
            pending = [event["pull"] for event in here.events()[-8:]]
            here.tell_many(list(zip(pending, drawn, strict=True)))
        answer = client.post(f"{path}/pulls", json={"n": 1}, headers={"Idempotency-Key": "k"})
        again = client.post(f"{path}/pulls", json={"n": 1}, headers={"Idempotency-Key": "k"})
        assert answer.json() == again.json()
        wrong = {"rewards": [{"pull": "nobody's", "reward": 1.0}]}
        refused(client.post(f"{path}/rewards", json=wrong), 422, "pull", "nobody's")
        assert client.post(f"{path}/notes", json={"text": "a remark"}).status_code == 204
        extended = client.post(f"{path}/extension", json={"delta": 0.01}).json()
        assert extended == {"delta": 0.01, "answer": None}
        assert client.get(path).json()["head"] == 51
        assert len(client.get(f"{path}/journal").json()["events"]) == 51
        assert client.get(f"{path}/history").json()["points"]
        with ThreadPoolExecutor(4) as pool:
            asks = [pool.submit(client.post, f"{path}/pulls", json={"n": 5}) for _ in range(4)]
            ids = [pull["id"] for ask in asks for pull in ask.result().json()["pulls"]]
        assert len(set(ids)) == 20
        # None of it was computed here.
        kept = client.app.state.studies._open.values()
        assert [study._replica._state for study in kept] == [None, None]
    assert sx.Study.open(store, "there").verify()
