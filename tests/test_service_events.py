"""Changes that are pushed to those who watch."""

import contextlib
import http.client
import threading
import time

import pytest

import simplexplore as sx
from servers import Thread
from service_client import bearer, new_token, revoke, until, watch
from workers import star


def test_changes_are_pushed(url):
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


def test_streams_of_a_token_have_an_end(sqlite_url):
    """One token cannot take the streams of all others, and has its own back when it closes some."""
    sx.Study.create(sqlite_url, "mix", star())
    greedy, other = (bearer(new_token(sqlite_url)[1]) for _ in range(2))
    with Thread(sqlite_url) as running, contextlib.ExitStack() as held:

        def opened(token):
            one = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
            held.callback(one.close)
            one.request("GET", "/v1/studies/mix/events", headers=token)
            response = one.getresponse()
            held.callback(response.close)
            return response

        for _ in range(50):
            assert opened(greedy).status == 200
        refused = opened(greedy)
        assert refused.status == 503
        assert refused.headers["Retry-After"] == "10"
        assert b"this token has too many event streams open" in refused.read()
        assert opened(other).status == 200
        held.close()
        until(lambda: opened(greedy).status == 200)


def test_watchers_go_when_their_token_does(sqlite_url):
    sx.Study.create(sqlite_url, "mix", star())
    token, text = new_token(sqlite_url)
    with Thread(sqlite_url) as running:
        seen = []
        arguments = running.port, "/v1/studies/mix/events", 9, bearer(text), seen
        watcher = threading.Thread(target=watch, args=arguments)
        watcher.start()
        until(lambda: seen)
        time.sleep(0.5)
        assert watcher.is_alive()
        revoke(sqlite_url, token)
        watcher.join(60)
        assert not watcher.is_alive()
