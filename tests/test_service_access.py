"""Who may do what: tokens, roles, and a machine of one's own without them."""

import json
import time

from service_client import STAR, refused, serving
from simplexplore.service import tokens
from simplexplore.study.store import Store

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
        client.app.state.tokens._open_until = 0.0
        assert client.get("/v1/studies").status_code == 401


def test_without_tokens_no_proxy(client):
    """A proxy may use our own name for those that it lets in from elsewhere."""
    for name in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"):
        answer = client.get("/v1/studies", headers={name: "1.1 proxy"})
        refused(answer, 403, "access", "through a proxy")
