"""Simulations that are interrupted keep what is finished, and show how far they are."""

import json
import os
import pty
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import simplexplore as sx
from commands import STAR, run
from simplexplore.simulation import simulate as runner


@pytest.fixture(autouse=True)
def interruptible():
    """Ctrl-C as in a terminal: a process in the background may have been told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_after(monkeypatch, runs):
    """Press Ctrl-C once so many runs of the last sampler are done."""
    simulate = runner.run_plan

    def wrapped(*args, progress=None, **options):
        if progress is None:  # nobody watches: nobody presses
            return simulate(*args, **options)

        def pressed(done, total):
            progress(done, total)
            if args[0].sampler.name == "top-two" and done >= runs:
                signal.raise_signal(signal.SIGINT)

        return simulate(*args, progress=pressed, **options)

    monkeypatch.setattr(runner, "run_plan", wrapped)


def test_interruption_keeps_what_is_finished(tmp_path, monkeypatch):
    interrupted_after(monkeypatch, 50)
    args = ["--sampler", "uniform,top-two,ctns", "--runs", 300, "--workers", 1]
    result = run(
        "simulate", STAR, *args, "--out", tmp_path, "--plot", tmp_path / "x.png", "--json", code=130
    )
    first, second = json.loads(result.stdout)["results"]
    assert first["runs"] == first["runs_asked"] == 300
    assert 50 <= second["runs"] < second["runs_asked"] == 300
    missing = 300 - second["runs"]
    message = result.stderr.splitlines()[-1]
    assert message == (
        f"Interrupted: {missing} of 300 runs of top-two, anytime, are missing; "
        "not simulated: ctns, anytime."
    )
    loaded = sx.load_results(tmp_path)
    assert [r.runs for r in loaded] == [300, second["runs"]]
    # The runs that are there are the runs of an undisturbed simulation.
    whole = sx.simulate(sx.Problem.from_file(STAR), sampler="top-two", runs=300)
    kept = loaded[1].run_numbers
    np.testing.assert_array_equal(loaded[1].stopping_times, whole.stopping_times[kept])
    assert (tmp_path / "x.png").exists()


def test_interruption_in_words(monkeypatch):
    interrupted_after(monkeypatch, 20)
    args = ["--sampler", "top-two", "--runs", 300, "--workers", 1]
    result = run("simulate", STAR, *args, code=130)
    assert "top-two" in result.stdout
    assert "runs of top-two, anytime, are missing." in result.stderr


@pytest.mark.parametrize("before", [0, 1])
def test_interruption_outside_a_simulation(monkeypatch, before):
    simulate = runner.run_plan
    done = []

    def interrupted(*args, **options):
        if len(done) == before:
            raise KeyboardInterrupt
        done.append(1)
        return simulate(*args, **options)

    monkeypatch.setattr(runner, "run_plan", interrupted)
    args = ["--sampler", "uniform,top-two", "--runs", 5, "--json"]
    result = run("simulate", STAR, *args, code=130)
    if before:
        assert [e["sampler"] for e in json.loads(result.stdout)["results"]] == ["uniform"]
        assert "Interrupted: not simulated: top-two, anytime." in result.stderr
    else:
        assert result.stdout == ""
        assert result.stderr.endswith("Interrupted.\n")


# ---------------------------------------------------------------------- progress


def test_progress_on_a_terminal_only():
    """Run the installed program with a terminal as its error stream."""
    program = str(Path(sys.executable).parent / "simplexplore")
    reading, writing = os.pipe()
    child, terminal = pty.fork()
    if child == 0:
        os.dup2(writing, 1)  # results go elsewhere
        args = [program, "simulate", STAR, "--sampler", "uniform", "--runs", "20", "--json"]
        os.execve(program, args, {**os.environ, "COLUMNS": "80", "TERM": "xterm"})
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
    with os.fdopen(reading) as results:
        told = json.loads(results.read())
    os.waitpid(child, 0)
    os.close(terminal)
    assert len(told["results"]) == 1
    text = seen.decode()
    assert "uniform, anytime" in text
    assert "20/20" in text
    assert "left" in text
