"""What every request passes: headers, paths, limits on size and time."""

import contextlib
import re
import socket
import sqlite3
import time

import pytest
import urllib3

import simplexplore as sx
from servers import Process
from service_client import refused, until
from workers import star

MAX_BODY = 4 * 2**20


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A server with a study, as a user runs it."""
    folder = tmp_path_factory.mktemp("limits")
    sx.Study.create(folder / "s.db", "mix", star()).close()
    with Process(folder / "s.db", folder / "log") as running:
        running.store = folder / "s.db"
        yield running


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


def test_requests_that_take_their_time(running):
    """A body, a head, a second head, and nothing at all: each has twenty seconds."""
    head = (
        b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n"
    )
    health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        body, first, second, silent = (
            stack.enter_context(socket.create_connection(("127.0.0.1", running.port), 60))
            for _ in range(4)
        )
        body.sendall(head + b"\r\n{")
        first.sendall(head)
        second.sendall(health)
        assert whole(second).startswith(b"HTTP/1.1 200")
        second.sendall(health[:8])
        for slow, answer in ((body, b"HTTP/1.1 408"), (first, b""), (second, b""), (silent, b"")):
            with contextlib.suppress(ConnectionResetError):
                assert slow.recv(5000)[:12] == answer
            assert 15 < time.monotonic() - started < 50


def answers(port, *pieces, done=None):
    """All that a server sends until it hangs up, or until that is done; else in half a second."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), 60 if done else 0.5) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
            while not (done and done(found)):
                part = connection.recv(2**16)
                if not part:
                    return found + b"END"
                found += part
        except (BrokenPipeError, ConnectionResetError):
            return found + b"END"
        except TimeoutError:
            pass
    return found


def whole(connection):
    """An answer with its body."""
    found = b""
    while not (length := re.search(rb"(?s)content-length: (\d+).*?\r\n\r\n", found)) or len(
        found
    ) < length.end() + int(length[1]):
        found += connection.recv(2**16)
    return found


def begun(running):
    """Requests under way, beside the one that asks."""
    text = urllib3.request("GET", f"{running.url}/metrics", timeout=60).data.decode()
    return float(re.search(r"^simplexplore_requests_in_progress (\S+)$", text, re.M)[1]) - 1


def is_refused(found):
    return found.startswith(b"HTTP/1.1 400")


def never(_):
    return False


def test_requests_without_an_end(running):
    """What a parser takes in is limited, before the body as after it."""
    head = b"POST /v1/studies/mix/pulls HTTP/1.1\r\nHost: localhost\r\n"
    chunked = (
        b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    )
    for start, size, more in (
        (b"GET /", 2**16, b"a" * 5000),
        (head, 2**16, b"X: " + b"a" * 5000 + b"\r\n"),
        (head + b"X: ", 2**16, b"a" * 5000),
        (head + chunked, 2 * MAX_BODY, b"X: " + b"a" * 5000 + b"\r\n"),
    ):
        assert answers(running.port, start, *[more] * 12)[-3:] != b"END"
        times = 2 * size // len(more)
        assert answers(running.port, start, *[more] * times, done=never)[-3:] == b"END"
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    found = answers(running.port, get * 500, done=lambda x: x.count(b"HTTP/1.1 200 OK") == 500)
    assert found.count(b"HTTP/1.1 200 OK") == 500
    for hosts in (b"", b"Host: localhost\r\nHost: localhost\r\n"):
        sent = b"GET /health HTTP/1.1\r\n" + hosts + b"\r\n"
        assert is_refused(answers(running.port, sent, done=is_refused))


def test_offers_of_another_protocol(running):
    """Java's clients make one with every request, which may have a body."""
    head = (
        b"POST /v1/studies/mix/pulls HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\n"
        b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"
        b"Content-Type: application/json\r\nContent-Length: 8\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", running.port), 60) as java:
        for pieces in ((head + b'{"n": 2}',), (head, b'{"n": 3}')):
            for piece in pieces:
                java.sendall(piece)
            found = whole(java)
            assert found.startswith(b"HTTP/1.1 200")
            assert found.count(b'"id"') in (2, 3)
    connect = b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert is_refused(answers(running.port, connect, done=is_refused))


ASK = (
    b"POST /v1/studies/mix/pulls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
)


def test_requests_that_are_sent_ahead(running):
    """Answers come in the order of the requests, whatever they are."""
    ask = ASK + b"Content-Length: 2\r\n\r\n{}"
    other = b"GET /v1/setup HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def done(found):
        return found.count(b"HTTP/1.1 200 OK") == 5 and found.count(b'"arm"') == 4

    found = answers(running.port, ask + other + ask + ask[:-1], ask[-1:] + ask, done=done)
    assert re.findall(rb'{"(pulls|version)"', found) == [
        *(b"pulls", b"version", b"pulls", b"pulls", b"pulls")
    ]
    numbers = [int(one) for one in re.findall(rb'"id": ?"\w+-(\d+)-', found)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 4


def test_a_body_in_pieces(running):
    chunks = (
        b"Transfer-Encoding: chunked\r\n\r\n",
        b'3\r\n{"n\r\n',
        b'4\r\n": 3\r\n',
        b"1\r\n}\r\n",
    )
    found = answers(running.port, ASK, *chunks, b"0\r\n\r\n", done=lambda x: x.count(b'"arm"') == 3)
    assert found.startswith(b"HTTP/1.1 200 OK")


def test_what_is_left_of_a_body_is_no_request(running):
    """Who is answered before the body was read has to come again on a new connection."""
    ask = ASK + b"Content-Length: 2\r\n\r\n{}"
    for head in (
        b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
        b"POST /v1/studies/none/pulls HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n",
    ):
        sent = head + b"Content-Length: %d\r\n\r\n" % (len(ask) + 100)
        found = answers(running.port, sent, ask * 2, done=never)
        assert found[-3:] == b"END"
        assert b"\r\nconnection: close\r\n" in found.lower()
        assert found.count(b"HTTP/1.1 ") == 1


def test_idle_connections_make_room(sqlite_url, tmp_path):
    """Who comes takes the place of those who only wait; a request under way is let alone."""
    sx.Study.create(sqlite_url, "mix", star()).close()
    ask = ASK + b"Content-Length: 2\r\n\r\n{}"
    with Process(sqlite_url, tmp_path / "log", files=200) as running, contextlib.ExitStack() as on:
        busy = on.enter_context(socket.create_connection(("127.0.0.1", running.port), 60))
        busy.sendall(ask)
        assert whole(busy).startswith(b"HTTP/1.1 200")
        busy.sendall(ask[:-1])
        until(lambda: begun(running) == 1)
        idle = []
        for turn in range(120):
            one = on.enter_context(socket.create_connection(("127.0.0.1", running.port), 60))
            one.sendall(b"GET /" if turn % 2 else b"")
            idle.append(one)
        for _ in range(3):
            found = answers(running.port, ask, done=lambda x: x.count(b'"arm"') == 1)
            assert found.startswith(b"HTTP/1.1 200")
        with contextlib.suppress(ConnectionResetError):
            assert idle[0].recv(1) == b""  # the one that has waited for longest
        busy.sendall(ask[-1:])
        assert whole(busy).startswith(b"HTTP/1.1 200")


def test_too_few_files(sqlite_url, tmp_path):
    with pytest.raises(RuntimeError, match=r"may open 120 files, and needs 160 .*ulimit -n"):
        Process(sqlite_url, tmp_path / "log", files=120)


def test_a_client_that_does_not_wait(running):
    """What was begun for it is done; what was not begun leaves no trace."""
    study = sx.Study.open(running.store, "mix")
    before = study.head
    with contextlib.closing(sqlite3.connect(running.store)) as other:
        other.execute("BEGIN IMMEDIATE")  # another program writes
        with socket.create_connection(("127.0.0.1", running.port), 60) as impatient:
            impatient.sendall(ASK + b"Content-Length: 2\r\n\r\n{}")
            until(lambda: begun(running) == 1)
    until(lambda: study.head == before + 1)
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", running.port), 60) as impatient:
            impatient.sendall(ASK + b"Content-Length: 2\r\n\r\n{}")
    until(lambda: begun(running) == 0)
    assert study.head <= before + 21
    assert study.verify()
    assert '"level": "error"' not in running.log()
