"""Logs without secrets, and counts for Prometheus."""

import http.client
import json
import math
import re
from urllib.parse import unquote

from prometheus_client.parser import text_string_to_metric_families

from servers import Process
from service_client import STAR, bearer, new_token, serving


def read(text):
    """What Prometheus reads: values by name and labels; names, kinds, texts and labels."""
    values, families = {}, set()
    for family in text_string_to_metric_families(text):
        labels = {name for sample in family.samples for name in sample.labels}
        name = family.name.removeprefix("simplexplore_")
        families.add((name, family.type, family.documentation, tuple(sorted(labels))))
        for sample in family.samples:
            values[sample.name, frozenset(sample.labels.items())] = sample.value
    return (
        lambda name, **labels: values.get((f"simplexplore_{name}", frozenset(labels.items()))),
        families,
    )


def test_logs_hold_no_secrets(sqlite_url, tmp_path):
    _, text = new_token(sqlite_url, "admin")
    secret = text.split("_", 2)[2]
    with Process(sqlite_url, tmp_path / "log") as running:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)

        def send(method, path, body=None, token=text):
            content = None if body is None else json.dumps(body)
            headers = bearer(token) | {"Content-Type": "application/json"}
            connection.request(method, path, content, headers)
            connection.getresponse().read()

        send("POST", "/v1/studies", {"name": "mix", "problem": STAR})
        send("GET", f"/v1/studies/{text}")  # in the wrong place
        send("GET", f"/v1/studies?token={text}")
        send("POST", "/v1/studies", {"name": text})
        send("GET", "/v1/studies", token=f"{text}x")
        for odd in (
            text.replace("_", "%5F"),
            text.replace("_", "%5f"),
            text.upper(),
            text.replace("_", "%255F"),
            "".join(f"%{ord(c):02X}" for c in text),
            "x" * 200 + "".join(f"%{ord(c):02X}" for c in text),
        ):
            send("GET", f"/v1/studies/{odd}")
        connection.close()
        running.stop()
        lines = [json.loads(line) for line in running.log().splitlines()]
    whole = json.dumps(lines)
    lines = [line for line in lines if line["event"] == "request"]
    assert [line["status"] for line in lines] == [201, 404, 200, 422, 401] + [404] * 6
    # Each tells that there was a token, and whose; of the last one the line holds only a part.
    assert [f"{text[:12]}..." in line["path"].lower() for line in lines[5:]] == [True] * 6
    assert {line["token"] for line in lines[:3]} == {text.split("_")[1]}
    names = ("time", "level", "event", "id", "method", "path", "status", "ms", "token")
    assert {*lines[0]} == {*names}
    shown = unquote(unquote(whole)).lower()
    assert not any(secret.lower()[i : i + 6] in shown for i in range(len(secret) - 5))
    assert lines[0]["path"] == "/v1/studies"


def test_metrics(client):
    client.post("/v1/studies", json={"name": 'a"b\\c', "problem": STAR})
    client.post("/v1/studies/a%22b%5Cc/pulls", json={"n": 3})
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert r'simplexplore_study_pending{study="a\"b\\c"} 3' in answer.text
    value, _ = read(answer.text)
    assert value("study_pending", study='a"b\\c') == 3
    assert value("studies", state="running") == 1
    route = "/v1/studies/{name}/pulls"
    assert value("requests_total", method="POST", route=route, status="200") == 1
    assert value("request_seconds_bucket", route=route, le="+Inf") == 1


def test_strangers_invent_no_metrics(client):
    """What is counted by name stays small, whatever methods somebody thinks of."""
    for i in range(20):
        client.request(f"BREW{i}", "/v1/studies")
    text = client.get("/metrics").text
    assert "BREW" not in text
    value, _ = read(text)
    assert value("requests_total", method="other", route="/v1/studies", status="405") == 20


def test_requests_are_counted_by_their_whole_path(client):
    paths = client.get("/v1/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for method in methods:
            client.request(method, path.replace("{name}", "none"))
    counted = re.findall(r'requests_total{[^}]*route="([^"]*)"', client.get("/metrics").text)
    assert {*paths} <= {*counted}


def test_time_classes_add_up(client):
    """Each holds what the ones before it hold; the last one holds all."""
    for _ in range(20):
        client.get("/v1/studies")
    text = client.get("/metrics").text
    value, _ = read(text)
    route = "/v1/studies"
    ends = sorted({float(end) for end in re.findall(r'le="([^"]+)"', text)})
    counts = [
        value("request_seconds_bucket", route=route, le="+Inf" if end == math.inf else str(end))
        for end in ends
    ]
    assert counts == sorted(counts)
    assert counts[-1] == value("request_seconds_count", route=route) == 20
    assert 0 < value("request_seconds_sum", route=route) < 60


def test_every_metric_has_its_name(client, study):
    """Names, kinds, texts and labels are what others have built upon."""
    rewards = [{"arm": arm, "reward": 0.5} for arm in "abcde"]
    client.post(f"{study}/rewards", json={"rewards": rewards})  # so that it has made progress
    _, families = read(client.get("/metrics").text)
    assert families == {
        ("info", "gauge", "The program's version.", ("version",)),
        ("start_time_seconds", "gauge", "When this process started.", ()),
        ("requests_in_progress", "gauge", "Requests under way.", ()),
        ("watchers", "gauge", "Open event streams.", ()),
        ("requests", "counter", "Requests answered.", ("method", "route", "status")),
        (
            "request_seconds",
            "histogram",
            "Time until a request was answered.",
            ("le", "route"),
        ),
        ("studies", "gauge", "Studies in the store.", ("state",)),
        ("study_asked", "counter", "Pulls given out.", ("study",)),
        ("study_rewards", "counter", "Rewards taken in.", ("study",)),
        ("study_pending", "gauge", "Pulls without a reward.", ("study",)),
        ("study_progress", "gauge", "Share of the evidence needed.", ("study",)),
        ("study_changed_seconds", "gauge", "Time of the last change.", ("study",)),
    }


def test_services_count_for_themselves(client, tmp_path):
    """Two services in one process have nothing in common."""
    client.get("/v1/studies")
    with serving(tmp_path / "other.db") as other:
        value, _ = read(other.get("/metrics").text)
    assert value("requests_total", method="GET", route="/v1/studies", status="200") is None
