"""What every request passes: headers, paths, limits on size and time."""

import asyncio
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
    monkeypatch.setattr(server, "_HEAD_TIMEOUT", 0.3)
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
