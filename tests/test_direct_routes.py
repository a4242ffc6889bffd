"""Requests that go past the framework: answered as by the framework, to the last byte."""

import asyncio
import json
import logging
import re
import shutil
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simplexplore.protocol import MAX_BODY
from simplexplore.service import logs, tokens
from simplexplore.service.app import make_app
from simplexplore.service.direct_routes import DirectRoutes
from simplexplore.service.studies import DIRECT
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from workers import star


def scope_of(method, path, headers, app):
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost"), *headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "app": app,
    }


async def call(app, scope, pieces, gone=False):
    """The answer to a request whose body comes in pieces; its client may hang up."""
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    if not gone:
        messages[-1]["more_body"] = False
    waiting = [*messages, {"type": "http.disconnect"}]
    sent = []

    async def receive():
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    start, *rest = sent
    headers = {name: value for name, value in start["headers"] if name != b"x-request-id"}
    return start["status"], headers, b"".join(one.get("body", b"") for one in rest)


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
        for name in ("a/b", "ü", "mix"):
            asked = Study.create(first, name, star(), "ctns", expire_after=None).ask(40)
        self.pulls = {number: pull.id for number, pull in enumerate(asked, 1)}
        self.tokens = {role: tokens.create_token(first, role)[1] for role in ("run", "read")}
        first.close()
        shutil.copy(folder / "direct.db", folder / "general.db")
        self.stores = [Store(folder / f"{x}.db", clock=lambda: 1e9) for x in ("direct", "general")]
        self.apps = [make_app(store) for store in self.stores]
        self.apps[1].user_middleware = [
            one for one in self.apps[1].user_middleware if one.cls is not DirectRoutes
        ]
        assert len(self.apps[1].user_middleware) == len(self.apps[0].user_middleware) - 1
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

    def ask_both(self, method, path, headers, pieces, gone=False):
        """The answer that both give, and that they write and count the same about it."""
        found = []
        for app in self.apps:
            self.lines.fields.clear()
            answer = self.loop.run_until_complete(
                call(app, scope_of(method, path, headers, app), pieces, gone)
            )
            found.append((answer, [*self.lines.fields]))
        assert found[0] == found[1]
        return found[0][0]

    def counted(self):
        none = dict.fromkeys(("running", "stopped", "paused", "archived"), 0)
        texts = [app.state.metrics.text(none, []).decode() for app in self.apps]
        return [re.findall(r"^simplexplore_requests_total.*|.*_count.*", x, re.M) for x in texts]

    def journals(self):
        return [[Study.open(s, "mix").events(), Study.open(s, "a/b").events()] for s in self.stores]


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    made = Twins(tmp_path_factory.mktemp("twins"))
    yield made
    made.close()


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
    {}, optional=dict.fromkeys(("reward", "pull", "arm", "key", "x"), values)
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
    if request["cuts"]:
        headers.append((b"transfer-encoding", b"chunked"))
    else:
        headers.append((b"content-length", str(len(body)).encode()))
    places = [0, *sorted(request["cuts"]), len(body)]
    pieces = [body[a:b] for a, b in pairwise(places)]
    path = f"/v1/studies/{request['name']}/{place}"
    twins.ask_both(request["method"], path, headers, pieces, request["gone"])


def test_plain_requests(twins):
    """They are answered without the framework, and all that was done is equal in the end."""

    async def framework(*_):
        raise AssertionError("the framework was asked")

    app = twins.apps[0]
    run = (b"authorization", f"Bearer {twins.tokens['run']}".encode())
    for path, body, key in (
        ("mix/pulls", {}, []),
        ("mix/pulls", {"n": 3}, [(b"idempotency-key", b"%C3%A4")]),
        ("a%2Fb/rewards", {"rewards": [{"arm": "a", "reward": 1, "key": "k"}]}, []),
    ):
        headers, pieces = [JSON, run, *key], [json.dumps(body).encode()]
        scope = scope_of("POST", f"/v1/studies/{path}", headers, app)
        direct = twins.loop.run_until_complete(call(DirectRoutes(framework, DIRECT), scope, pieces))
        assert direct[0] == 200
        general = twins.apps[1]
        scope = scope_of("POST", f"/v1/studies/{path}", headers, general)
        answer = twins.loop.run_until_complete(call(general, scope, pieces))
        assert direct[2] == answer[2]
        twins.apps[0].state.metrics.count("POST", scope["route"].path, 200, 0.001)
    large = [b'{"rewards": [' + b" " * MAX_BODY, b"]}"]
    chunked = (b"transfer-encoding", b"chunked")
    path = "/v1/studies/mix/rewards"
    assert twins.ask_both("POST", path, [JSON, run, chunked], large)[0] == 413
    assert twins.counted()[0] == twins.counted()[1]
    first, second = twins.journals()
    assert first == second
    assert len(first[0]) > 40
