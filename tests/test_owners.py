"""Pulls with owners: mine and others', handed over, given back; in a store of each kind."""

import json
import re

import pytest

import simplexplore as sx
from commands import run
from service_client import bearer, new_token, refused
from workers import star


def ids(pulls):
    return [pull.id for pull in pulls]


def test_mine_and_others(url):
    study = sx.Study.create(url, "mix", star())
    ours = study.ask(3, by="kitchen 2", key="monday")
    assert {pull.by for pull in ours} == {"kitchen 2"}
    assert study.ask(3, by="kitchen 2", key="monday") == ours
    nobodys = study.ask(2)
    assert {pull.by for pull in nobodys} == {None}
    assert study.pending() == [*ours, *nobodys]
    assert study.pending(by="kitchen 2") == ours
    for arm in "abcde":
        assert [pull.arm for pull in study.pending(arm=arm)] == [arm]
    assert study.pending(limit=2) == ours[:2]
    assert study.pending(after=2, limit=2) == [ours[2], nobodys[0]]
    # Handed over, and back; a second time changes nothing.
    assert ids(study.assign([ours[0], nobodys[1].id], "Anna")) == [ours[0].id, nobodys[1].id]
    head = study.head
    study.assign(ours[:1], "Anna")
    assert study.head == head
    assert study.events(limit=100)[-1]["numbers"] == [1, 5]
    assert ids(study.pending(by="Anna")) == [ours[0].id, nobodys[1].id]
    study.assign(ours[:1], "kitchen 2")
    study.assign(ours[:1], "Anna")
    other = sx.Study.open(url, "mix")
    assert other.pending() == study.pending()
    assert ids(other.pending(by="kitchen 2")) == ids(ours[1:])
    assert study.verify()
    study.tell(ours[0], 1.0)
    for wrong, words in ((ours[0], "has a reward"), ("x-1-0000", "belongs to another study")):
        with pytest.raises(sx.PullError, match=words):
            study.assign([ours[1], wrong], "Eve")
    assert ids(study.pending(by="Eve")) == []
    for name in ("", " ", "x" * 51, "a\nb", None):
        with pytest.raises(sx.SettingError, match="a name of 1 to 50 characters"):
            study.assign(ours[1:], name)


def test_pulls_that_were_not_made(url):
    """They expire at once, their arms are asked for again, and a late reward still counts."""
    study = sx.Study.create(url, "mix", star())
    pulls = study.ask(5, by="Anna")
    assert ids(study.release(pulls[1:3], "the oven broke")) == ids(pulls[1:3])
    assert ids(study.pending()) == ids([pulls[0], *pulls[3:]])
    assert [event["reason"] for event in study.events(5)] == ["the oven broke"] * 2
    assert study.release(pulls[1:3]) == []
    again = study.ask(2)
    assert sorted(pull.arm for pull in again) == sorted(pull.arm for pull in pulls[1:3])
    assert study.tell(pulls[1], 1.0).outcome == "late"
    study.tell(pulls[0], 1.0)
    with pytest.raises(sx.PullError, match="has a reward; if that is wrong, void it"):
        study.release([pulls[3], pulls[0]])
    assert pulls[3].id in ids(study.pending())
    assert study.verify()
    study.archive()
    for refused_now in (lambda: study.release(pulls[3:]), lambda: study.assign(pulls[3:], "Bo")):
        with pytest.raises(sx.PausedError, match="is archived and records nothing"):
            refused_now()


def test_owners_do_not_change_what_is_asked_for(sqlite_url):
    one, other = (sx.Study.create(sqlite_url, name, star()) for name in ("one", "other"))
    for study, by in ((one, None), (other, "Anna")):
        for pull in study.ask(12, by=by):
            study.tell(pull, float(len(pull.arm)))
    other.assign(other.ask(3), "Bo")
    assert [pull.arm for pull in one.ask(3)] == [pull.arm for pull in other.pending()]


def test_a_snapshot_knows_owners(sqlite_url):
    study = sx.Study.create(sqlite_url, "mix", star())
    study.tell_many([(pull, 1.0) for pull in study.ask(2000)])
    waiting = study.ask(3, by="Anna")
    study.tell_many([(pull, 1.0) for pull in study.ask(10)])  # a snapshot at event 4,000
    assert sx.Study.open(sqlite_url, "mix").pending(by="Anna") == waiting


def test_on_the_command_line(sqlite_url):
    sx.Study.create(sqlite_url, "mix", star())
    place = ("mix", "--store", sqlite_url)
    asked = run("study", "ask", *place, "-n", "3", "--by", "kitchen 2").stdout
    first, second, _ = (line.split("\t")[0] for line in asked.splitlines())
    assert re.fullmatch(r"(\S+\t[a-e]\tkitchen 2\n){3}", asked)
    run("study", "assign", *place[:1], first, *place[1:], "--by", "Anna")
    released = run("study", "release", *place[:1], second, *place[1:], "--reason", "ill", "--json")
    assert [pull["id"] for pull in json.loads(released.stdout)["pulls"]] == [second]
    assert run("study", "pending", *place, "--by", "Anna").stdout.startswith(f"{first}\t")
    assert len(run("study", "pending", *place).stdout.splitlines()) == 2


def test_over_http(client, study, service):
    given = client.post(f"{study}/pulls", json={"n": 5, "by": "kitchen 2"}).json()["pulls"]
    assert {pull["by"] for pull in given} == {"kitchen 2"}
    page = client.get(f"{study}/pulls", params={"by": "kitchen 2", "limit": 2}).json()
    assert page == {"pulls": given[:2], "next": 2}
    page = client.get(f"{study}/pulls", params={"after": page["next"], "limit": 3}).json()
    assert page == {"pulls": given[2:]}
    moved = {"pulls": [given[0]["id"]], "by": "Anna"}
    assert client.post(f"{study}/pulls/assign", json=moved).json()["pulls"][0]["by"] == "Anna"
    gone = {"pulls": [given[1]["id"]]}
    assert len(client.post(f"{study}/pulls/release", json=gone).json()["pulls"]) == 1
    found = client.get(f"{study}/pulls", params={"arm": given[1]["arm"]}).json()
    assert found == {"pulls": []}
    refused(client.get(f"{study}/pulls", params={"limit": 0}), 422, "setting", "limit")
    remote = service.create("other", star())
    pulls = remote.ask(4, by="Anna")
    remote.assign(pulls[:2], "Bo")
    assert ids(remote.release(pulls[2:3])) == [pulls[2].id]
    assert [pull.by for pull in remote.pending()] == ["Bo", "Bo", "Anna"]
    assert ids(remote.pending(by="Bo", limit=1, after=1)) == [pulls[1].id]


def test_without_a_name_the_note_of_the_token_says_who(client, study, sqlite_url):
    _, text = new_token(sqlite_url, "run", "--note", "kitchen 1")
    given = client.post(f"{study}/pulls", json={}, headers=bearer(text)).json()["pulls"]
    assert given[0]["by"] == "kitchen 1"
