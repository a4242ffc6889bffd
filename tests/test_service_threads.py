"""Work in threads: given up when it takes too long, and shared where it can be."""

import asyncio
import threading

import pytest
from starlette.exceptions import HTTPException

import simplexplore as sx
from service_client import refused
from simplexplore.service import fair_queue, open_studies, studies, worker_threads
from simplexplore.service.open_studies import OpenStudies
from simplexplore.service.worker_processes import WorkerProcesses
from simplexplore.service.worker_threads import WorkerThreads
from simplexplore.study.store import Store
from workers import star


def test_work_that_takes_too_long(client, monkeypatch):
    monkeypatch.setattr(worker_threads, "TIMEOUT", 0.05)
    free = threading.Event()
    monkeypatch.setattr(studies, "summaries", lambda *_, **__: free.wait(60))
    answer = client.get("/v1/studies")
    free.set()
    refused(answer, 503, "about:blank", "no answer within 0.05 s")
    assert answer.headers["retry-after"] == "2"


def test_work_that_was_given_up_still_counts(monkeypatch):
    """However often a stuck request is repeated, it takes no more than its share of threads."""
    monkeypatch.setattr(worker_threads, "TIMEOUT", 0.05)
    monkeypatch.setattr(fair_queue, "WAIT", 0.05)
    most, running = 0, 0
    mutex, free = threading.Lock(), threading.Event()

    def stuck():
        nonlocal most, running
        with mutex:
            running += 1
            most = max(most, running)
        free.wait(60)
        with mutex:
            running -= 1

    async def insist():
        threads = WorkerThreads()
        for _ in range(4 * worker_threads.SHARE):
            with pytest.raises(HTTPException):
                await threads.run("hostile", stuck)
        assert await threads.run("other", lambda: "at once") == "at once"
        free.set()

    asyncio.run(insist())
    assert most == worker_threads.SHARE


def test_polls_are_shared(sqlite_url, monkeypatch):
    """Many watchers of a study cost the store one look at a time."""
    sx.Study.create(sqlite_url, "mix", star())
    looks = []
    plain = OpenStudies._look
    monkeypatch.setattr(
        OpenStudies, "_look", lambda self, name: looks.append(1) or plain(self, name)
    )

    async def many():
        studies = OpenStudies(Store(sqlite_url), WorkerThreads(), WorkerProcesses())
        return await asyncio.gather(*(studies.poll("mix") for _ in range(50)))

    assert len({one["seq"] for one in asyncio.run(many())}) == 1
    assert len(looks) == 1


def test_one_poll_at_a_time(sqlite_url, monkeypatch):
    """A slow store is not asked again before it has answered."""
    monkeypatch.setattr(open_studies, "POLL_INTERVAL", 0.02)
    looks, free = [], threading.Event()

    def slow(_, name):
        looks.append(name)
        free.wait(60)
        return {}

    monkeypatch.setattr(OpenStudies, "_look", slow)

    async def many():
        studies = OpenStudies(Store(sqlite_url), WorkerThreads(), WorkerProcesses())
        watchers = []
        for _ in range(5):
            watchers.append(asyncio.ensure_future(studies.poll("mix")))
            await asyncio.sleep(0.03)
        free.set()
        await asyncio.gather(*watchers)

    asyncio.run(many())
    assert len(looks) == 1
