"""The server as a program, and the commands of tokens."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import simplexplore as sx
from commands import invoke
from servers import Process
from service_client import until, watch
from workers import star


def test_the_end_is_quiet(tmp_path):
    """Told to stop, a server finishes what it is doing and lets its watchers go."""
    sx.Study.create(tmp_path / "s.db", "mix", star())
    with Process(tmp_path / "s.db", tmp_path / "log") as running:
        seen = []
        arguments = running.port, "/v1/studies/mix/events", 99, None, seen
        watcher = threading.Thread(target=watch, args=arguments)
        watcher.start()
        until(lambda: seen)
        started = time.monotonic()
        running.stop()
        assert time.monotonic() - started < 15
        watcher.join(60)
        assert not watcher.is_alive()
        events = [json.loads(line)["event"] for line in running.log().splitlines()]
        assert events[0] == "ready"
        assert "stopping" in events
        assert "failed" not in events


def test_told_to_stop_before_it_has_begun(tmp_path):
    """Whenever the signal comes: it ends without a traceback, and nothing is left running."""
    sx.Study.create(tmp_path / "s.db", "mix", star())
    command = [sys.executable, "-c", "from simplexplore.cli.app import main; main()", "serve"]
    command += ["--store", str(tmp_path / "s.db"), "--port", "0"]
    for seconds in (0.7, 1.2, 1.7):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as served:
            time.sleep(seconds)
            served.send_signal(signal.SIGTERM)
            _, errors = served.communicate(timeout=60)
        assert b"Traceback" not in errors


def test_tokens_from_the_command_line(tmp_path):
    store = tmp_path / "s.db"
    made = invoke(
        "token", "create", "--role", "run", "--note", "kitchen", "--store", store, "--json"
    )
    made = json.loads(made.stdout)
    plain = invoke("token", "create", "--store", store)
    assert re.fullmatch(r"sx_[0-9a-f]{8}_[\w-]{43}\n", plain.stdout)
    assert "cannot be shown again" in plain.stderr
    listed = json.loads(invoke("token", "list", "--store", store, "--json").stdout)["tokens"]
    assert {(one["role"], one["note"]) for one in listed} == {("run", "kitchen"), ("read", "")}
    shown = invoke("token", "list", "--store", store).stdout
    assert made["id"] in shown
    assert made["token"].split("_", 2)[2] not in shown
    revoked = invoke("token", "revoke", made["id"], "--store", store)
    assert revoked.stdout == f"Token {made['id']} (run) is revoked.\n"
    assert f"{made['id']}  run" in invoke("token", "list", "--store", store).stdout
    assert "(revoked)" in invoke("token", "list", "--store", store).stdout


def test_mistakes_on_the_command_line(tmp_path):
    store = tmp_path / "s.db"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        for arguments, words in (
            (("serve", "--store", store, "--host", "0.0.0.0"), "its store has no tokens"),
            (("serve", "--store", store, "--port", taken), "Address already in use"),
            (("serve", "--store", store, "--host", "nowhere.invalid"), "has no tokens"),
            (("serve", "--store", tmp_path / "no" / "s.db"), "there is no folder"),
            (("token", "create", "--role", "boss", "--store", store), "unknown role 'boss'"),
            (("token", "create", "--note", "a\nb", "--store", store), "note is one line"),
            (("token", "revoke", "12345678", "--store", store), "there is no token '12345678'"),
            (("token", "list", "--store", tmp_path / "none.db"), "there is no file"),
        ):
            result = invoke(*arguments)
            assert (result.exit_code, result.stdout) == (2, "")
            assert re.search(words, result.stderr), result.stderr
    assert "everybody on this machine" in invoke("token", "list", "--store", store).stdout


def test_a_missing_extra(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "simplexplore.service.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = invoke("serve", "--store", tmp_path / "s.db")
    assert result.exit_code == 2
    assert (
        "the service needs the package 'uvicorn'; install 'simplexplore[service]'" in result.stderr
    )


def test_the_sample_study(tmp_path, monkeypatch):
    """What `make serve` shows."""
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "examples")
    import dashboard

    process, url = dashboard.start(str(tmp_path / "s.db"))
    try:
        dashboard.work(url, pause=0.0, rounds=2)
        dashboard.work(url, pause=0.0, rounds=1)  # goes on where it was
        dashboard.work(url, name="yours")
        with sx.connect(url) as service:
            assert service.open("tastings").status()["rewards"] == 9
            assert len(service.open("yours").pending()) == 3
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
