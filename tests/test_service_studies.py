"""The service: every path, every refusal, nothing that a stranger could use."""

import asyncio
import contextlib
import http.client
import json
import logging
import re
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest
import uvicorn
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient
from typer.testing import CliRunner

import simplexplore as sx
from servers import Process, Thread
from simplexplore.cli import app as cli
from simplexplore.protocol import MAX_BODY
from simplexplore.service import desk, gate, logs, problems, server, tokens
from simplexplore.service.app import make_app
from simplexplore.service.metrics import Metrics
from simplexplore.study.store import Store
from workers import star

STAR = star(delta=0.1).to_text()


@contextlib.contextmanager
def serving(store):
    with TestClient(make_app(store), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def client(sqlite_url):
    """A service without tokens, as one uses it on one's own machine."""
    with serving(sqlite_url) as client:
        yield client


@pytest.fixture
def study(client):
    assert client.post("/v1/studies", json={"name": "mix", "problem": STAR}).status_code == 201
    return "/v1/studies/mix"


def refused(response, status, kind, words):
    """Check that a response is a problem document of a certain kind."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["type"] == (kind if ":" in kind else f"urn:simplexplore:{kind}")
    assert document["status"] == status
    assert re.search(words, document["detail"]), document["detail"]
    return document


# ---------------------------------------------------------------------- studies


def test_a_first_round(client, study):
    pulls = client.post(f"{study}/pulls", json={"n": 5}).json()["pulls"]
    assert [pull["arm"] for pull in pulls] == list("abcde")
    rewards = [{"pull": pull["id"], "reward": 0.5} for pull in pulls]
    told = client.post(f"{study}/rewards", json={"rewards": rewards}).json()["rewards"]
    assert {one["outcome"] for one in told} == {"told"}
    again = client.post(f"{study}/rewards", json={"rewards": rewards}).json()["rewards"]
    assert {one["outcome"] for one in again} == {"repeated"}
    status = client.get(f"{study}/status").json()
    assert (status["rewards"], status["pending"]) == (5, 0)
    assert status["answer_in_words"] == "No answer yet."
    assert client.post(f"{study}/notes", json={"text": "a remark"}).status_code == 204
    events = client.get(f"{study}/journal").json()["events"]
    assert [event["event"] for event in events] == ["asked"] * 5 + ["told"] * 5 + ["noted"]
    assert client.get(f"{study}/journal", params={"after": 9, "limit": 1}).json()["events"] == [
        events[9]
    ]
    points = client.get(f"{study}/history").json()["points"]
    assert points[-1]["rewards"] == 5
    assert client.post(f"{study}/verification").json() == {"sound": True}
    listed = client.get("/v1/studies").json()["studies"]
    assert [(one["name"], one["rewards"]) for one in listed] == [("mix", 5)]
    assert client.get(study).json()["problem"] == STAR


def test_nothing_says_where_the_store_is(client, study, tmp_path):
    answers = [
        client.get(path).text
        for path in (study, f"{study}/status", "/v1/studies/none", "/v1/studies", "/metrics")
    ]
    assert not [text for text in answers if str(tmp_path) in text]
    refused(client.get("/v1/studies/none"), 404, "unknown-study", "no study 'none' in the store")


def test_names_are_only_names(client):
    for name in (
        "a/b",
        "a%2Fb",
        "../../etc/passwd",
        "<script>alert(1)</script>",
        "ä ? # & ;",
        "🙂",
    ):
        body = {"name": name, "problem": STAR}
        assert client.post("/v1/studies", json=body).json()["name"] == name
    with sx_client(client) as service:
        for one in client.get("/v1/studies").json()["studies"]:
            assert service.open(one["name"]).status()["name"] == one["name"]
    body = {"name": "..", "problem": STAR}
    refused(client.post("/v1/studies", json=body), 422, "setting", "cannot be called")
    assert client.get("/v1/studies/%ff").status_code == 404


@contextlib.contextmanager
def sx_client(client):
    """Our own client over a test client, to check that it writes addresses as needed."""
    service = sx.connect("http://localhost")

    def send(method, path, content, headers, _into):
        answer = client.request(method, f"/v1{path}", content=content, headers=headers)
        return answer.status_code, 0.0, answer.content

    service._send = send
    yield service


def test_export(client, study):
    pulls = client.post(f"{study}/pulls", json={"n": 2}).json()["pulls"]
    text = client.get(f"{study}/export").text
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == [pull["id"] for pull in pulls]
    as_json = client.get(f"{study}/export", params={"format": "json"})
    assert len(as_json.json()["pulls"]) == 2
    assert 'filename="mix.json"' in as_json.headers["content-disposition"]
    refused(client.get(f"{study}/export?format=xml"), 422, "setting", "query.format")


def test_an_answer(client):
    body = {"name": "easy", "problem": 'arms = ["a", "b"]\ndelta = 0.1', "sampler": "uniform"}
    client.post("/v1/studies", json=body)
    rewards = [{"arm": arm, "reward": 9.0 * (arm == "a")} for arm in "ab" * 10]
    told = client.post("/v1/studies/easy/rewards", json={"rewards": rewards}).json()["rewards"]
    assert told[-1]["stopped"]
    answer = refused(
        client.post("/v1/studies/easy/pulls", json={}), 409, "stopped", "The answer.*a alone"
    )
    assert answer["title"] == "stopped"
    assert "a alone" in client.get("/v1/studies/easy").json()["answer_in_words"]
    assert client.get("/v1/studies").json()["studies"][0]["progress"] == 1
    extended = client.post("/v1/studies/easy/extension", json={"delta": 1e-30}).json()
    assert extended == {"delta": 1e-30, "answer": extended["answer"]}


def test_keys(client):
    def twice(path, body, key):
        answers = [client.post(path, json=body, headers={"Idempotency-Key": key}) for _ in range(2)]
        assert answers[0].status_code == answers[1].status_code < 300, answers[1].text
        return [answer.content for answer in answers]

    first, second = twice("/v1/studies", {"name": "mix", "problem": STAR}, "new")
    assert first == second
    first, second = twice("/v1/studies/mix/pulls", {"n": 3}, "three")
    assert first == second
    _, second = twice(
        "/v1/studies/mix/rewards", {"rewards": [{"arm": "a", "reward": 1.0}] * 2}, "told"
    )
    assert [one["outcome"] for one in json.loads(second)["rewards"]] == ["repeated"] * 2
    first, second = twice("/v1/studies/mix/extension", {"delta": 0.01}, "smaller")
    assert first == second
    twice("/v1/studies/mix/notes", {"text": "once"}, "noted")
    events = client.get("/v1/studies/mix/journal").json()["events"]
    kinds = [event["event"] for event in events]
    assert kinds == ["asked"] * 3 + ["elsewhere"] * 2 + ["extended", "noted"]
    other = client.post(
        "/v1/studies/mix/pulls", json={"n": 4}, headers={"Idempotency-Key": "three"}
    )
    refused(other, 409, "conflict", "used for another request")
    spaced = client.post("/v1/studies/mix/pulls", json={}, headers={"Idempotency-Key": "a b"})
    refused(spaced, 422, "setting", "Idempotency-Key")


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("a + b <= 0.5", "a + z <= 0.5", 11, "unknown arm 'z'"),
        ("delta = 0.1", "delta = 7", 3, "strictly between 0 and 1"),
        ("delta = 0.1", "delta = ", 3, "not valid TOML"),
        ('"gaussian"', '"gausian"', 7, "did you mean 'gaussian'"),
        ("sigma = 1", "sgma = 1", 8, "did you mean 'sigma'"),
        ("a + b <= 0.5", "a + b >= 2", 11, "cannot hold"),
    ],
)
def test_errors_at_the_line(client, old, new, line, words):
    text = STAR.replace(old, new)
    text = (
        text if "means" in text else text.replace("scenario", "means = [1, 2, 3, 4, 5]\nscenario")
    )
    assert text != STAR
    line = next(
        i for i, one in enumerate(text.splitlines(), 1) if new.split()[0] in one and new in one
    )
    for path, body in (("/v1/bound", {}), ("/v1/studies", {"name": "wrong"})):
        answer = client.post(path, json={"problem": text, **body})
        assert re.search(words, answer.json()["detail"])
        assert (answer.status_code, answer.json()["line"]) == (422, line)


def test_bound_before_a_study(client):
    known = star(delta=0.1, means=[1.0, 0.5, 0.4, 0.95, 0.8])
    answer = client.post("/v1/bound", json={"problem": known.to_text()}).json()
    bound = sx.lower_bound(known)
    assert answer["bound"]["policy"] == bound.policy.tolist()
    assert answer["bound"]["scenarios"]["anytime"]["lower_bound"] == bound.samples
    assert answer["headline"].startswith(f"At least {bound.samples:.4g} samples")
    unknown = client.post("/v1/bound", json={"problem": STAR}).json()
    assert unknown["bound"] is None
    assert "gives no means" in unknown["headline"]
    tied = client.post("/v1/bound", json={"problem": STAR, "means": [1.0] * 5}).json()
    assert tied["bound"]["scenarios"]["anytime"]["lower_bound"] == float("inf")


def test_what_does_not_fit(client, study):
    for body, where in (
        ({"rewards": [{"reward": "1", "pull": "x"}]}, r"body\.rewards\.0\.reward"),
        ({"rewards": [{"reward": 1, "pul": "x"}]}, r"body\.rewards\.0\.pul"),
        ({"rewards": [{"reward": True, "pull": "x"}]}, r"body\.rewards\.0\.reward"),
        ({"rewards": [{"reward": 1, "arm": "a\0"}]}, "NUL"),
        ({}, r"body\.rewards: Field required"),
        ([], "body"),
    ):
        refused(client.post(f"{study}/rewards", json=body), 422, "setting", where)
    for text, status in ((b"{", 422), (b'"\xff"', 400), (b"\xff", 400)):
        headers = {"Content-Type": "application/json"}
        assert client.post(f"{study}/rewards", content=text, headers=headers).status_code == status
    nan = client.post(
        f"{study}/rewards",
        content='{"rewards": [{"arm": "a", "reward": NaN}]}',
        headers={"Content-Type": "application/json"},
    )
    refused(nan, 422, "reward", "finite numbers; got nan")
    refused(client.post(f"{study}/pulls", json={"n": 10_001}), 422, "setting", "less than or equal")
    two = {"rewards": [{"arm": "a", "reward": 1.0}, {"arm": "q", "reward": 1.0}]}
    refused(client.post(f"{study}/rewards", json=two), 422, "setting", "reward 2: there is no arm")
    assert client.get(f"{study}/journal").json()["events"] == []
    refused(client.get("/nothing"), 404, "about:blank", "Not Found")
    refused(client.delete(study), 405, "about:blank", "Method Not Allowed")


def test_a_program_that_fails_says_nothing_of_itself(client, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("secret reason")

    monkeypatch.setattr(sx.Study, "list", staticmethod(fail))
    with caplog.at_level(logging.INFO, logs.LOGGER.name):
        answer = client.get("/v1/studies")
    refused(answer, 500, "service", "its log says why")
    assert "secret reason" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "secret reason" in caplog.text


def test_a_store_that_is_gone(tmp_path):
    path = tmp_path / "gone.db"
    with serving(path) as client:
        assert client.get("/health").json()["status"] == "ok"
        client.app.state.desk.store.close()
        for file in tmp_path.iterdir():
            file.unlink()
        path.mkdir()
        answer = client.get("/v1/studies")
        refused(answer, 503, "store", "the store")
        assert answer.headers["retry-after"]
        assert client.get("/health").status_code == 503


def test_work_that_takes_too_long(client, monkeypatch):
    monkeypatch.setattr(desk, "PATIENCE", 0.05)
    monkeypatch.setattr(sx.Study, "list", staticmethod(lambda _: time.sleep(0.5)))
    answer = client.get("/v1/studies")
    refused(answer, 503, "about:blank", "no answer within 0.05 s")
    assert answer.headers["retry-after"] == "2"


def test_work_that_was_given_up_still_counts(sqlite_url, monkeypatch):
    """However often a stuck request is repeated, it takes no more than its share of threads."""
    monkeypatch.setattr(desk, "PATIENCE", 0.05)
    most, running = 0, 0
    mutex, free = threading.Lock(), threading.Event()

    def stuck():
        nonlocal most, running
        with mutex:
            running += 1
            most = max(most, running)
        free.wait(10)
        with mutex:
            running -= 1

    async def insist():
        at = desk.Desk(Store(sqlite_url))
        for _ in range(4 * desk._HEAVY):
            with pytest.raises(HTTPException):
                await at.run(stuck, heavy=True)
        free.set()

    asyncio.run(insist())
    assert most == desk._HEAVY


# ---------------------------------------------------------------------- many studies


def test_pages_of_studies(client, monkeypatch):
    for i in range(7):
        client.post("/v1/studies", json={"name": f"s{i}", "problem": STAR})
    whole = client.get("/v1/studies").json()
    assert {*whole} == {"studies"}
    found, after = [], None
    for size in (3, 3, 1):
        page = client.get("/v1/studies", params={"limit": 3} | ({"after": after} if after else {}))
        found += page.json()["studies"]
        assert len(page.json()["studies"]) == size
        after = page.json().get("next")
        assert (after is None) == (size == 1)
    assert found == whole["studies"]
    # One that changes meanwhile moves to the front; nothing comes twice.
    first = client.get("/v1/studies?limit=3").json()
    client.post("/v1/studies/s0/pulls", json={})
    second = client.get("/v1/studies", params={"limit": 9, "after": first["next"]}).json()
    assert [one["name"] for one in second["studies"]] == ["s3", "s2", "s1"]
    assert "next" not in client.get("/v1/studies?limit=7").json()
    # Several may have changed at the same moment.
    same = [one | {"changed": 1.0} for one in whole["studies"]]
    monkeypatch.setattr(sx.Study, "list", staticmethod(lambda _: same))
    first = client.get("/v1/studies?limit=4").json()
    second = client.get("/v1/studies", params={"limit": 4, "after": first["next"]}).json()
    assert sorted(one["name"] for one in first["studies"] + second["studies"]) == [
        f"s{i}" for i in range(7)
    ]
    for query in ("limit=0", "limit=10001", "after=x", "after=1.0", "after=nan:s1"):
        refused(client.get(f"/v1/studies?{query}"), 422, "setting", "query")


# ---------------------------------------------------------------------- access


ROLES = {
    ("GET", "/v1/setup"): "read",
    ("POST", "/v1/bound"): "run",
    ("GET", "/v1/studies"): "read",
    ("POST", "/v1/studies"): "run",
    ("GET", "/v1/studies/{name}"): "read",
    ("POST", "/v1/studies/{name}/pulls"): "run",
    ("POST", "/v1/studies/{name}/rewards"): "run",
    ("GET", "/v1/studies/{name}/status"): "read",
    ("GET", "/v1/studies/{name}/history"): "read",
    ("GET", "/v1/studies/{name}/journal"): "read",
    ("POST", "/v1/studies/{name}/notes"): "run",
    ("POST", "/v1/studies/{name}/extension"): "admin",
    ("POST", "/v1/studies/{name}/verification"): "admin",
    ("GET", "/v1/studies/{name}/export"): "read",
    ("GET", "/v1/studies/{name}/events"): "read",
    ("GET", "/metrics"): "read",
}
BODIES = {
    "/v1/bound": {"problem": STAR},
    "/v1/studies": {"name": "new", "problem": STAR},
    "/v1/studies/{name}/rewards": {"rewards": []},
    "/v1/studies/{name}/notes": {"text": "x"},
    "/v1/studies/{name}/extension": {"delta": 0.5},
}


def test_every_path_has_its_role(sqlite_url, monkeypatch):
    monkeypatch.setattr(tokens, "REMEMBERED", 0.0)
    store = Store(sqlite_url)
    texts = {role: tokens.create_token(store, role)[1] for role in ("read", "run", "admin")}
    revoked, text = tokens.create_token(store, "admin")
    tokens.revoke_token(store, revoked.id)
    strangers = {"none": None, "wrong": f"sx_{revoked.id}_{'x' * 43}", "revoked": text, "odd": "'"}
    order = list(texts)
    with serving(store) as client:
        paths = client.get("/v1/openapi.json").json()["paths"]
        documented = {(m.upper(), path) for path, methods in paths.items() for m in methods}
        assert documented | {("GET", "/metrics")} == set(ROLES)  # no path without a role
        for (method, path), needed in ROLES.items():
            address = path.replace("{name}", "none")
            body = {"json": BODIES.get(path, {})} if method == "POST" else {}
            for who, text in (strangers | texts).items():
                headers = {} if text is None else {"Authorization": f"Bearer {text}"}
                answer = client.request(method, address, headers=headers, **body)
                if who in strangers:
                    refused(answer, 401, "access", "token")
                    assert answer.headers["www-authenticate"] == "Bearer"
                elif order.index(who) < order.index(needed):
                    refused(answer, 403, "access", f"role '{needed}'; yours has the role '{who}'")
                else:
                    assert answer.status_code not in (401, 403), (method, path, who)
        # The page itself holds nothing, and whether the service works is no secret.
        for path in ("/", "/health", "/v1/openapi.json"):
            assert client.get(path).status_code == 200
        basic = client.get("/v1/studies", headers={"Authorization": "Basic YTpi"})
        assert basic.status_code == 401


def test_a_revoked_token_is_forgotten(sqlite_url, monkeypatch):
    monkeypatch.setattr(tokens, "REMEMBERED", 0.2)
    store = Store(sqlite_url)
    token, text = tokens.create_token(store, "read")
    with serving(store) as client:
        client.headers["Authorization"] = f"Bearer {text}"
        assert client.get("/v1/studies").status_code == 200
        tokens.revoke_token(store, token.id)
        time.sleep(0.25)
        assert client.get("/v1/studies").status_code == 401
        del client.headers["Authorization"]
        assert client.get("/v1/studies").status_code == 401  # closed for good


def test_tokens_outlast_a_power_failure(sqlite_url, monkeypatch):
    """A revoked token must not come back with the lights."""
    store = Store(sqlite_url)
    flushed = []
    monkeypatch.setattr(store, "flush", lambda: flushed.append(tokens.list_tokens(store)))
    token, _ = tokens.create_token(store, "read")
    assert flushed.pop() == [token]
    tokens.revoke_token(store, token.id)
    assert flushed.pop()[0].revoked is not None


def test_secrets_are_kept_nowhere(tmp_path):
    store = Store(tmp_path / "s.db")
    _, text = tokens.create_token(store, "run", "for a worker")
    store.close()
    secret = text.split("_", 2)[2]
    assert len(secret) == 43
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert secret.encode() not in kept
    assert b"for a worker" in kept


def test_without_tokens_only_this_machine(sqlite_url):
    """A page of another site may send requests here, but not under our name or as JSON."""
    with serving(sqlite_url) as client:
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost:80:80", ""):
            answer = client.get("/v1/studies", headers={"Host": host})
            refused(answer, 403, "access", "this machine's own names")
        for host in ("localhost:8080", "127.0.0.1", "[::1]:8080"):
            assert client.get("/v1/studies", headers={"Host": host}).status_code == 200
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = client.post(
                "/v1/studies",
                content=json.dumps({"name": "x", "problem": STAR}),
                headers={"Content-Type": kind},
            )
            refused(answer, 415, "about:blank", "send JSON")
        assert client.get("/v1/studies").json() == {"studies": []}
        tokens.create_token(Store(sqlite_url), "read")
        client.app.state.doorkeeper._open_until = 0.0
        assert client.get("/v1/studies").status_code == 401


def test_without_tokens_no_proxy(client):
    """A proxy may use our own name for those that it lets in from elsewhere."""
    for name in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"):
        answer = client.get("/v1/studies", headers={name: "1.1 proxy"})
        refused(answer, 403, "access", "through a proxy")


def test_headers(client):
    for path in ("/", "/v1/studies", "/nothing", "/health"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-request-id"]
        assert "access-control-allow-origin" not in headers
    assert client.get("/v1/studies").headers["cache-control"] == "no-store"


def test_tricks_with_paths(client):
    for path in (
        "/assets/../app.py",
        "/assets/%2e%2e/app.py",
        "/assets/..%2fapp.py",
        "/assets/%2fetc%2fpasswd",
        "//etc/passwd",
        "/v1/studies/mix/../../health",
        "/v1/studies/",
        "/v1//studies",
        "/v1/studies/mix/status/",
        "/v1/studies/mix%2fstatus",
        "/V1/studies",
    ):
        answer = client.build_request("GET", "http://localhost/")
        answer.url = answer.url.copy_with(raw_path=path.encode())
        assert client.send(answer).status_code == 404, path


# ---------------------------------------------------------------------- limits


def test_large_bodies(client, study):
    body = b'{"rewards": [' + b" " * MAX_BODY + b"]}"
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"{study}/rewards", content=body, headers=headers)
    refused(answer, 413, "too-large", "at most 4,194,304 bytes")

    def pieces():
        for start in range(0, len(body), 2**16):
            yield body[start : start + 2**16]

    answer = client.post(f"{study}/rewards", content=pieces(), headers=headers)
    refused(answer, 413, "too-large", "at most 4,194,304 bytes")


def test_slow_bodies_and_slow_heads(sqlite_url, monkeypatch):
    monkeypatch.setattr(gate, "BODY_PATIENCE", 0.3)
    monkeypatch.setattr(server, "_HEAD_PATIENCE", 0.3)
    head = (
        b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n"
    )
    with Thread(sqlite_url) as running:
        for sent, expected in ((head + b"\r\n{", b"HTTP/1.1 408"), (head, b""), (b"", b"")):
            with socket.create_connection(("127.0.0.1", running.port), 10) as slow:
                slow.sendall(sent)
                assert slow.recv(1000).startswith(expected)
        # One that has asked before has no more time than others.
        with socket.create_connection(("127.0.0.1", running.port), 10) as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert slow.recv(5000).startswith(b"HTTP/1.1 200")
            slow.sendall(b"GET /hea")
            while slow.recv(5000):
                pass


# ---------------------------------------------------------------------- watching


def watch(port, path, count, headers=None):
    """The first events of a stream."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers=headers or {})
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    found = []
    while len(found) < count:
        line = response.readline()
        if not line:
            break
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
    response.close()
    connection.close()
    return found


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


# ---------------------------------------------------------------------- logs and metrics


def test_logs_hold_no_secrets(sqlite_url, capfd):
    store = Store(sqlite_url)
    _, text = tokens.create_token(store, "admin")
    secret = text.split("_", 2)[2]
    logs.log_to_stderr()
    try:
        with serving(store) as client:
            client.headers["Authorization"] = f"Bearer {text}"
            client.post("/v1/studies", json={"name": "mix", "problem": STAR})
            client.get(f"/v1/studies/{text}")  # in the wrong place
            client.get("/v1/studies", params={"token": text})
            client.post("/v1/studies", json={"name": text})
            client.get("/v1/studies", headers={"Authorization": f"Bearer {text}x"})
    finally:
        logs.LOGGER.handlers = []
        logs.LOGGER.propagate = True
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["status"] for line in lines] == [201, 404, 200, 422, 401]
    assert {line["token"] for line in lines[:3]} == {text.split("_")[1]}
    assert {*lines[0]} == {
        "time",
        "level",
        "event",
        "id",
        "method",
        "path",
        "status",
        "ms",
        "token",
    }
    assert secret not in json.dumps(lines)


def test_metrics(client):
    client.post("/v1/studies", json={"name": 'a"b\\c', "problem": STAR})
    client.post("/v1/studies/a%22b%5Cc/pulls", json={"n": 3})
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = {}
    for line in answer.text.splitlines():
        if not line.startswith("#"):
            found = re.fullmatch(r'(\w+(?:\{(?:\w+="(?:[^"\\]|\\["\\n])*",?)*\})?) (\S+)', line)
            assert found, line
            values[found[1]] = float(found[2])
    assert values[r'simplexplore_study_pending{study="a\"b\\c"}'] == 3
    assert values['simplexplore_studies{state="running"}'] == 1
    route = "/v1/studies/{name}/pulls"
    requests = f'simplexplore_requests_total{{method="POST",route="{route}",status="200"}}'
    assert values[requests] == 1
    assert values[f'simplexplore_request_seconds_bucket{{route="{route}",le="+Inf"}}'] == 1


def test_strangers_invent_no_metrics(client):
    """What is counted by name stays small, whatever methods somebody thinks of."""
    for i in range(20):
        client.request(f"BREW{i}", "/v1/studies")
    text = client.get("/metrics").text
    assert "BREW" not in text
    assert 'simplexplore_requests_total{method="other",route="/v1/studies",status="405"} 20' in text


def test_time_classes_add_up():
    metrics = Metrics()
    for seconds in (0.001, 0.02, 3.0, 99.0):
        metrics.count("GET", "/", 200, seconds)
    lines = metrics.text([]).splitlines()
    counts = {
        line.partition('le="')[2].partition('"')[0]: int(line.split()[-1])
        for line in lines
        if "_bucket" in line
    }
    assert (counts["0.005"], counts["0.025"], counts["2.5"], counts["5"]) == (1, 2, 2, 3)
    assert (counts["30"], counts["+Inf"]) == (3, 4)
    assert 'simplexplore_request_seconds_count{route="/"} 4' in lines


# ---------------------------------------------------------------------- the server itself


def test_the_end_is_quiet(tmp_path):
    """Told to stop, a server finishes what it is doing and lets its watchers go."""
    sx.Study.create(tmp_path / "s.db", "mix", star())
    with Process(tmp_path / "s.db", tmp_path / "log") as running:
        watcher = threading.Thread(target=lambda: watch(running.port, "/v1/studies/mix/events", 99))
        watcher.start()
        time.sleep(1)
        started = time.monotonic()
        running.stop()
        assert time.monotonic() - started < 15
        watcher.join(10)
        assert not watcher.is_alive()
        events = [json.loads(line)["event"] for line in running.log().splitlines()]
        assert events[0] == "ready"
        assert "stopping" in events
        assert "failed" not in events


def test_told_to_stop_before_it_has_begun(sqlite_url):
    app = make_app(sqlite_url)
    early = server._Server(uvicorn.Config(app), app, lambda: None)
    early.handle_exit(signal.SIGTERM, None)
    assert early.should_exit


def test_lines_of_files():
    text = '[constraints]\n"The Net" = "a <= 1"\nb = "a >= 0"\n'
    assert problems.line_of(text, "x: constraint 'The Net': what") == 2
    assert problems.line_of(text, "x, line 7: what") == 7
    assert problems.line_of(text, "cannot hold:\n  b: a >= 0\nRelax it.") == 3
    assert problems.line_of(text, "nothing of the kind") is None


def test_glances_are_shared(sqlite_url, monkeypatch):
    """Many watchers of a study cost the store one look at a time."""
    sx.Study.create(sqlite_url, "mix", star())
    looks = []
    plain = desk.Desk._look
    monkeypatch.setattr(desk.Desk, "_look", lambda self, name: looks.append(1) or plain(self, name))

    async def many():
        at = desk.Desk(Store(sqlite_url))
        return await asyncio.gather(*(at.glance("mix") for _ in range(50)))

    assert len({one["seq"] for one in asyncio.run(many())}) == 1
    assert len(looks) == 1


def test_one_glance_at_a_time(sqlite_url, monkeypatch):
    """A slow store is not asked again before it has answered."""
    monkeypatch.setattr(desk, "GLANCE", 0.02)
    looks = []

    def slow(_, name):
        looks.append(name)
        time.sleep(0.3)
        return {}

    monkeypatch.setattr(desk.Desk, "_look", slow)

    async def many():
        at = desk.Desk(Store(sqlite_url))
        watchers = []
        for _ in range(5):
            watchers.append(asyncio.ensure_future(at.glance("mix")))
            await asyncio.sleep(0.03)
        await asyncio.gather(*watchers)

    asyncio.run(many())
    assert len(looks) == 1


# ---------------------------------------------------------------------- commands


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def test_tokens_from_the_command_line(tmp_path):
    store = tmp_path / "s.db"
    made = run("token", "create", "--role", "run", "--note", "kitchen", "--store", store, "--json")
    made = json.loads(made.stdout)
    plain = run("token", "create", "--store", store)
    assert re.fullmatch(r"sx_[0-9a-f]{8}_[\w-]{43}\n", plain.stdout)
    assert "cannot be shown again" in plain.stderr
    listed = json.loads(run("token", "list", "--store", store, "--json").stdout)["tokens"]
    assert {(one["role"], one["note"]) for one in listed} == {("run", "kitchen"), ("read", "")}
    shown = run("token", "list", "--store", store).stdout
    assert made["id"] in shown
    assert made["token"].split("_", 2)[2] not in shown
    revoked = run("token", "revoke", made["id"], "--store", store)
    assert revoked.stdout == f"Token {made['id']} (run) is revoked.\n"
    assert f"{made['id']}  run" in run("token", "list", "--store", store).stdout
    assert "(revoked)" in run("token", "list", "--store", store).stdout


def test_mistakes_on_the_command_line(tmp_path):
    store = tmp_path / "s.db"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        for arguments, words in (
            (("serve", "--store", store, "--host", "0.0.0.0"), "its store has no tokens"),
            (("serve", "--store", store, "--port", taken), "Address already in use"),
            (("serve", "--store", store, "--host", "nowhere.invalid"), "has no tokens"),
            (("serve", "--store", tmp_path / "no" / "s.db"), "there is no folder"),
            (("token", "create", "--role", "boss", "--store", store), "unknown role 'boss'"),
            (("token", "create", "--note", "a\nb", "--store", store), "note is one line"),
            (("token", "revoke", "12345678", "--store", store), "there is no token '12345678'"),
            (("token", "list", "--store", tmp_path / "none.db"), "there is no file"),
        ):
            result = run(*arguments)
            assert (result.exit_code, result.stdout) == (2, "")
            assert re.search(words, result.stderr), result.stderr
    assert "whoever is on this machine" in run("token", "list", "--store", store).stdout


def test_a_missing_extra(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "simplexplore.service.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("serve", "--store", tmp_path / "s.db")
    assert result.exit_code == 2
    assert (
        "the service needs the package 'uvicorn'; install 'simplexplore[service]'" in result.stderr
    )


def test_the_sample_study(tmp_path, monkeypatch):
    """What `make serve` shows."""
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "examples")
    import dashboard

    process, url = dashboard.start(str(tmp_path / "s.db"))
    try:
        dashboard.work(url, pause=0.0, rounds=2)
        dashboard.work(url, pause=0.0, rounds=1)  # goes on where it was
        with sx.connect(url) as service:
            assert service.open("tastings").status()["rewards"] == 9
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
