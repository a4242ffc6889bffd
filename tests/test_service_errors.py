"""What the service refuses, and how it fails."""

import logging

from service_client import refused, serving


def test_what_does_not_fit(client, study):
    for body, where in (
        ({"rewards": [{"reward": "one", "pull": "x"}]}, "the number 'one' is not a number"),
        (
            {"rewards": [{"reward": "1,234", "pull": "x"}]},
            "may be 1234 or 1.234: write one of them",
        ),
        ({"rewards": [{"reward": 1, "pul": "x"}]}, r"body\.rewards\.0\.pul"),
        ({"rewards": [{"reward": True, "pull": "x"}]}, r"body\.rewards\.0\.reward"),
        ({"rewards": [{"reward": 1, "arm": "a\0"}]}, "NUL"),
        ({}, r"body\.rewards: Field required"),
        ([], "body"),
    ):
        refused(client.post(f"{study}/rewards", json=body), 422, "setting", where)
    for text, status in ((b"{", 422), (b'"\xff"', 400), (b"\xff", 400)):
        headers = {"Content-Type": "application/json"}
        assert client.post(f"{study}/rewards", content=text, headers=headers).status_code == status
    nan = client.post(
        f"{study}/rewards",
        content='{"rewards": [{"arm": "a", "reward": NaN}]}',
        headers={"Content-Type": "application/json"},
    )
    refused(nan, 422, "reward", "finite numbers; got nan")
    refused(client.post(f"{study}/pulls", json={"n": 10_001}), 422, "setting", "less than or equal")
    two = {"rewards": [{"arm": "a", "reward": 1.0}, {"arm": "q", "reward": 1.0}]}
    refused(client.post(f"{study}/rewards", json=two), 422, "setting", "reward 2: there is no arm")
    assert client.get(f"{study}/journal").json()["events"] == []
    refused(client.get("/nothing"), 404, "about:blank", "Not Found")
    refused(client.delete(study), 405, "about:blank", "Method Not Allowed")


def test_a_program_that_fails_says_nothing_of_itself(sqlite_url, caplog):
    def fail():
        raise RuntimeError("secret reason")

    with serving(sqlite_url) as client, caplog.at_level(logging.INFO, "simplexplore.service"):
        client.app.add_api_route("/v1/fail", fail)
        answer = client.get("/v1/fail")
    refused(answer, 500, "service", "its log says why")
    assert "secret reason" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "secret reason" in caplog.text


def test_a_store_that_is_gone(tmp_path):
    path = tmp_path / "gone.db"
    with serving(path) as client:
        assert client.get("/health").json()["status"] == "ok"
        for file in tmp_path.iterdir():
            file.unlink()
        path.mkdir()
        answer = client.get("/v1/studies")
        refused(answer, 503, "store", "^the store was deleted or replaced")
        assert str(tmp_path) not in answer.text
        assert answer.headers["retry-after"]
        assert client.get("/health").status_code == 503
