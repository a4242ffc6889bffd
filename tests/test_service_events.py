"""Changes that are pushed to those who watch."""

import threading
import time

import pytest

import simplexplore as sx
from servers import Thread
from service_client import until, watch
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
        watcher = threading.Thread(target=watch, args=(two.port, path, 2, None, seen))
        watcher.start()
        until(lambda: seen)
        study.ask(3)
        watcher.join(120)
        assert [(one["seq"], one["pending"]) for one in seen] == [(0, 0), (3, 3)]
        # Who has seen the latest waits for the next.
        late = []
        latest = {"Last-Event-ID": "3"}
        watcher = threading.Thread(target=watch, args=(two.port, path, 1, latest, late))
        watcher.start()
        time.sleep(0.7)
        study.note("something")
        watcher.join(120)
        assert [one["seq"] for one in late] == [4]
        with pytest.raises(sx.UnknownStudyError):
            other.open("b")


def test_watchers_go_when_their_token_does(sqlite_url, monkeypatch):
    monkeypatch.setattr(tokens, "REMEMBERED", 0.0)
    store = Store(sqlite_url)
    sx.Study.create(store, "mix", star())
    token, text = tokens.create_token(store, "read")
    with Thread(sqlite_url) as running:
        seen = []
        headers = {"Authorization": f"Bearer {text}"}
        arguments = running.port, "/v1/studies/mix/events", 9, headers, seen
        watcher = threading.Thread(target=watch, args=arguments)
        watcher.start()
        until(lambda: seen)
        time.sleep(0.5)
        assert watcher.is_alive()
        tokens.revoke_token(store, token.id)
        watcher.join(60)
        assert not watcher.is_alive()
