"""Webhooks: what is said when, to whom, and to whom never."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import simplexplore as sx
from service_client import refused, serving, until
from simplexplore.service import webhooks as saying
from simplexplore.study import webhooks
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from simplexplore.study.webhooks import Webhook
from workers import star


@pytest.fixture
def receiver():
    """A server that listens to messages; `answers` are the next statuses, then 200."""
    got, answers = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, json.loads(body)))
            self.send_response(answers.pop(0) if answers else 200)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    server.got, server.answers = got, answers
    server.url = f"http://127.0.0.1:{server.server_port}/hook?x=1"
    yield server
    server.shutdown()
    server.server_close()


def finish(study):
    """Tell what settles a study at once."""
    for arm in ("b", "c", "e"):
        study.tell(arm=arm, reward=0.0)
    while not study.stopped:
        for arm in ("a", "d"):
            study.tell(arm=arm, reward=50.0)


def test_what_is_news(url, clock):
    store = Store(url, clock=clock)
    study = Study.create(store, "mix", star(delta=0.1))
    webhooks.put(store, "mix", Webhook("https://example.org", 100.0))
    assert webhooks.find(store, "mix") == Webhook("https://example.org", 100.0, None)
    pull = study.ask()[0]
    assert webhooks.news(store) == []
    clock.now += 101
    stalled = webhooks.news(store)
    assert [(one.name, one.event) for one in stalled] == [("mix", "stalled")]
    # Of several servers one says it, once.
    assert [webhooks.claim(store, one) for one in stalled * 2] == [True, False]
    assert webhooks.news(store) == []
    study.tell(pull, 0.0)
    clock.now += 200
    assert webhooks.news(store) == []  # nothing is pending
    study.ask()
    assert webhooks.news(store) == []  # somebody has begun again just now
    clock.now += 101
    assert [one.event for one in webhooks.news(store)] == ["stalled"]
    study.pause()
    assert webhooks.news(store) == []
    study.resume()
    assert webhooks.news(store) == []
    finish(study)
    stopped = webhooks.news(store)
    assert [one.event for one in stopped] == ["stopped"]
    assert webhooks.claim(store, stopped[0])
    study.tell(arm="a", reward=1.0)
    assert webhooks.news(store) == []  # later rewards change nothing
    study.extend(1e-300)
    assert webhooks.claim(store, webhooks.news(store)[0])  # it goes on, which is only remembered
    finish(study)
    assert [one.event for one in webhooks.news(store)] == ["stopped"]
    webhooks.put(store, "mix", None)
    assert webhooks.find(store, "mix") is None
    assert webhooks.news(store) == []


def test_it_is_said(sqlite_url, receiver, monkeypatch):
    monkeypatch.setattr(saying, "LOOK_INTERVAL", 0.05)
    monkeypatch.setattr(saying, "ATTEMPTS", (0.0, 0.0))
    from starlette.testclient import TestClient

    from simplexplore.service.app import make_app

    study = Study.create(sqlite_url, "mix", star(delta=0.1))
    receiver.answers += [500]
    app = make_app(sqlite_url, webhooks_anywhere=True)
    with TestClient(app, base_url="http://localhost") as client:
        path = "/v1/studies/mix/webhook"
        body = {"url": receiver.url, "stall_after": 3600.0}
        assert client.post(path, json=body).status_code == 204
        assert client.get(path).json() == body | {"trouble": None}
        finish(study)
        until(lambda: len(receiver.got) == 2)  # the second attempt
        (where, said), again = receiver.got
        assert again[1]["text"] == said["text"]
        assert where == "/hook?x=1"
        assert (said["study"], said["event"]) == ("mix", "stopped")
        assert said["text"] == f"mix: {study.answer_in_words}"
        # Not to be reached, it says so; a redirect leads nowhere.
        receiver.answers += [302, 302]
        study.extend(1e-300)
        finish(study)
        until(lambda: client.get(path).json()["trouble"])
        assert client.get(path).json()["trouble"] == "'127.0.0.1' answered with status 302."
        assert {where for where, _ in receiver.got} == {"/hook?x=1"}
        assert client.post(path, json={"url": ""}).status_code == 204
        assert client.get(path).json()["url"] == ""


def test_the_own_network_is_left_alone(receiver, monkeypatch):
    for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]"):
        address = f"http://{host}:{receiver.server_port}/"
        with pytest.raises(sx.SettingError, match=r"a network of the server's own|no host"):
            saying.deliver(address, {})
    # What the name means when it is checked is where the message goes.
    asked = []

    def resolve(host, port, **_):
        asked.append(host)
        return [(2, 1, 6, "", ("93.184.216.34" if len(asked) == 1 else "127.0.0.1", port))]

    monkeypatch.setattr(saying.socket, "getaddrinfo", resolve)
    reached = []

    class Pool:
        def __init__(self, host, port, **_):
            reached.append((host, port))

        def __enter__(self):
            raise saying.urllib3.exceptions.NewConnectionError(None, "nobody there")

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(saying.urllib3, "HTTPSConnectionPool", Pool)
    with pytest.raises(sx.SettingError, match="could not be reached"):
        saying.deliver("https://rebinding.example/x", {})
    assert (asked, reached) == (["rebinding.example"], [("93.184.216.34", 443)])
    with pytest.raises(sx.SettingError, match="a network of the server's own"):
        saying.deliver("https://rebinding.example/x", {})
    assert receiver.got == []


@pytest.mark.parametrize(
    "address",
    [
        *("10.0.0.1", "172.16.9.9", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("127.8.8.8", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0"),
        *("fc00::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001:db8::1"),
    ],
)
def test_addresses_that_are_not_public(address):
    assert not saying.is_public(address)


def test_addresses_that_cannot_be(sqlite_url):
    Study.create(sqlite_url, "mix", star())
    with serving(sqlite_url) as client:
        for address in (
            "ftp://example.org",
            "example.org",
            "https://",
            "https://user:secret@example.org",
            "https://example.org:99999999/",
            "http://exa mple.org/",
            "file:///etc/passwd",
        ):
            body = {"url": address}
            answer = client.post("/v1/studies/mix/webhook", json=body)
            refused(answer, 422, "setting", "a webhook is an address such as https://")
