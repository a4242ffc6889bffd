"""The client: the methods of a study over HTTP, and answers that get lost on the way."""

import errno
import inspect
import io
import json
import os
import re
import socket
import ssl
import threading
import time

import numpy as np
import pytest

import simplexplore as sx
import workers
from servers import Process, Thread
from simplexplore import protocol as wire
from simplexplore.client import remote_study as clients
from simplexplore.client.remote_study import RemoteStudy
from simplexplore.errors import SimplexploreError
from simplexplore.service.tokens import create_token
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from workers import MEANS, star


@pytest.fixture
def service(sqlite_url):
    with Thread(sqlite_url) as running, sx.connect(running.url) as service:
        yield service


def public(kind):
    return {name for name in vars(kind) if not name.startswith("_")}


def test_it_has_the_methods_of_a_study():
    fixed = {"name", "created", "problem", "seed", "expire_after"}  # attributes of a Study
    assert public(RemoteStudy) - fixed | {"create", "open", "list"} == public(Study)
    for name in ("ask", "tell", "tell_many", "note", "extend", "import_csv", "export", "history"):
        there = inspect.signature(getattr(Study, name)).parameters
        assert list(inspect.signature(getattr(RemoteStudy, name)).parameters) == list(there)


def test_it_behaves_like_a_study(service, sqlite_url, tmp_path):
    remote = service.create("a mix", star(delta=0.1), "ctns", seed=3, expire_after=None)
    local = Study.open(sqlite_url, "a mix")
    rng = np.random.default_rng(0)
    pulls = remote.ask(10)
    told = remote.tell_many([(pull, float(rng.normal(MEANS[pull.arm]))) for pull in pulls])
    assert {one.outcome for one in told} == {"told"}
    assert remote.tell(pulls[0], told[0].reward).outcome == "repeated"
    assert remote.tell(arm="a", reward=1.0).outcome == "elsewhere"
    assert remote.tell_many([]) == []
    remote.note("from far away")
    remote.extend(0.05)
    assert remote.about == local.about
    for name in ("name", "created", "seed", "expire_after", "problem", "head", "answer", "stopped"):
        assert getattr(remote, name) == getattr(local, name), name
    assert remote.answer_in_words == local.answer_in_words == "No answer yet."
    assert remote.events() == local.events()
    assert remote.events(after=3, limit=2) == local.events(after=3, limit=2)
    assert list(remote.each_event()) == list(local.each_event())
    assert remote.history() == local.history()
    here, there = local.status(), remote.status()
    for one in (here, there):
        del one["now"]
    assert there == {k: v for k, v in here.items() if k != "store"} | {
        "answer_in_words": "No answer yet.",
        "epsilon": 0.0,
    }
    for ending in ("csv", "json"):
        local.export(tmp_path / f"here.{ending}")
        remote.export(tmp_path / f"there.{ending}")
        files = [(tmp_path / f"{name}.{ending}").read_bytes() for name in ("here", "there")]
        assert files[0] == files[1]
    assert remote.verify()
    assert [one["name"] for one in service.list()] == ["a mix"]
    file = tmp_path / "rewards.csv"
    file.write_text("arm,reward\na,1.5\nb,0.5\n")
    assert len(remote.import_csv(file)) == 2
    file.write_text("arm,reward\na,1.5\nq,0.5\n")
    with pytest.raises(sx.SettingError, match=r"rewards\.csv, line 3: there is no arm 'q'"):
        remote.import_csv(file)
    assert local.head == 10 + 10 + 1 + 2 + 2


def test_keys_are_those_of_a_study(service, sqlite_url):
    study = service.create("mix", star(), key="första / 100%")
    assert service.create("mix", star(), key="första / 100%").created == study.created
    pulls = study.ask(2, key="week 3, ä/ö")
    assert Study.open(sqlite_url, "mix").ask(2, key="week 3, ä/ö") == pulls
    for key, words in (("x" * 191, "at most 190 characters"), ("a\0b", "none NUL")):
        with pytest.raises(sx.SettingError, match=words):
            study.ask(key=key)


def test_pieces_of_a_long_journal(service, monkeypatch):
    study = service.create("mix", star())
    study.ask(25)
    monkeypatch.setattr(clients, "MAX_BATCH", 10)
    assert [event["seq"] for event in study.events()] == list(range(1, 26))
    assert len(list(study.each_event())) == 25


def test_errors_are_those_of_a_study(service):
    study = service.create("mix", star())
    pull = study.ask()[0]
    study.tell(pull, 1.0)
    for call, kind, words in (
        (lambda: service.open("none"), sx.UnknownStudyError, "no study 'none'"),
        (lambda: service.create("mix", star()), sx.ConflictError, "there is a study 'mix'"),
        (lambda: study.tell(pull, 2.0), sx.ConflictError, "has the reward 1.0 already"),
        (lambda: study.tell("x-1-0000", 2.0), sx.PullError, "belongs to another study"),
        (lambda: study.tell(arm="a", reward=float("nan")), sx.RewardError, "finite"),
        (lambda: study.tell(pull, None), sx.SettingError, "reward: Field required"),
        (lambda: study.extend(2.0), sx.ProblemError, "between 0 and 1"),
        (lambda: study.ask(0), sx.SettingError, "greater than or equal to 1"),
        (lambda: study.tell_many([(pull, 1.0)] * 10_001), sx.TooLargeError, "10,000"),
        (lambda: study.export("x.xml"), sx.SettingError, "the ending says"),
    ):
        with pytest.raises(kind, match=words):
            call()


@pytest.mark.parametrize("kind", sorted(wire._BY_NAME))
def test_every_error_survives_the_journey(kind):
    one = wire._BY_NAME[kind]
    error = one("why", ["a", "b"]) if one is sx.InfeasibleError else one("why")
    back = wire.from_problem(json.loads(json.dumps(wire.to_problem(error))))
    assert (type(back), str(back)) == (one, "why")
    assert getattr(back, "conflict", ()) == getattr(error, "conflict", ())


def test_every_class_has_a_name_on_the_wire():
    def leaves(kind):
        return {kind}.union(*map(leaves, kind.__subclasses__()))

    ours = {kind for kind in leaves(SimplexploreError) if kind.__module__ == "simplexplore.errors"}
    assert ours - {SimplexploreError} == set(wire._BY_NAME.values())


def test_tokens(sqlite_url, monkeypatch):
    store = Store(sqlite_url)
    Study.create(store, "mix", star())
    _, reader = create_token(store, "read")
    with Thread(sqlite_url) as running:
        with (
            sx.connect(running.url) as service,
            pytest.raises(sx.AccessError, match="this service wants a token"),
        ):
            service.list()
        monkeypatch.setenv("SIMPLEXPLORE_TOKEN", reader)
        with sx.connect(running.url) as service:
            assert len(service.list()) == 1
            with pytest.raises(sx.AccessError, match="role 'run'; yours has the role 'read'"):
                service.open("mix").ask()


def test_an_empty_variable_is_no_token(service, monkeypatch):
    monkeypatch.setenv("SIMPLEXPLORE_TOKEN", "")
    with sx.connect(service.url) as other:
        assert other.list() == []


def test_numbers_of_numpy(service, sqlite_url):
    study = service.create("mix", star(delta=0.1), seed=np.int64(3), expire_after=np.float32(60))
    pulls = study.ask(np.int64(2))
    study.tell_many([(pulls[0], np.float32(0.5)), (pulls[1], np.int64(1))])
    study.extend(np.float32(0.0625))
    local = Study.open(sqlite_url, "mix")
    assert [event.get("reward") for event in local.events()] == [None, None, 0.5, 1.0, None]
    assert (local.seed, local.status()["delta"]) == (3, 0.0625)


def test_many_studies(service, sqlite_url, monkeypatch):
    """All pages are read, and one that moves to the front meanwhile is not missed."""
    store = Store(sqlite_url)
    for i in range(7):
        Study.create(store, f"s{i}", star())
    monkeypatch.setattr(clients, "_PAGE", 2)
    names = [f"s{i}" for i in reversed(range(7))]
    assert [one["name"] for one in service.list()] == names
    plain, asked = service.call, []

    def call(method, path, *rest, **more):
        if len(asked) == 1:
            Study.open(store, "s0").note("moves to the front")
        asked.append(path)
        return plain(method, path, *rest, **more)

    monkeypatch.setattr(service, "call", call)
    assert [one["name"] for one in service.list()] == ["s0", *names[:-1]]


def test_addresses():
    for url in (
        *("localhost:8080", "ftp://localhost", "http://", "", "http://localhost:x"),
        *("http://localhost:80800", "http://[::1"),
    ):
        with pytest.raises(sx.SettingError, match="not the address of a service"):
            sx.connect(url)
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
    assert 0.1 < time.monotonic() - started < 5


def test_a_wrong_certificate_is_not_tried_again():
    with sx.connect("https://localhost") as service:
        sent = []

        def send(*_):
            sent.append(1)
            raise ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed")

        service._send = send
        with pytest.raises(sx.ServiceError, match="certificate verify failed: self-signed"):
            service.list()
        assert len(sent) == 1


def answering(listener, *texts):
    """Answer each connection with a text, and hang up; an empty text is no answer at all."""
    held = []

    def answer():
        for text in texts:
            connection, _ = listener.accept()
            connection.recv(10_000)
            connection.sendall(text)
            if text:
                connection.close()
            else:
                held.append(connection)

    thread = threading.Thread(target=answer)
    thread.start()
    return thread, held


def test_half_a_file_is_no_file(tmp_path):
    """A download that breaks off is begun again."""
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread, _ = answering(listener, half, half + b"more")
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with sx.connect(url) as service:
            RemoteStudy(service, "mix").export(tmp_path / "x.csv")
        thread.join(10)
    assert (tmp_path / "x.csv").read_bytes() == b"halfmore"


def test_a_full_disk_is_no_matter_of_the_service(service):
    class Full(io.BytesIO):
        name = "x.csv"

        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    service.create("mix", star())
    started = time.monotonic()
    with pytest.raises(sx.SettingError, match=r"x\.csv: cannot write it: No space left"):
        service.call("GET", "/studies/mix/export", into=Full())
    assert time.monotonic() - started < 10


def test_an_answer_that_never_comes_is_asked_for_again(monkeypatch):
    """Somewhere on the way a connection may be forgotten; the next one works."""
    monkeypatch.setattr(clients, "_PATIENCE", 0.5)
    empty = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"studies": []}'
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread, held = answering(listener, b"", empty)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with sx.connect(url, retry_for=0.4) as service:
            assert service.list() == []
        thread.join(10)
        held[0].close()


def test_old_connections_are_not_trusted(service, monkeypatch):
    study = service.create("mix", star())
    first = service._local.connection
    assert study.head == 0
    assert service._local.connection is first
    monkeypatch.setattr(clients, "_IDLE", 0.0)
    assert study.head == 0
    assert service._local.connection is not first


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


class Lossy:
    """A wire that carries requests to a service and loses every second answer."""

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.lost = 0
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()

    def _carry(self):
        lose = True
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            with here, socket.create_connection(("127.0.0.1", self._target)) as there:
                while request := whole(here):
                    there.sendall(request)
                    answer = whole(there)
                    if lose:
                        lose = False
                        self.lost += 1
                        break
                    lose = True
                    here.sendall(answer)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


def test_lost_answers_are_asked_for_again(sqlite_url):
    """Everything happens once, though every second answer gets lost."""
    with Thread(sqlite_url) as running:
        lossy = Lossy(running.port)
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
    assert Study.open(sqlite_url, "mix").verify()


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


# ---------------------------------------------------------------------- servers that die


def test_servers_die_and_come_back(url, tmp_path):
    """Workers over HTTP do not notice; every acknowledged reward is there once."""
    study = Study.create(url, "mix", star())
    study.ask()  # compiled before anything is measured
    served = Process(url, tmp_path / "log")
    crew = workers.Crew(served.url, "mix", 3, 5, 8.0, tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(4):
        time.sleep(rng.uniform(0.1, 0.8))
        served.stop(9)
        served = Process(url, tmp_path / "log", served.port)
    crew.wait()
    told = workers.acknowledged(crew.logs)
    served.stop()
    assert told  # how many depends on the machine
    assert workers.is_sound(study, told)


def test_two_servers_on_one_database(server, tmp_path):
    url = server.database()
    study = Study.create(url, "mix", star())
    study.ask()
    with Process(url, tmp_path / "one") as one, Process(url, tmp_path / "two") as two:
        folders = [tmp_path / "crew1", tmp_path / "crew2"]
        for folder in folders:
            folder.mkdir()
        crews = [
            workers.Crew(served.url, "mix", 2, 5, 3.0, folder)
            for served, folder in zip((one, two), folders, strict=True)
        ]
        for crew in crews:
            crew.wait()
    told = [pair for crew in crews for pair in workers.acknowledged(crew.logs)]
    assert {event["event"] for event in study.each_event()} == {"asked", "told"}
    assert min(len(workers.acknowledged(crew.logs)) for crew in crews) > 20
    assert workers.is_sound(study, told)
