"""Simulations that are interrupted keep what is finished, and show how far they are."""

import json
import os
import pty
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.progress import Progress

import simplexplore as sx
from commands import STAR, invoke

PROGRAM = str(Path(sys.executable).parent / "simplexplore")
RUNS = 300
SIMULATE = ("simulate", STAR, "--runs", RUNS, "--sampler", "uniform,top-two,ctns", "--workers", 1)


def at_a_terminal(*args, until=None):
    """Run the installed program with a terminal as its error stream; its results go elsewhere.

    Ctrl-C is pressed as soon as the terminal shows what is waited for.
    """
    reading, writing = os.pipe()
    child, terminal = pty.fork()
    if child == 0:
        os.dup2(writing, 1)
        environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
        os.execve(PROGRAM, [PROGRAM, *map(str, args)], environment)
    os.close(writing)
    seen = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
        if until is not None and until in seen:
            os.write(terminal, b"\x03")
            until = None
    with os.fdopen(reading) as results:
        told = results.read()
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), told, " ".join(seen.decode().split())


def press_when(monkeypatch, method, label):
    """Press Ctrl-C when the bar of that label is to be added or updated."""
    original = getattr(Progress, method)

    def pressed(bars, task, *args, **options):
        name = task if isinstance(task, str) else bars.tasks[task].description
        if name == label:
            raise KeyboardInterrupt
        return original(bars, task, *args, **options)

    monkeypatch.setattr(Progress, method, pressed)


def test_interruption_keeps_what_is_finished(tmp_path, monkeypatch):
    press_when(monkeypatch, "update", "2/3 top-two, anytime")  # after its first block
    done = invoke(*SIMULATE, "--json", "--out", tmp_path, "--plot", tmp_path / "x.png")
    assert done.exit_code == 130
    first, second = json.loads(done.stdout)["results"]
    assert first["runs"] == first["runs_asked"] == RUNS
    assert 1 <= second["runs"] < second["runs_asked"] == RUNS
    missing = RUNS - second["runs"]
    words = f"{missing} of {RUNS} runs of top-two, anytime; {RUNS} of {RUNS} runs of ctns, anytime"
    assert done.stderr.endswith(f"Interrupted. Missing: {words}.\n")
    loaded = sx.load_results(tmp_path)
    assert [one.runs for one in loaded] == [RUNS, second["runs"]]
    # The runs that are there are the runs of an undisturbed simulation.
    problem = sx.Problem.from_file(STAR)
    kept = loaded[1].run_numbers
    whole = sx.simulate(problem, sampler="top-two", runs=int(kept[-1]) + 1)
    np.testing.assert_array_equal(loaded[1].stopping_times, whole.stopping_times[kept])
    assert (tmp_path / "x.png").exists()


def test_interruption_between_samplers(monkeypatch):
    press_when(monkeypatch, "add_task", "2/3 top-two, anytime")
    done = invoke(*SIMULATE)
    assert done.exit_code == 130
    assert "uniform" in done.stdout
    assert "uniform" not in done.stderr
    assert "300 of 300 runs of top-two, anytime; 300 of 300 runs of ctns, anytime." in done.stderr


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_interruption_before_anything_is_simulated(monkeypatch, options):
    press_when(monkeypatch, "add_task", "1/3 uniform, anytime")
    done = invoke(*SIMULATE, *options)
    assert (done.exit_code, done.stdout) == (130, "")


def test_interruption_at_a_terminal():
    """More runs than can ever be made: Ctrl-C ends them, whenever it comes."""
    code, told, seen = at_a_terminal(
        *("simulate", STAR, "--runs", 10**9, "--workers", 1, "--json"), until=b"top-two"
    )
    assert code == 130, seen
    if told:
        (entry,) = json.loads(told)["results"]
        assert 1 <= entry["runs"] < 10**9
        assert "of 1,000,000,000 runs of top-two, anytime." in seen


def test_progress_on_a_terminal_only():
    code, told, seen = at_a_terminal(
        "simulate", STAR, "--sampler", "uniform", "--runs", 20, "--json"
    )
    assert code == 0
    assert len(json.loads(told)["results"]) == 1
    assert "uniform, anytime" in seen
    assert "20/20" in seen
    assert "left" in seen
