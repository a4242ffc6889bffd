"""Who may do what: tokens, roles, and a machine of one's own without them."""

import json
import socket
import time

import urllib3
from starlette.testclient import TestClient

import simplexplore as sx
from servers import Thread, make_app
from service_client import STAR, bearer, new_token, refused, revoke, serving
from workers import star

ROLES = {
    ("GET", "/v1/setup"): "read",
    ("POST", "/v1/bound"): "run",
    ("POST", "/v1/problem"): "run",
    ("GET", "/v1/studies"): "read",
    ("POST", "/v1/studies"): "run",
    ("GET", "/v1/studies/{name}"): "read",
    ("POST", "/v1/studies/{name}/pulls"): "run",
    ("POST", "/v1/studies/{name}/pulls/assign"): "run",
    ("POST", "/v1/studies/{name}/pulls/release"): "run",
    ("POST", "/v1/studies/{name}/rewards"): "run",
    ("POST", "/v1/studies/{name}/confirm"): "run",
    ("POST", "/v1/studies/{name}/stop"): "admin",
    ("GET", "/v1/studies/{name}/status"): "read",
    ("GET", "/v1/studies/{name}/history"): "read",
    ("GET", "/v1/studies/{name}/journal"): "read",
    ("POST", "/v1/studies/{name}/notes"): "run",
    ("GET", "/v1/studies/{name}/pulls"): "read",
    ("GET", "/v1/studies/{name}/problem"): "read",
    ("POST", "/v1/studies/{name}/voids"): "run",
    ("POST", "/v1/studies/{name}/imports"): "run",
    ("POST", "/v1/studies/{name}/pause"): "run",
    ("POST", "/v1/studies/{name}/resume"): "run",
    ("POST", "/v1/studies/{name}/archive"): "admin",
    ("POST", "/v1/studies/{name}/extension"): "admin",
    ("POST", "/v1/studies/{name}/verification"): "admin",
    ("GET", "/v1/studies/{name}/export"): "read",
    ("GET", "/v1/studies/{name}/events"): "read",
    ("GET", "/metrics"): "read",
    ("GET", "/v1/openapi.json"): "read",
}


BODIES = {
    "/v1/bound": {"problem": STAR},
    "/v1/problem": {"document": {"arms": ["a"]}},
    "/v1/studies": {"name": "new", "problem": STAR},
    "/v1/studies/{name}/pulls/assign": {"pulls": [], "by": "x"},
    "/v1/studies/{name}/pulls/release": {"pulls": []},
    "/v1/studies/{name}/rewards": {"rewards": []},
    "/v1/studies/{name}/confirm": {"event": 1},
    "/v1/studies/{name}/stop": {"reason": "x"},
    "/v1/studies/{name}/notes": {"text": "x"},
    "/v1/studies/{name}/extension": {"delta": 0.5},
    "/v1/studies/{name}/voids": {"event": 1, "reason": "x"},
    "/v1/studies/{name}/imports": {"csv": "arm,reward"},
}


def forged(text):
    """A token with the right id and, by its last letter only, a wrong secret."""
    return text[:-1] + ("A" if text[-1] != "A" else "B")


def test_every_path_has_its_role(sqlite_url):
    texts = {role: new_token(sqlite_url, role)[1] for role in ("read", "run", "admin")}
    revoked, text = new_token(sqlite_url, "admin")
    revoke(sqlite_url, revoked)
    # The right id with another secret: each role's, with one letter changed and with all of them.
    strangers = {"none": None, "revoked": text, "odd": "'", "revoked id": forged(text)}
    strangers |= {f"forged {role}": forged(text) for role, text in texts.items()}
    strangers |= {f"made up {role}": f"{text[:12]}{'x' * 43}" for role, text in texts.items()}
    order = list(texts)
    with serving(sqlite_url) as client:
        paths = client.get("/v1/openapi.json", headers=bearer(texts["read"])).json()["paths"]
        documented = {(m.upper(), path) for path, methods in paths.items() for m in methods}
        others = {("GET", "/metrics"), ("GET", "/v1/openapi.json")}
        assert documented | others == set(ROLES)  # no path without a role
        for (method, path), needed in ROLES.items():
            address = path.replace("{name}", "none")
            body = {"json": BODIES.get(path, {})} if method == "POST" else {}
            for who, text in (strangers | texts).items():
                headers = {} if text is None else bearer(text)
                answer = client.request(method, address, headers=headers, **body)
                if who in strangers:
                    refused(answer, 401, "access", "token")
                    assert answer.headers["www-authenticate"] == "Bearer"
                elif order.index(who) < order.index(needed):
                    refused(answer, 403, "access", f"role '{needed}'; yours has the role '{who}'")
                else:
                    assert answer.status_code not in (401, 403), (method, path, who)
        # The page itself holds nothing, and whether the service works is no secret.
        for path in ("/", "/health"):
            assert client.get(path).status_code == 200
        assert client.get("/health").json() == {"status": "ok"}
        basic = client.get("/v1/studies", headers={"Authorization": "Basic YTpi"})
        assert basic.status_code == 401


def test_a_token_is_remembered_with_its_secret(sqlite_url):
    """The right one came a moment ago, and its id is known: the wrong one is still wrong."""
    _, text = new_token(sqlite_url, "admin")
    with serving(sqlite_url) as client:
        for _ in range(2):
            right = client.get("/v1/studies", headers=bearer(text))
            assert right.status_code == 200
            for wrong in (forged(text), text + "x", text[:-1], text.upper(), f"{text} {text}"):
                answer = client.get("/v1/studies", headers=bearer(wrong))
                refused(answer, 401, "access", "not known here")


def test_streams_ask_for_the_secret(sqlite_url):
    sx.Study.create(sqlite_url, "mix", star())
    _, text = new_token(sqlite_url)
    with Thread(sqlite_url) as running:
        path = f"{running.url}/v1/studies/mix/events"
        for wrong in (forged(text), None):
            headers = {} if wrong is None else bearer(wrong)
            answer = urllib3.request(  # a stream has no end
                "GET", path, headers=headers, timeout=20, preload_content=False
            )
            status = answer.status
            answer.close()
            assert status == 401


def test_no_body_is_read_before_the_token(sqlite_url):
    """Large bodies of strangers cost nothing: the answer comes before the body is sent."""
    _, text = new_token(sqlite_url)
    with Thread(sqlite_url) as running:
        for header, status in (
            (b"", b"HTTP/1.1 401"),
            (f"Authorization: Bearer {forged(text)}\r\n".encode(), b"HTTP/1.1 401"),
            (f"Authorization: Bearer {text}\r\n".encode(), b"HTTP/1.1 403"),
        ):
            with socket.create_connection(("127.0.0.1", running.port), 10) as stranger:
                stranger.sendall(
                    b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 3900000\r\n"
                    + header
                    + b'\r\n{"name": '
                )
                answer = b""
                while piece := stranger.recv(5000):  # and the connection is closed
                    answer += piece
                assert answer.startswith(status)


def test_a_revoked_token_is_forgotten(sqlite_url):
    """Within the two seconds for which it may be remembered."""
    token, text = new_token(sqlite_url)
    with serving(sqlite_url) as client:
        client.headers |= bearer(text)
        assert client.get("/v1/studies").status_code == 200
        revoke(sqlite_url, token)
        time.sleep(2.1)
        assert client.get("/v1/studies").status_code == 401
        del client.headers["Authorization"]
        assert client.get("/v1/studies").status_code == 401  # closed for good


def test_secrets_are_kept_nowhere(tmp_path):
    _, text = new_token(tmp_path / "s.db", "run", "--note", "for a worker")
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
        new_token(sqlite_url)
        time.sleep(2.1)  # for so long it may be remembered that there was none
        assert client.get("/v1/studies").status_code == 401


def test_without_tokens_nobody_from_a_network(sqlite_url):
    """Whatever name a client uses: another server may listen at every address."""
    app = make_app(sqlite_url)
    for host, status in (
        ("203.0.113.9", 403),
        ("192.168.1.7", 403),
        ("2001:db8::1", 403),
        ("::ffff:203.0.113.9", 403),
        ("0.0.0.0", 403),
        ("127.0.0.1", 200),
        ("127.8.8.8", 200),
        ("::1", 200),
        ("::ffff:127.0.0.1", 200),
    ):
        with TestClient(app, base_url="http://localhost", client=(host, 50000)) as client:
            for method, path in (("GET", "/v1/studies"), ("GET", "/metrics"), ("GET", "/v1/setup")):
                answer = client.request(method, path)
                assert answer.status_code == status, host
                if status == 403:
                    refused(answer, 403, "access", "answers only to this machine")
    _, text = new_token(sqlite_url)
    app = make_app(sqlite_url)
    with TestClient(app, base_url="http://localhost", client=("203.0.113.9", 1)) as client:
        assert client.get("/v1/studies", headers=bearer(text)).status_code == 200


def test_without_tokens_no_page_of_another_site(client, study):
    """A verification has no body, so that a page can ask for it without being asked first."""
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:8081"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
    ):
        for method, path in (("POST", f"{study}/verification"), ("GET", f"{study}/export")):
            answer = client.request(method, path, headers=headers)
            refused(answer, 403, "access", "no page of another site")
    for headers in (
        {},
        {"Origin": "http://localhost"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ):
        answer = client.post(f"{study}/verification", headers=headers)
        assert answer.json() == {"sound": True}


def test_without_tokens_no_proxy(client):
    """A proxy may use our own name for those that it lets in from elsewhere."""
    for name in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"):
        answer = client.get("/v1/studies", headers={name: "1.1 proxy"})
        refused(answer, 403, "access", "through a proxy")
