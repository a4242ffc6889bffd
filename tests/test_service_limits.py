"""What every request passes: headers, paths, limits on size and time."""

import asyncio
import contextlib
import http.client
import socket

import urllib3

import simplexplore as sx
from servers import Thread
from service_client import refused
from simplexplore.protocol import MAX_BODY
from simplexplore.service import middleware, server
from simplexplore.service.worker_processes import WorkerProcesses
from workers import star


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


def test_slow_work_is_no_slow_body(sqlite_url, monkeypatch):
    """A file is sent whole, however long it took to write it."""
    monkeypatch.setattr(middleware, "BODY_TIMEOUT", 0.2)
    plain = WorkerProcesses.run

    async def slow(*arguments, **settings):
        await asyncio.sleep(0.5)
        return await plain(*arguments, **settings)

    monkeypatch.setattr(WorkerProcesses, "run", slow)
    sx.Study.create(sqlite_url, "mix", star())
    with Thread(sqlite_url) as running:
        answer = urllib3.request("GET", f"{running.url}/v1/studies/mix/export", retries=False)
        assert answer.data.startswith(b"pull,arm,reward")


def test_slow_bodies_and_slow_heads(sqlite_url, monkeypatch):
    monkeypatch.setattr(middleware, "BODY_TIMEOUT", 0.3)
    head = (
        b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n"
    )
    with Thread(sqlite_url) as running:
        address = "127.0.0.1", running.port
        with socket.create_connection(address, 60) as slow:
            slow.sendall(head + b"\r\n{")
            assert slow.recv(1000).startswith(b"HTTP/1.1 408")
        with contextlib.closing(http.client.HTTPConnection(*address, timeout=60)) as known:
            for seconds in (600.0, 0.3):  # the first is counted from the connection on
                monkeypatch.setattr(server, "_HEAD_TIMEOUT", seconds)
                known.request("GET", "/health")
                answer = known.getresponse()
                answer.read()
                assert answer.status == 200
            # One that has asked before has no more time than others.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                known.sock.sendall(b"GET /hea")
                while known.sock.recv(5000):
                    pass
        for sent in (head, b""):
            with socket.create_connection(address, 60) as slow:
                slow.sendall(sent)
                assert slow.recv(1000) == b""


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


def is_refused(found):
    return found.startswith(b"HTTP/1.1 400")


def never(_):
    return False


def test_requests_without_an_end(sqlite_url):
    """What a parser takes in is limited, before the body as after it."""
    sx.Study.create(sqlite_url, "mix", star())
    head = b"POST /v1/studies/mix/pulls HTTP/1.1\r\nHost: localhost\r\n"
    chunked = (
        b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    )
    with Thread(sqlite_url) as running:
        for start, more in (
            (b"GET /", b"a" * 5000),
            (head, b"X: " + b"a" * 5000 + b"\r\n"),
            (head + b"X: ", b"a" * 5000),
            (head + chunked, b"X: " + b"a" * 5000 + b"\r\n"),
        ):
            assert answers(running.port, start, *[more] * 12)[-3:] != b"END"
            assert answers(running.port, start, *[more] * 40, done=never)[-3:] == b"END"
        get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        found = answers(running.port, get * 50, done=lambda x: x.count(b"HTTP/1.1 200 OK") == 50)
        assert found.count(b"HTTP/1.1 200 OK") == 50
        assert is_refused(answers(running.port, get * 500, done=is_refused))
        for hosts in (b"", b"Host: localhost\r\nHost: localhost\r\n"):
            sent = b"GET /health HTTP/1.1\r\n" + hosts + b"\r\n"
            assert is_refused(answers(running.port, sent, done=is_refused))


def test_offers_of_another_protocol(sqlite_url):
    """Java's clients make one with every request, which may have a body."""
    sx.Study.create(sqlite_url, "mix", star())
    head = (
        b"POST /v1/studies/mix/pulls HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\n"
        b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"
        b"Content-Type: application/json\r\nContent-Length: 8\r\n\r\n"
    )
    with Thread(sqlite_url) as running:
        pieces = head + b'{"n": 2}', head, b'{"n": 3}'
        found = answers(running.port, *pieces, done=lambda x: x.count(b'"id"') == 5)
        assert found.count(b"HTTP/1.1 200 OK") == 2
        assert found.count(b'"id"') == 5
        connect = b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert is_refused(answers(running.port, connect, done=is_refused))
