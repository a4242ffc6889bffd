"""Requests to a service: addresses, connections, certificates, answers that get lost."""

import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import simplexplore as sx
from nightly import nightly
from servers import Thread
from workers import star


def test_addresses():
    for url in (
        *("localhost:8080", "ftp://localhost", "http://", "", "http://localhost:x"),
        *("http://localhost:80800", "http://[::1"),
    ):
        with pytest.raises(sx.SettingError, match="not the address of a service"):
            sx.connect(url)
    with pytest.raises(sx.SettingError, match="not the address of a service"):
        sx.connect(f"http://{'x' * 64}.org")
    sx.connect("http://[::1]:8080")
    sx.connect("http://müller.example")
    with pytest.raises(sx.SettingError, match="a token is one word"):
        sx.connect("http://localhost", "two words")
    assert "secret" not in repr(sx.connect("http://localhost", "secret"))


def test_something_else_answers():
    def answer(listener):
        for text in (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"HTTP/1.1 404 No\r\n\r\n"):
            connection, _ = listener.accept()
            connection.recv(10_000)
            connection.sendall(text)
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for words in ("answer is not JSON; is the address right", "status 404; is the address"):
            with sx.connect(url) as service, pytest.raises(sx.ServiceError, match=words):
                service.list()
        thread.join()


def test_nobody_answers():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with sx.connect(f"http://127.0.0.1:{port}", retry_for=0.3) as service:
        started = time.monotonic()
        with pytest.raises(sx.ServiceError, match="cannot be reached"):
            service.list()
    assert 0.1 < time.monotonic() - started < 30


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl makes a certificate")
def test_a_wrong_certificate_is_not_tried_again(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    came = []

    def answer(listener):
        connection, _ = listener.accept()
        came.append(1)
        with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True):
            pass
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        url = f"https://localhost:{listener.getsockname()[1]}"
        with (
            sx.connect(url) as service,
            pytest.raises(sx.ServiceError, match="certificate verify failed: self-signed"),
        ):
            service.list()
        thread.join(60)
    assert came == [1]


def answer_to(text):
    body = json.dumps(text).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


MIX = answer_to(
    {
        "name": "mix",
        "created": 0.0,
        "problem": star().to_text(),
        "seed": 0,
        "expire_after": None,
        "head": 0,
        "state": "running",
        "answer": None,
        "answer_in_words": "No answer yet.",
        "sampler": "ctns",
    }
)


class Server:
    """Answers each connection with a text, and hangs up; an empty text is no answer at all."""

    def __init__(self, *texts):
        self.asked, self._held = [], []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._answer, args=(texts,))
        self._thread.start()

    def _answer(self, texts):
        for text in texts:
            connection, _ = self._listener.accept()
            self.asked.append(whole(connection).decode())
            connection.sendall(text)
            if text:
                connection.close()
            else:
                self._held.append(connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._thread.join(60)
        for one in (*self._held, self._listener):
            one.close()


def test_half_a_file_is_no_file(tmp_path):
    """A download that breaks off is begun again."""
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"
    with Server(MIX, half, half + b"more") as server, sx.connect(server.url) as service:
        service.open("mix").export(tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_bytes() == b"halfmore"


def test_a_full_disk_is_no_matter_of_the_service(service, tmp_path):
    service.create("mix", star()).ask(1000)
    code = f"""
        import resource, signal
        import simplexplore as sx
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        study = sx.connect({service.url!r}).open("mix")
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        try:
            study.export({str(tmp_path / "x.csv")!r})
        except sx.SettingError as error:
            print(error)
        print(study.head)  # no half-read answer is in the way
        """
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert time.monotonic() - started < 50  # it was not tried again
    assert re.fullmatch(r".*x\.csv.*: cannot write it: File too large\.\n1000\n", done.stdout)


@nightly
def test_an_answer_that_never_comes_is_asked_for_again():
    """Somewhere on the way a connection may be forgotten; the next one works."""
    with Server(b"", answer_to({"studies": []})) as server, sx.connect(server.url) as service:
        assert service.list() == []


def test_threads_share_connections(service):
    study = service.create("mix", star())
    together = threading.Barrier(8, timeout=120)

    def work():
        together.wait()
        for _ in range(5):
            study.note("hello")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert study.head == 40


def test_a_busy_service_says_when_to_come_back():
    """Not before, though we would."""
    busy = b"HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
    started = time.monotonic()
    with Server(busy, answer_to({"studies": []})) as server, sx.connect(server.url) as service:
        assert service.list() == []
    assert time.monotonic() - started >= 1.0


def test_what_is_sent():
    """Plain text, the token, and a key that stays the same when a request is sent again."""
    busy, done = b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 204 No\r\n\r\n"
    with Server(MIX, busy, done) as server, sx.connect(f"{server.url}/base/", "secret") as service:
        service.open("a/b ü").note("hello")
    first, second, third = server.asked
    assert first.startswith("GET /base/v1/studies/a%2Fb%20%C3%BC HTTP/1.1\r\n")
    assert second.startswith("POST /base/v1/studies/a%2Fb%20%C3%BC/notes HTTP/1.1\r\n")
    for asked in server.asked:
        assert "\r\nAuthorization: Bearer secret\r\n" in asked
        assert "\r\nAccept-Encoding: identity\r\n" in asked
    assert re.search(r"\r\nIdempotency-Key: [0-9a-f]{32}\r\n", second)
    assert second.endswith('\r\n\r\n{"text": "hello"}')
    assert third == second


def test_what_the_caller_was_doing_is_not_the_reason():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with sx.connect(f"http://127.0.0.1:{port}", retry_for=0.0) as service:
        try:
            raise KeyError("elsewhere")
        except KeyError:
            with pytest.raises(sx.ServiceError) as caught:
                service.list()
    assert str(caught.value) == f"{service.url} cannot be reached (Connection refused)."


def whole(connection):
    """A request or an answer with its body."""
    text = b""
    while b"\r\n\r\n" not in text:
        piece = connection.recv(2**16)
        if not piece:
            return b""
        text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    while len(body) < int(length[1] if length else 0):
        body += connection.recv(2**16)
    return head + b"\r\n\r\n" + body


class Wire:
    """Carries requests to a service; it may lose every second answer."""

    def __init__(self, port, *, loses=False):
        self._target, self._loses = port, loses
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = self.lost = 0
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()

    def _carry(self):
        lose = self._loses
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with here, socket.create_connection(("127.0.0.1", self._target)) as there:
                while request := whole(here):
                    there.sendall(request)
                    answer = whole(there)
                    if lose:
                        lose = False
                        self.lost += 1
                        break
                    lose = self._loses
                    here.sendall(answer)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(60)


def test_lost_answers_are_asked_for_again(sqlite_url):
    """Everything happens once, though every second answer gets lost."""
    with Thread(sqlite_url) as running:
        lossy = Wire(running.port, loses=True)
        with sx.connect(lossy.url) as service:
            study = service.create("mix", star(delta=0.1))
            for i in range(5):
                pulls = study.ask(3)
                study.tell_many([(pull, 1.0) for pull in pulls])
                study.tell(arm="a", reward=0.5)
                study.note(f"round {i}")
            study.extend(0.05)
            kinds = [event["event"] for event in study.events()]
        lossy.close()
        assert lossy.lost >= 20
    counts = {kind: kinds.count(kind) for kind in kinds}
    assert counts == {"asked": 15, "told": 15, "elsewhere": 5, "noted": 5, "extended": 1}
    assert sx.Study.open(sqlite_url, "mix").verify()


def test_a_fork_has_its_own_connection(service):
    study = service.create("mix", star())
    study.ask()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if study.head == 1 else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert study.head == 1
