"""Requests that go past the framework: answered as by the framework, to the last byte."""

import asyncio
import json
import logging
import re
import shutil
from itertools import pairwise

import pytest
import uvicorn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from simplexplore.protocol import MAX_BODY
from simplexplore.service import logs, tokens
from simplexplore.service.app import make_app
from simplexplore.service.direct_routes import DirectRequest, DirectRoutes
from simplexplore.service.server import _HOLD, _Protocol
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from trials import trial
from workers import star


class Transport(asyncio.Transport):
    """A connection of which both ends are here."""

    def __init__(self):
        super().__init__()
        self.sent, self._is_closing = bytearray(), False

    def get_extra_info(self, name, default=None):
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 80)}.get(name, default)

    def write(self, data):
        self.sent += data

    def is_closing(self):
        return self._is_closing

    def close(self):
        self._is_closing = True

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


async def call(app, head, pieces, gone=False):
    """The answer to a request that comes in pieces; its client may hang up.

    Status, headers without the id, body, and whether the server hung up.
    """
    config = uvicorn.Config(app, http=_Protocol, ws="none", log_config=None, proxy_headers=False)
    protocol, transport = _Protocol(config, ServerState(), {}), Transport()
    protocol.connection_made(transport)
    for piece in (head, *pieces):
        protocol.data_received(piece)
        await asyncio.sleep(0)
        if transport.is_closing():
            break
    while not (gone or transport.is_closing() or protocol.cycle.response_complete):
        await asyncio.sleep(0.001)
    hung_up = transport.is_closing()
    protocol.connection_lost(None)
    while protocol.tasks or app.state.metrics.in_progress:
        await asyncio.sleep(0.001)
    answer, _, body = bytes(transport.sent).partition(b"\r\n\r\n")
    status, *headers = answer.split(b"\r\n")
    headers = [one for one in headers if not one.startswith(b"x-request-id: ")]
    return status, headers, body, hung_up


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.fields = []

    def emit(self, record):
        shown = {k: v for k, v in record.fields.items() if k not in ("id", "ms")}
        self.fields.append((record.levelname, record.getMessage(), shown))


class Twins:
    """Two services over equal stores, one of which leaves all to the framework."""

    def __init__(self, folder):
        self.loop = asyncio.new_event_loop()
        first = Store(folder / "direct.db", clock=lambda: 1e9)
        Study.create(first, "dose", trial())
        for name in ("a/b", "ü", "mix"):
            asked = Study.create(first, name, star(), "ctns", expire_after=None).ask(40)
        self.pulls = {number: pull.id for number, pull in enumerate(asked, 1)}
        self.tokens = {role: tokens.create_token(first, role)[1] for role in ("run", "read")}
        first.close()
        shutil.copy(folder / "direct.db", folder / "general.db")
        self.stores = [Store(folder / f"{x}.db", clock=lambda: 1e9) for x in ("direct", "general")]
        self.apps = [make_app(store) for store in self.stores]
        self.apps[1].state.direct = DirectRoutes(self.apps[1], [])
        self._open = [app.router.lifespan_context(app) for app in self.apps]
        for one in self._open:
            self.loop.run_until_complete(one.__aenter__())
        self.lines = Lines()
        logs.LOGGER.addHandler(self.lines)
        logs.LOGGER.setLevel(logging.INFO)

    def close(self):
        logs.LOGGER.removeHandler(self.lines)
        logs.LOGGER.setLevel(logging.NOTSET)
        for one in self._open:
            self.loop.run_until_complete(one.__aexit__(None, None, None))
        self.loop.close()

    def ask_both(self, head, pieces, gone=False):
        """The answer that both give, and that they write and count the same about it."""
        found = []
        for app in self.apps:
            self.lines.fields.clear()
            answer = self.loop.run_until_complete(call(app, head, pieces, gone))
            found.append((answer, [*self.lines.fields]))
        assert found[0] == found[1]
        return found[0][0]

    def counted(self):
        none = dict.fromkeys(("running", "stopped", "paused", "archived"), 0)
        texts = [app.state.metrics.text(none, []).decode() for app in self.apps]
        return [re.findall(r"^simplexplore_requests_total.*|.*_count.*", x, re.M) for x in texts]

    def journals(self):
        names = ("mix", "a/b", "dose")
        return [[Study.open(store, name).events() for name in names] for store in self.stores]


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "REMEMBERED", 1e6)  # however busy the machine
        made = Twins(tmp_path_factory.mktemp("twins"))
        yield made
        made.close()


def head_of(method, path, headers):
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: localhost"]
    return b"\r\n".join([*lines, *(b"%b: %b" % one for one in headers), b"", b""])


def chunked(piece):
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""


JSON = (b"content-type", b"application/json")
numbers = st.one_of(st.integers(-3, 10_001), st.floats(), st.booleans(), st.none(), st.text())
texts = st.one_of(st.text(max_size=5), st.sampled_from(["a", "\0", "x" * 201, "nonsense-1-ffff"]))
values = st.recursive(
    st.one_of(numbers, texts),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
ask = st.fixed_dictionaries({}, optional={"n": st.integers(1, 3)})
odd_ask = st.fixed_dictionaries({}, optional={"n": values, "x": values})
reward = st.one_of(
    st.fixed_dictionaries({"reward": st.integers(-5, 5) | st.floats(-5, 5)}, optional={one: two})
    for one, two in (("pull", st.integers(1, 45)), ("arm", st.sampled_from("abq")))
)
odd_reward = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("reward", "pull", "arm", "key", "measured", "x"), values)
)
tell = st.fixed_dictionaries({"rewards": st.lists(reward, max_size=3)})
odd_tell = st.fixed_dictionaries(
    {"rewards": st.lists(odd_reward | reward, max_size=3) | values}, optional={"x": values}
)
# What a request is made of: as it should be, and otherwise.
PARTS = {
    "method": (st.just("POST"), st.sampled_from(["GET", "PUT", "HEAD"])),
    "name": (st.just("mix"), st.sampled_from(["a%2Fb", "%C3%BC", "%ff", "%00", "no", "..", "a/b"])),
    "what": (
        st.one_of(st.tuples(st.just("pulls"), ask), st.tuples(st.just("rewards"), tell)),
        st.tuples(
            st.sampled_from(["pulls", "rewards", "rewards", "notes", "pulls/", "pullsx"]),
            st.one_of(odd_ask, odd_tell, values, st.binary(max_size=20)),
        ),
    ),
    "end": (st.just(b""), st.sampled_from([b"}", b" ", b"\xff", b"\0", b"[" * 100_000])),
    "encoding": (st.just("utf-8"), st.sampled_from(["utf-8-sig", "utf-16", "utf-32-be"])),
    "kind": (
        st.just(b"application/json"),
        st.sampled_from([b"application/json; x=1", b"Application/JSON", b"text/x", b"", None]),
    ),
    "token": (
        st.just(b"Bearer RUN"),
        st.sampled_from(
            [b"bearer  RUN ", b"Bearer READ", b"Bearer", b"Basic RUN", b"Bearer x", None]
        ),
    ),
    "keys": (
        st.sampled_from([[], [b"k"], [b"%C3%BC"]]),
        st.lists(
            st.sampled_from([b"%ff", b"%00", b"a b", b"\xfc", b"", b"x" * 191])
            | st.binary(max_size=4),
            max_size=2,
        ),
    ),
    "cuts": (st.just([]), st.lists(st.integers(0, 40), min_size=1, max_size=2)),
    "chunked": (st.just(False), st.just(True)),
    "gone": (st.just(False), st.just(True)),
}


@st.composite
def requests(draw):
    odd = draw(st.sets(st.sampled_from(sorted(PARTS)), max_size=2))
    return {name: draw(part[name in odd]) for name, part in PARTS.items()}


RIGHT = {
    "method": "POST",
    "name": "mix",
    "what": ("pulls", {"n": 1}),
    "end": b"",
    "encoding": "utf-8",
    "kind": b"application/json",
    "token": b"Bearer RUN",
    "keys": [],
    "cuts": [],
    "chunked": False,
    "gone": False,
}


@settings(max_examples=200)
@given(request=requests())
@example(RIGHT | {"gone": True})
@example(RIGHT | {"token": b"Bearer READ"})
@example(RIGHT | {"what": ("rewards", b'{"rewards": [{"arm": "a", "reward": 1, "key": "\xff"}]}')})
@example(RIGHT | {"keys": [b"twice", b"otherwise"]})
@example(RIGHT | {"name": "%ff", "what": ("pulls", b"{")})
@example(RIGHT | {"name": "%ff", "keys": [b"%ff"]})
def test_both_say_the_same(twins, request):
    """Bodies that are right, wrong or none; any token, name, key; in pieces, or broken off."""
    place, body = request["what"]
    if isinstance(body, dict) and isinstance(body.get("rewards"), list):
        for one in body["rewards"]:
            if isinstance(one, dict) and isinstance(one.get("pull"), int):
                one["pull"] = twins.pulls.get(one["pull"], one["pull"])
    if not isinstance(body, bytes):
        body = json.dumps(body).encode(request["encoding"], "replace")
    body += request["end"]
    headers = [(b"idempotency-key", key) for key in request["keys"]]
    if request["kind"] is not None:
        headers.append((b"content-type", request["kind"]))
    if request["token"] is not None:
        text = request["token"].decode()
        for role, token in twins.tokens.items():
            text = text.replace(role.upper(), token)
        headers.append((b"authorization", text.encode()))
    places = [0, *sorted(request["cuts"]), len(body)]
    pieces = [body[a:b] for a, b in pairwise(places)]
    if request["chunked"]:
        headers.append((b"transfer-encoding", b"chunked"))
        pieces = [*map(chunked, pieces), b"0\r\n\r\n"]
    else:
        headers.append((b"content-length", str(len(body)).encode()))
    if request["gone"]:
        pieces = [b"".join(pieces)[:-1]]
    head = head_of(request["method"], f"/v1/studies/{request['name']}/{place}", headers)
    twins.ask_both(head, pieces, request["gone"])


def test_plain_requests(twins, monkeypatch):
    """They are answered without the framework, and all that was done is equal in the end."""
    taken = []
    begins = DirectRequest.begins
    monkeypatch.setattr(
        DirectRequest, "begins", lambda *given: taken.append(begins(*given)) or taken[-1]
    )
    run = (b"authorization", f"Bearer {twins.tokens['run']}".encode())
    measured = {"measured": {"toxicity": 0.5}}
    tell = {"rewards": [{"arm": "a", "reward": 1, "key": "own"}]}
    wrong = {"rewards": [{"arm": "b", "reward": 1, "key": "own"}]}
    dose = {"rewards": [{"arm": "safe", "reward": 1, "key": "own", **measured}]}

    def ask(path, body, *headers):
        content = json.dumps(body).encode()
        length = (b"content-length", b"%d" % len(content))
        head = head_of("POST", f"/v1/studies/{path}", [JSON, run, *headers, length])
        return twins.ask_both(head, [content])

    for name in ("mix", "a%2Fb", "dose"):  # they are opened by the framework
        ask(f"{name}/pulls", {"n": 2})
    taken.clear()
    for path, body, key, status in (
        ("mix/pulls", {}, [], b"200 OK"),
        ("mix/pulls", {"n": 3}, [(b"idempotency-key", b"%C3%A4")], b"200 OK"),
        ("a%2Fb/rewards", tell, [], b"200 OK"),
        ("a%2Fb/rewards", tell, [], b"200 OK"),
        ("a%2Fb/rewards", wrong, [], b"409 Conflict"),  # that is known when it was tried
        ("dose/rewards", dose, [], b"200 OK"),
        ("mix/pulls", {}, [(b"connection", b"close")], b"200 OK"),
    ):
        answer = ask(path, body, *key)
        assert answer[0] == b"HTTP/1.1 " + status
        assert answer[3] == bool(key and key[0][0] == b"connection")
    assert taken == [True] * 7  # of one of both
    large = [*map(chunked, [b'{"rewards": [' + b" " * MAX_BODY, b"]}"])]
    head = head_of(
        "POST", "/v1/studies/mix/rewards", [JSON, run, (b"transfer-encoding", b"chunked")]
    )
    assert twins.ask_both(head, large)[0] == b"HTTP/1.1 413 Request Entity Too Large"
    assert twins.counted()[0] == twins.counted()[1]
    first, second = twins.journals()
    assert first == second
    assert len(first[0]) > 40
    assert first[2][2]["measured"] == {"toxicity": 0.5}


def test_a_client_that_does_not_wait(twins):
    """What it asked for is done, logged and counted."""
    run = (b"authorization", f"Bearer {twins.tokens['run']}".encode())
    head = head_of("POST", "/v1/studies/mix/pulls", [JSON, run, (b"content-length", b"2")])
    study = Study.open(twins.stores[0], "mix")
    for _ in range(2):  # the first of them may have to open the study
        before = study.head
        twins.lines.fields.clear()
        found = twins.loop.run_until_complete(call(twins.apps[0], head, [b"{}"], gone=True))
    assert found[:3] == (b"", [], b"")
    assert study.head == before + 1
    assert [one[2]["status"] for one in twins.lines.fields] == [200]


def test_requests_that_are_sent_ahead(twins):
    """Answers come in the order of the requests, also of those that the framework answers."""
    run = f"authorization: Bearer {twins.tokens['run']}\r\n".encode()
    ask = b"POST /v1/studies/mix/pulls HTTP/1.1\r\nHost: localhost\r\n" + run
    ask += b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    other = b"GET /v1/setup HTTP/1.1\r\nHost: localhost\r\n" + run + b"\r\n"
    transport = Transport()

    async def send():
        config = uvicorn.Config(twins.apps[0], http=_Protocol, log_config=None, proxy_headers=False)
        protocol = _Protocol(config, ServerState(), {})
        protocol.connection_made(transport)
        protocol.data_received(ask + other + ask + ask[:-1])
        while transport.sent.count(b"HTTP/1.1 200 OK") < 3:
            await asyncio.sleep(0.001)
        await asyncio.sleep(1.5 * _HOLD)  # the framework waits for what is left
        protocol.data_received(ask[-1:] + ask)
        while transport.sent.count(b"HTTP/1.1 200 OK") < 5:
            await asyncio.sleep(0.001)
        protocol.connection_lost(None)

    twins.loop.run_until_complete(send())
    found = re.findall(rb'{"(pulls|version)"', transport.sent)
    assert found == [b"pulls", b"version", b"pulls", b"pulls", b"pulls"]
    numbers = [int(one) for one in re.findall(rb'"id": "\w+-(\d+)-', transport.sent)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 4
