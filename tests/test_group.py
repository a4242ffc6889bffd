"""Requests that share a transaction: decided as one after the other, acknowledged when flushed."""

import asyncio
import re
import signal
import threading
import time
from functools import partial

import pytest

import simplexplore as sx
import workers
from servers import Process
from service_client import until
from simplexplore.errors import ConflictError, PullError, SettingError, StoreError
from simplexplore.service import commit_queue
from simplexplore.service.open_studies import OpenStudies
from simplexplore.service.worker_processes import WorkerProcesses
from simplexplore.service.worker_threads import WorkerThreads
from simplexplore.study import replica
from simplexplore.study.group import Request, commit, may_go_with_others
from simplexplore.study.pulls import Reward
from simplexplore.study.replica import Replica
from simplexplore.study.state import State
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from stores import sqlite_at_night


def asking(n=1, key=None):
    return Request(partial(Study.ask, n=n, key=key), n, [] if key is None else [key])


def telling(*rewards):
    keys = [one.key for one in rewards if one.key is not None]
    return Request(partial(Study.tell_many, rewards=rewards), len(rewards), keys)


@pytest.fixture
def study(url):
    store = Store(url, clock=lambda: 1_000_000.0)
    return Study.create(store, "mix", workers.star(), "ctns", expire_after=None)


def one_by_one(study, requests):
    outcomes = []
    for request in requests:
        try:
            outcomes.append(request.work(study))
        except sx.SimplexploreError as error:
            outcomes.append(error)
    return outcomes


def requests(study, round_):
    """Asks and tells, some repeated and some wrong, about what was asked for before."""
    first, second, third = study.pending()[-3:]
    return [
        asking(2, f"ask {round_}"),
        telling(Reward(0.5, first.id)),
        telling(Reward(0.5, first.id)),  # again
        telling(Reward(0.75, first.id)),  # and another number
        asking(3, f"ask {round_}"),  # another request under a key of this group
        asking(2, f"ask {round_}"),  # the same one
        telling(Reward(0.1, arm="a", key=f"told {round_}")),
        telling(Reward(0.1, arm="a", key=f"told {round_}"), Reward(0.2, arm="d", key="new")),
        telling(Reward(0.3, second.id), Reward(0.3, third.id[:-4] + "zzzz")),  # all or none
        telling(Reward(0.4, second.id), Reward(0.4, third.id)),
        telling(Reward(0.4, "nonsense")),
        asking(),
    ]


def in_words(outcome, study):
    """A result or an error without what differs between two studies."""
    if isinstance(outcome, Exception):
        ids = rf"{study._replica.ids.code}-(\d+)-\w{{4}}"
        return type(outcome), re.sub(ids, r"\1", str(outcome)).replace(study.name, "NAME")
    return [{**vars(one), "id": None, "pull": None} for one in outcome]


def without_ids(events):
    return [{name: value for name, value in one.items() if name != "pull"} for one in events]


def test_a_group_is_its_requests_one_after_the_other(study):
    twin = Study.create(study.store, "twin", workers.star(), "ctns", expire_after=None)
    for one in (study, twin):
        one.tell_many([Reward(0.5, arm=arm) for arm in workers.MEANS])  # points of the history
        one.ask(3)
    for round_ in range(4):
        grouped = commit(study, requests(study, round_))
        apart = one_by_one(twin, requests(twin, round_))
        assert [in_words(x, study) for x in grouped] == [in_words(x, twin) for x in apart]
        refused = [type(one) for one in grouped if isinstance(one, Exception)]
        assert refused == [ConflictError, ConflictError, PullError, PullError]
        assert grouped[5] == grouped[0]
        assert grouped[2][0].outcome == "repeated"
    assert without_ids(study.events()) == without_ids(twin.events())
    assert study.history() == twin.history()
    rows = {row["name"]: {**row, "name": None} for row in Study.list(study.store)}
    assert rows["mix"] == rows["twin"]
    assert study.verify()
    assert Study.open(Store(study.store.url), "mix").verify()


def test_one_transaction_and_one_flush(study, monkeypatch):
    happened = []
    append, flush = Store.append, Store.flush
    monkeypatch.setattr(
        Store, "append", lambda *a, **k: happened.append("append") or append(*a, **k)
    )
    monkeypatch.setattr(Store, "flush", lambda self: happened.append("flush") or flush(self))
    assert [len(pulls) for pulls in commit(study, [asking(2, "x"), asking(), asking()])] == [
        2,
        1,
        1,
    ]
    assert happened == ["append", "flush"]


def test_nothing_is_acknowledged_that_was_not_flushed(study, monkeypatch):
    def fail(_):
        raise StoreError("the disk failed")

    monkeypatch.setattr(Store, "flush", fail)
    outcomes = commit(study, [asking(1, "x"), asking(1, "y")])
    assert [type(one) for one in outcomes] == [StoreError, StoreError]


@pytest.mark.parametrize("failure", [RuntimeError, SettingError])
def test_one_that_breaks_off_half_way(study, monkeypatch, failure):
    """What it had decided is forgotten, and the others are done without it."""
    decide = State.decide

    def breaking(self, proposed, *rest):
        recorded = decide(self, proposed, *rest)
        if proposed[0].key == "bad":
            raise failure("half-way")
        return recorded

    monkeypatch.setattr(State, "decide", breaking)
    outcomes = commit(study, [asking(1, "good"), asking(1, "bad"), asking(2, "better")])
    assert [len(outcomes[0]), type(outcomes[1]), len(outcomes[2])] == [1, failure, 2]
    assert [event["key"] for event in study.events()] == ["good", "better", "better"]
    assert study.ask(1, key="good") == outcomes[0]
    assert study.verify()


def test_groups_of_several_servers(study, url):
    """Two programs that write groups to one study decide one after the other."""
    told = []

    def serve(who):
        own = Study.open(Store(url), "mix")
        for turn in range(10):
            asked = commit(own, [asking(2, f"{who} {turn} {i}") for i in range(3)])
            rewards = [Reward(0.5, pull.id) for pulls in asked for pull in pulls]
            commit(own, [telling(one) for one in rewards])
            told.extend((one.pull, one.reward) for one in rewards)

    threads = [threading.Thread(target=serve, args=(who,)) for who in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 2 * 10 * 6
    assert workers.is_sound(study, told)


def watched_groups(monkeypatch, seconds=0.0):
    """How many requests each group of a service had in the end; each is written for some time."""
    sizes = []

    def watched(study, requests, more, *, flushing):
        time.sleep(seconds)
        outcomes = commit(study, requests, more, flushing=flushing)
        sizes.append(len(requests))
        return outcomes

    monkeypatch.setattr(commit_queue, "commit", watched)
    return sizes


def test_who_comes_while_others_are_waited_for_joins(study, url, monkeypatch):
    """The lock is another program's: when that is done, all that wait go together."""
    sizes = watched_groups(monkeypatch)
    # On a busy machine: what took long lately is decided before the lock is there, without others.
    monkeypatch.setattr(replica, "_LONG", 60.0)
    transact, begun = Replica.transact, threading.Event()
    monkeypatch.setattr(Replica, "transact", lambda *a, **k: begun.set() or transact(*a, **k))

    async def late():
        threads, processes = WorkerThreads(), WorkerProcesses()
        studies = OpenStudies(Store(url), threads, processes)
        await studies.commit("token", "mix", asking(1, "before"))
        begun.clear()
        with study.store.writing() as connection:
            study.store.lock(connection, 1, 0)
            waiting = [asyncio.ensure_future(studies.commit("token", "mix", asking(1, "first")))]
            while not begun.is_set():
                await asyncio.sleep(0.001)
            more = [asking(2, "second"), asking(3, "before"), asking(1, "first")]
            waiting += [asyncio.ensure_future(studies.commit("token", "mix", x)) for x in more]
            await asyncio.sleep(0.05)
        found = await asyncio.gather(*waiting, return_exceptions=True)
        threads.close()
        processes.close()
        return found

    first, second, wrong, again = asyncio.run(late())
    assert sizes == [1, 4]
    assert first == again
    assert [pull.id for pull in first + second] == [pull.id for pull in study.pending()[1:]]
    assert type(wrong) is ConflictError
    assert study.verify()


def test_the_service_commits_in_groups(study, url, monkeypatch):
    """Requests that come while others are written share the next transaction, in their order."""
    sizes = watched_groups(monkeypatch, seconds=0.1)  # or a busy machine takes them one by one

    async def many():
        threads, processes = WorkerThreads(), WorkerProcesses()
        studies = OpenStudies(Store(url), threads, processes)
        # Those who come while it is being opened may be overtaken by those who find it open.
        await studies.commit("token", "mix", asking(1, "opens it"))
        wanted = [asking(1, f"k{i}") for i in range(20)]
        wanted[7] = asking(0, "k7")
        found = await asyncio.gather(
            *(studies.commit("token", "mix", one) for one in wanted), return_exceptions=True
        )
        threads.close()
        processes.close()
        return found

    found = asyncio.run(many())
    assert [type(one) for one in found].index(SettingError) == 7
    del found[7]
    assert [pull.id for (pull,) in found] == [pull.id for pull in study.pending()[1:]]
    assert sum(sizes) == 1 + 20
    assert len(sizes) < 10


NAMES = ("one", "two", "three")


def asked_of_all(url, monkeypatch, flush=Store.flush):
    """Outcomes of six asks of three studies that wait together, and what happened meanwhile."""
    happened, append = [], Store.append
    sizes = watched_groups(monkeypatch, seconds=0.1)
    monkeypatch.setattr(replica, "_LONG", 60.0)

    async def many():
        threads, processes = WorkerThreads(), WorkerProcesses()
        store = Store(url)
        for name in NAMES:
            Study.create(store, name, workers.star(), "ctns").close()
        studies = OpenStudies(store, threads, processes)
        for name in NAMES:
            await studies.commit("token", name, asking(1, "opens it"))
        first = asyncio.ensure_future(studies.commit("token", "one", asking(1, "first")))
        await asyncio.sleep(0)
        sizes.clear()
        monkeypatch.setattr(
            Store, "append", lambda *a, **k: happened.append("append") or append(*a, **k)
        )
        monkeypatch.setattr(Store, "flush", lambda self: happened.append("flush") or flush(self))
        found = await asyncio.gather(
            *(studies.commit("token", name, asking(2, key)) for key in "xy" for name in NAMES),
            return_exceptions=True,
        )
        await asyncio.gather(first, return_exceptions=True)
        threads.close()
        processes.close()
        return found

    return asyncio.run(many()), happened, sizes


def test_studies_in_a_sqlite_file_share_a_flush(sqlite_url, monkeypatch):
    found, happened, sizes = asked_of_all(sqlite_url, monkeypatch)
    # Whoever came first, with the next one, who was of the same study; then all others, by study.
    assert sizes == [2, 2, 2, 1]
    assert happened == ["append", "flush", "append", "append", "append", "flush"]
    for i, name in enumerate(NAMES):
        study = Study.open(sqlite_url, name)
        asked = [pull.id for pull in study.pending()]
        assert asked[-4:] == [pull.id for pull in found[i] + found[3 + i]]
        assert study.verify()


def test_no_study_is_answered_before_the_flush(sqlite_url, monkeypatch):
    def fail(_):
        raise StoreError("the disk failed")

    found, *_ = asked_of_all(sqlite_url, monkeypatch, fail)
    assert [type(one) for one in found] == 6 * [StoreError]


def test_who_takes_long_goes_alone(study):
    quick, slow = asking(3), asking(replica._MANY_EVENTS)
    assert not may_go_with_others(study, quick)  # its journal is not read yet
    study.ask()
    assert may_go_with_others(study, quick) == study.store.is_sqlite
    assert not may_go_with_others(study, slow)


@sqlite_at_night
def test_a_service_killed_while_it_writes_groups(url, tmp_path):
    """What clients were told is in the journal, and they go on with the next server."""
    study = Study.create(url, "mix", workers.star(), "ctns")
    study.ask()

    def written():
        return [log.stat().st_size if log.exists() else 0 for log in crew.logs]

    def wait_until_all_were_answered():
        before = written()
        until(lambda: all(x < y for x, y in zip(before, written(), strict=True)))

    served = Process(url, tmp_path / "log")
    crew = workers.Crew(served.url, "mix", 8, 1, 120.0, tmp_path)
    wait_until_all_were_answered()
    served.stop(signal.SIGKILL)
    with Process(url, tmp_path / "log", served.port):
        wait_until_all_were_answered()
        crew.stop()
        assert len(crew.wait()) == 8
    assert workers.is_sound(study, workers.acknowledged(crew.logs))
