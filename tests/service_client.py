"""A service in this process, and what tests want to know of its answers."""

import contextlib
import http.client
import json
import re
import time

from starlette.testclient import TestClient

from commands import run
from servers import make_app
from workers import star

STAR = star(delta=0.1).to_text()


@contextlib.contextmanager
def serving(store):
    """A client of a service over a store, without a socket between them."""
    with TestClient(make_app(store), base_url="http://localhost") as client:
        yield client


def new_token(store, role="read", *options):
    """Id and text of a token, made on the command line."""
    made = run("token", "create", "--role", role, "--store", store, "--json", *options)
    made = json.loads(made.stdout)
    return made["id"], made["token"]


def revoke(store, token):
    run("token", "revoke", token, "--store", store)


def bearer(text):
    """The header of a request with that token."""
    return {"Authorization": f"Bearer {text}"}


def refused(response, status, kind, words):
    """Check that a response is a problem document of a certain kind."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["type"] == (kind if ":" in kind else f"urn:simplexplore:{kind}")
    assert document["status"] == status
    assert re.search(words, document["detail"]), document["detail"]
    return document


def until(condition):
    """Wait for something that is about to happen, however busy the machine."""
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def watch(port, path, count, headers=None, found=None):
    """The first events of a stream; they are added to `found` one by one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path, headers=headers or {})
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    found = [] if found is None else found
    while len(found) < count:
        line = response.readline()
        if not line:
            break
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
    response.close()
    connection.close()
    return found
