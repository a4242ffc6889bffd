"""Changes that are pushed to those who watch."""

import threading
import time

import pytest

import simplexplore as sx
from servers import Thread
from service_client import watch
from simplexplore.service import tokens
from simplexplore.study.store import Store
from workers import star


def test_changes_are_pushed(url, monkeypatch):
    monkeypatch.setattr(tokens, "REMEMBERED", 0.0)
    # Two servers on one store: what one does, the other's watchers see.
    with (
        Thread(url) as one,
        Thread(url) as two,
        sx.connect(one.url) as service,
        sx.connect(two.url) as other,
    ):
        study = service.create("a/b", star(delta=0.1))
        seen = []
        path = "/v1/studies/a%2Fb/events"
        watcher = threading.Thread(target=lambda: seen.extend(watch(two.port, path, 2)))
        watcher.start()
        time.sleep(0.7)
        study.ask(3)
        watcher.join(20)
        assert [(one["seq"], one["pending"]) for one in seen] == [(0, 0), (3, 3)]
        # Who has seen the latest waits for the next.
        late = []
        latest = {"Last-Event-ID": "3"}
        watcher = threading.Thread(target=lambda: late.extend(watch(two.port, path, 1, latest)))
        watcher.start()
        time.sleep(0.7)
        study.note("something")
        watcher.join(20)
        assert [one["seq"] for one in late] == [4]
        with pytest.raises(sx.UnknownStudyError):
            other.open("b")


def test_watchers_go_when_their_token_does(sqlite_url, monkeypatch):
    monkeypatch.setattr(tokens, "REMEMBERED", 0.0)
    store = Store(sqlite_url)
    sx.Study.create(store, "mix", star())
    token, text = tokens.create_token(store, "read")
    with Thread(sqlite_url) as running:
        done = threading.Event()

        def look():
            headers = {"Authorization": f"Bearer {text}"}
            watch(running.port, "/v1/studies/mix/events", 9, headers)
            done.set()

        threading.Thread(target=look).start()
        time.sleep(1)
        assert not done.is_set()
        tokens.revoke_token(store, token.id)
        assert done.wait(10)
