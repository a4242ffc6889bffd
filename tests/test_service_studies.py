"""Studies over HTTP: asking, telling, looking, and what comes twice."""

import json

import simplexplore as sx
from servers import Thread
from service_client import STAR, refused
from stores import execute
from workers import star


def test_a_first_round(client, study):
    pulls = client.post(f"{study}/pulls", json={"n": 5}).json()["pulls"]
    assert sorted(pull["arm"] for pull in pulls) == list("abcde")
    rewards = [{"pull": pull["id"], "reward": 0.5} for pull in pulls]
    told = client.post(f"{study}/rewards", json={"rewards": rewards}).json()["rewards"]
    assert {one["outcome"] for one in told} == {"told"}
    again = client.post(f"{study}/rewards", json={"rewards": rewards}).json()["rewards"]
    assert {one["outcome"] for one in again} == {"repeated"}
    status = client.get(f"{study}/status").json()
    assert (status["rewards"], status["pending"]) == (5, 0)
    assert status["answer_in_words"] == "No answer yet."
    assert client.post(f"{study}/notes", json={"text": "a remark"}).status_code == 204
    events = client.get(f"{study}/journal").json()["events"]
    assert [event["event"] for event in events] == ["asked"] * 5 + ["told"] * 5 + ["noted"]
    assert client.get(f"{study}/journal", params={"after": 9, "limit": 1}).json()["events"] == [
        events[9]
    ]
    points = client.get(f"{study}/history").json()["points"]
    assert points[-1]["rewards"] == 5
    assert client.post(f"{study}/verification").json() == {"sound": True}
    listed = client.get("/v1/studies").json()["studies"]
    assert [(one["name"], one["rewards"]) for one in listed] == [("mix", 5)]
    assert client.get(study).json()["problem"] == STAR


def test_nothing_says_where_the_store_is(client, study, tmp_path):
    answers = [
        client.get(path).text
        for path in (study, f"{study}/status", "/v1/studies/none", "/v1/studies", "/metrics")
    ]
    assert not [text for text in answers if str(tmp_path) in text]
    refused(client.get("/v1/studies/none"), 404, "unknown-study", "no study 'none' in the store")


def test_names_are_only_names(client, sqlite_url):
    for name in (
        "a/b",
        "a%2Fb",
        "../../etc/passwd",
        "<script>alert(1)</script>",
        "ä ? # & ;",
        "🙂",
    ):
        body = {"name": name, "problem": STAR}
        assert client.post("/v1/studies", json=body).json()["name"] == name
    # Our own client writes addresses as needed.
    with Thread(sqlite_url) as running, sx.connect(running.url) as service:
        for one in client.get("/v1/studies").json()["studies"]:
            assert service.open(one["name"]).status()["name"] == one["name"]
    body = {"name": "..", "problem": STAR}
    refused(client.post("/v1/studies", json=body), 422, "setting", "cannot be called")
    assert client.get("/v1/studies/%ff").status_code == 404


def test_export(client, study):
    pulls = client.post(f"{study}/pulls", json={"n": 2}).json()["pulls"]
    text = client.get(f"{study}/export").text
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == [pull["id"] for pull in pulls]
    as_json = client.get(f"{study}/export", params={"format": "json"})
    assert len(as_json.json()["pulls"]) == 2
    assert 'filename="mix.json"' in as_json.headers["content-disposition"]
    refused(client.get(f"{study}/export?format=xml"), 422, "setting", "query.format")


def test_an_answer(client):
    body = {"name": "easy", "problem": 'arms = ["a", "b"]\ndelta = 0.1', "sampler": "uniform"}
    client.post("/v1/studies", json=body)
    rewards = [{"arm": arm, "reward": 9.0 * (arm == "a")} for arm in "ab" * 10]
    told = client.post("/v1/studies/easy/rewards", json={"rewards": rewards}).json()["rewards"]
    assert told[-1]["stopped"]
    answer = refused(
        client.post("/v1/studies/easy/pulls", json={}), 409, "stopped", "The answer.*a alone"
    )
    assert answer["title"] == "stopped"
    assert "a alone" in client.get("/v1/studies/easy").json()["answer_in_words"]
    assert client.get("/v1/studies").json()["studies"][0]["progress"] == 1
    extended = client.post("/v1/studies/easy/extension", json={"delta": 1e-30}).json()
    assert extended == {"delta": 1e-30, "answer": extended["answer"]}


def test_keys(client):
    def twice(path, body, key):
        answers = [client.post(path, json=body, headers={"Idempotency-Key": key}) for _ in range(2)]
        assert answers[0].status_code == answers[1].status_code < 300, answers[1].text
        return [answer.content for answer in answers]

    first, second = twice("/v1/studies", {"name": "mix", "problem": STAR}, "new")
    assert first == second
    first, second = twice("/v1/studies/mix/pulls", {"n": 3}, "three")
    assert first == second
    _, second = twice(
        "/v1/studies/mix/rewards", {"rewards": [{"arm": "a", "reward": 1.0}] * 2}, "told"
    )
    assert [one["outcome"] for one in json.loads(second)["rewards"]] == ["repeated"] * 2
    first, second = twice("/v1/studies/mix/extension", {"delta": 0.01}, "smaller")
    assert first == second
    twice("/v1/studies/mix/notes", {"text": "once"}, "noted")
    events = client.get("/v1/studies/mix/journal").json()["events"]
    kinds = [event["event"] for event in events]
    assert kinds == ["asked"] * 3 + ["elsewhere"] * 2 + ["extended", "noted"]
    other = client.post(
        "/v1/studies/mix/pulls", json={"n": 4}, headers={"Idempotency-Key": "three"}
    )
    refused(other, 409, "conflict", "used for another request")
    spaced = client.post("/v1/studies/mix/pulls", json={}, headers={"Idempotency-Key": "a b"})
    refused(spaced, 422, "setting", "Idempotency-Key")


def test_metrics_name_only_so_many_studies(client, sqlite_url):
    for i in range(503):
        sx.Study.create(sqlite_url, f"s{i}", star()).close()
    assert len(client.get("/v1/studies?limit=3").json()["studies"]) == 3
    counted = client.get("/metrics").text
    assert 'simplexplore_studies{state="running"} 503.0' in counted
    assert counted.count("simplexplore_study_pending{") == 500


def test_pages_of_studies(client, sqlite_url):
    for i in range(7):
        client.post("/v1/studies", json={"name": f"s{i}", "problem": STAR})
    whole = client.get("/v1/studies").json()
    assert {*whole} == {"studies"}
    found, after = [], None
    for size in (3, 3, 1):
        page = client.get("/v1/studies", params={"limit": 3} | ({"after": after} if after else {}))
        found += page.json()["studies"]
        assert len(page.json()["studies"]) == size
        after = page.json().get("next")
        assert (after is None) == (size == 1)
    assert found == whole["studies"]
    # One that changes meanwhile moves to the front; nothing comes twice.
    first = client.get("/v1/studies?limit=3").json()
    client.post("/v1/studies/s0/pulls", json={})
    second = client.get("/v1/studies", params={"limit": 9, "after": first["next"]}).json()
    assert [one["name"] for one in second["studies"]] == ["s3", "s2", "s1"]
    assert "next" not in client.get("/v1/studies?limit=7").json()
    # Several may have changed at the same moment.
    execute(sqlite_url, "UPDATE studies SET changed = 1.0")
    first = client.get("/v1/studies?limit=4").json()
    second = client.get("/v1/studies", params={"limit": 4, "after": first["next"]}).json()
    assert sorted(one["name"] for one in first["studies"] + second["studies"]) == [
        f"s{i}" for i in range(7)
    ]
    for query in ("limit=0", "limit=10001", "after=x", "after=1.0", "after=nan:s1"):
        refused(client.get(f"/v1/studies?{query}"), 422, "setting", "query")


def test_correcting_and_pausing(client, study):
    pull = client.post(f"{study}/pulls", json={"n": 1}).json()["pulls"][0]
    client.post(f"{study}/rewards", json={"rewards": [{"pull": pull["id"], "reward": 9.0}]})
    assert client.get(f"{study}/pulls").json() == {"pulls": []}
    body = {"pull": pull["id"], "reason": "spilt"}
    for _ in range(2):
        done = client.post(f"{study}/voids", json=body, headers={"Idempotency-Key": "v"})
        assert (done.json()["voids"], done.json()["reason"]) == (2, "spilt")
    refused(client.post(f"{study}/voids", json=body), 422, "pull", "has no reward")
    assert client.get(f"{study}/pulls").json() == {"pulls": [pull]}
    for _ in range(2):
        assert client.post(f"{study}/pause", json={}).status_code == 204
    refused(client.post(f"{study}/pulls", json={"n": 1}), 409, "paused", "is paused and gives no")
    assert client.get(study).json()["state"] == "paused"
    assert client.post(f"{study}/archive", json={}).status_code == 204
    assert client.get("/v1/studies").json()["studies"] == []
    listed = client.get("/v1/studies", params={"archived": "true"}).json()["studies"]
    assert [one["state"] for one in listed] == ["archived"]
    reward = {"rewards": [{"arm": "a", "reward": 1.0}]}
    refused(client.post(f"{study}/rewards", json=reward), 409, "paused", "archived and takes no")
    assert client.post(f"{study}/resume", json={}).status_code == 204
    text = client.get(f"{study}/problem")
    assert (text.text, text.headers["content-type"]) == (STAR, "text/plain; charset=utf-8")
    assert 'simplexplore_studies{state="running"} 1.0' in client.get("/metrics").text
    assert client.post(f"{study}/verification").json() == {"sound": True}


def test_files_of_rewards(client, study):
    wrong = {"csv": "arm;reward\na;1,5\nq;1\n", "check": False}
    found = client.post(f"{study}/imports", json=wrong).json()
    assert [row["reward"] for row in found["rows"]] == [1.5]
    assert [fault["line"] for fault in found["faults"]] == [3]
    assert client.get(study).json()["head"] == 0
    good = {"csv": "arm;reward\na;1,5\nb;1\n"}
    for check, head in ((True, 0), (False, 2), (False, 2)):
        body = good | {"check": check}
        found = client.post(f"{study}/imports", json=body, headers={"Idempotency-Key": "k"}).json()
        assert (len(found["rows"]), found["faults"]) == (2, [])
        assert client.get(study).json()["head"] == head
    assert {row["outcome"] for row in found["rows"]} == {"repeated"}
    refused(client.post(f"{study}/imports", json={"csv": "x,y\n1,2"}), 422, "setting", "first line")
