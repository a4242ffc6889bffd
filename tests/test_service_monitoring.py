"""Logs without secrets, and counts for Prometheus."""

import asyncio
import io
import json
import re
import sys
from urllib.parse import unquote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from service_client import STAR, serving
from simplexplore.service import logs, tokens
from simplexplore.service.metrics import Metrics
from simplexplore.study.store import Store

# No study in any state.
NONE = dict.fromkeys(("running", "stopped", "paused", "archived"), 0)


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


def test_lines_of_one_turn_are_written_together(monkeypatch):
    """In order, none twice, and those of other threads at once."""
    written = []

    class Stream(io.StringIO):
        def write(self, text):
            written.append([json.loads(line)["event"] for line in text.splitlines()])

    async def talk():
        for event in "ab":
            logs.log(event)
        assert written == []
        await asyncio.sleep(0)
        assert written == [["a", "b"]]
        logs.log("c")
        await asyncio.get_running_loop().run_in_executor(None, logs.log, "d")
        logs.log("e")

    monkeypatch.setattr(sys, "stderr", Stream())
    logs.log_to_stderr()
    try:
        asyncio.run(talk())
        logs.log("f")
        for handler in logs.LOGGER.handlers:
            handler.flush()
    finally:
        logs.LOGGER.handlers = []
        logs.LOGGER.propagate = True
    assert [event for events in written for event in events] == list("abcdef")


def test_logs_hold_no_secrets(sqlite_url, capfd):
    store = Store(sqlite_url)
    _, text = tokens.create_token(store, "admin")
    secret = text.split("_", 2)[2]
    logs.log_to_stderr()
    try:
        with serving(store) as client:
            client.headers["Authorization"] = f"Bearer {text}"
            client.post("/v1/studies", json={"name": "mix", "problem": STAR})
            client.get(f"/v1/studies/{text}")  # in the wrong place
            client.get("/v1/studies", params={"token": text})
            client.post("/v1/studies", json={"name": text})
            client.get("/v1/studies", headers={"Authorization": f"Bearer {text}x"})
            for odd in (
                text.replace("_", "%5F"),
                text.replace("_", "%5f"),
                text.upper(),
                text.replace("_", "%255F"),
                "".join(f"%{ord(c):02X}" for c in text),
                "x" * 200 + "".join(f"%{ord(c):02X}" for c in text),
            ):
                path = client.build_request("GET", "http://localhost/")
                path.url = path.url.copy_with(raw_path=f"/v1/studies/{odd}".encode())
                client.send(path)
    finally:
        logs.LOGGER.handlers = []
        logs.LOGGER.propagate = True
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["status"] for line in lines] == [201, 404, 200, 422, 401] + [404] * 6
    # Each tells that there was a token, and whose; of the last one the line holds only a part.
    assert [f"{text[:12]}..." in line["path"].lower() for line in lines[5:]] == [True] * 6
    assert {line["token"] for line in lines[:3]} == {text.split("_")[1]}
    assert {*lines[0]} == {
        "time",
        "level",
        "event",
        "id",
        "method",
        "path",
        "status",
        "ms",
        "token",
    }
    for line in lines:
        shown = unquote(unquote(json.dumps(line))).lower()
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


def test_time_classes_add_up():
    metrics = Metrics()
    for seconds in (0.001, 0.02, 3.0, 99.0):
        metrics.count("GET", "/", 200, seconds)
    value, _ = read(metrics.text(NONE, []).decode())

    def count(end):
        return value("request_seconds_bucket", route="/", le=end)

    assert (count("0.005"), count("0.025"), count("2.5"), count("5")) == (1, 2, 2, 3)
    assert (count("30"), count("+Inf")) == (3, 4)
    assert value("request_seconds_count", route="/") == 4
    assert value("request_seconds_sum", route="/") == pytest.approx(102.021)


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


def test_services_count_for_themselves(client):
    """Two services in one process have nothing in common."""
    client.get("/v1/studies")
    other, _ = read(Metrics().text(NONE, []).decode())
    assert other("requests_total", method="GET", route="/v1/studies", status="200") is None
