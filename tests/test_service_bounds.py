"""A problem file over HTTP: how hard it is, and what is wrong at which line."""

import re

import pytest

import simplexplore as sx
from service_client import STAR
from workers import star


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("a + b <= 0.5", "a + z <= 0.5", 11, "unknown arm 'z'"),
        ("delta = 0.1", "delta = 7", 3, "strictly between 0 and 1"),
        ("delta = 0.1", "delta = ", 3, "not valid TOML"),
        ('"gaussian"', '"gausian"', 7, "did you mean 'gaussian'"),
        ("sigma = 1", "sgma = 1", 8, "did you mean 'sigma'"),
        ("a + b <= 0.5", "a + b >= 2", 11, "cannot hold"),
    ],
)
def test_errors_at_the_line(client, old, new, line, words):
    text = STAR.replace(old, new)
    text = (
        text if "means" in text else text.replace("scenario", "means = [1, 2, 3, 4, 5]\nscenario")
    )
    assert text != STAR
    line = next(
        i for i, one in enumerate(text.splitlines(), 1) if new.split()[0] in one and new in one
    )
    for path, body in (("/v1/bound", {}), ("/v1/studies", {"name": "wrong"})):
        answer = client.post(path, json={"problem": text, **body})
        assert re.search(words, answer.json()["detail"])
        assert (answer.status_code, answer.json()["line"]) == (422, line)


def test_bound_before_a_study(client):
    known = star(delta=0.1, means=[1.0, 0.5, 0.4, 0.95, 0.8])
    answer = client.post("/v1/bound", json={"problem": known.to_text()}).json()
    bound = sx.lower_bound(known)
    assert answer["bound"]["policy"] == bound.policy.tolist()
    assert answer["bound"]["scenarios"]["anytime"]["lower_bound"] == bound.samples
    assert answer["headline"].startswith(f"At least {bound.samples:.4g} samples")
    unknown = client.post("/v1/bound", json={"problem": STAR}).json()
    assert unknown["bound"] is None
    assert "gives no means" in unknown["headline"]
    tied = client.post("/v1/bound", json={"problem": STAR, "means": [1.0] * 5}).json()
    assert tied["bound"]["scenarios"]["anytime"]["lower_bound"] is None


def test_bound_with_limits_on_exploration_and_costs(client):
    text = star(delta=0.1, means=[1.0, 0.5, 0.4, 0.95, 0.8]).to_text()
    text = text.replace('scenario = "anytime"', "")
    limits = '[exploration]\nfair = "each >= 0.05"\n[costs]\na = 3\n'
    answer = client.post("/v1/bound", json={"problem": f"{text}\n{limits}"})
    assert answer.status_code == 200
    found = answer.json()
    assert found["scenario"] == "exploration"
    own = found["bound"]["scenarios"]["exploration"]
    bound = sx.lower_bound(sx.Problem.from_text(f"{text}\n{limits}"))
    assert own["lower_bound"] == bound.cost
    assert own["lower_bound_samples"] == bound.samples
    assert found["headline"].startswith(f"At least a cost of {bound.cost:,.0f}")
    for changed, words in (
        (limits.replace("0.05", "0.3"), "no allocation of samples satisfies all limits in"),
        (limits.replace("a = 3", "a = 0"), "the cost of arm 'a' must be a positive number"),
    ):
        refused = client.post("/v1/bound", json={"problem": f"{text}\n{changed}"})
        assert refused.status_code == 422
        assert words in refused.json()["detail"]
        assert refused.json()["line"] > len(text.splitlines())


def test_a_problem_file_is_written_from_what_it_says(client):
    """There and back: also names and tables that no form shows."""
    text = """arms = ["a b", "c", "d"]
epsilon = 0.25

[groups]
few = ["a b", "c"]

[constraints]
"at most 30% of `a b`" = "`a b` <= 0.3"

[costs]
c = 2

[measured.toxicity]
limit = "<= 0.4"
sigma = 0.2
tolerance = 0.05
"""
    said = client.post("/v1/bound", json={"problem": text}).json()["document"]
    assert said["arms"] == ["a b", "c", "d"]
    written = client.post("/v1/problem", json={"document": said}).json()["problem"]
    assert client.post("/v1/bound", json={"problem": written}).json()["document"] == said
    assert sx.Problem.from_text(written).to_text() == sx.Problem.from_text(text).to_text()
    # What makes no sense is written, too: what is wrong with it is for the bound to say.
    odd = client.post("/v1/problem", json={"document": {"arms": ["a"], "delta": 7}}).json()
    assert odd == {"problem": 'arms = ["a"]\ndelta = 7\n'}
    for wrong in ({"arms": None}, {"arms": [[["a"]]]}, {"x": {"y": {"z": {"w": 1}}}}):
        assert client.post("/v1/problem", json={"document": wrong}).status_code == 422


def test_what_no_study_can_be_made_of_has_no_bound_either(client):
    """Limits that pulls keep are not proven for this sampler: refused in the same words."""
    for body in (
        {"problem": STAR, "sampler": "oracle"},
        {"problem": STAR, "threshold": "none"},
        {
            "problem": STAR.replace('"gaussian"', '"bernoulli"').replace("sigma = 1", ""),
            "threshold": "kk21",
            "sampler": "nobody",
        },
    ):
        bound = client.post("/v1/bound", json=body)
        made = client.post("/v1/studies", json={"name": "no", **body})
        assert made.status_code == bound.status_code == 422
        assert made.json()["detail"] == bound.json()["detail"]
