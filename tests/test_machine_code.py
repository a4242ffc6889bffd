"""Kernels as Python and as machine code: the same bits, never stale, kept where nobody else writes.

Each test runs in processes of its own, as users start them.
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import both_ways

RUNS = """
    import sys
    import simplexplore as sx
    problem = sx.Problem(3, dict(c="a1 <= 0.5"), means=[0.9, 0.5, 0.1])
    given = dict(zip(("sampler", "threshold"), sys.argv[1:]))
    found = sx.simulate(problem, runs=3, max_steps=200, workers=1, **given)
    print(found.pulls.tolist())
"""


def started(code, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-W", "error", *code, *map(str, arguments)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    """What a process printed, and said on stderr."""
    out, said = process.communicate()
    assert process.returncode == 0, said
    return out.strip(), said


def python(code, *arguments, **environment):
    """The output of a fresh process."""
    return ended(started(["-c", textwrap.dedent(code)], *arguments, **environment))[0]


def simulated(*files, cache=None, **environment):
    """Counts of a few runs, with files of one's own."""
    where = {} if cache is None else {"SIMPLEXPLORE_CACHE": str(cache)}
    return json.loads(python(RUNS, *files, **where, **environment))


# ---------------------------------------------------------------- one switch, the same bits


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same runs as machine code, and as Python."""
    script, own = [both_ways.__file__], tmp_path_factory.mktemp("own") / "powers.py"
    machine = started(script, own)
    plain = started(script, own, NUMBA_DISABLE_JIT="1")
    return [json.loads(ended(process)[0]) for process in (machine, plain)]


CASES = [name for name, *_ in both_ways.cases("powers.py")]


@pytest.mark.parametrize("name", CASES)
def test_runs_as_python_and_as_machine_code_are_the_same(name, both):
    machine, plain = (made[name] for made in both)
    assert machine == plain


def test_live_explorations_need_no_compiler():
    code = """
        import sys
        import simplexplore as sx
        for rewards in (sx.Gaussian(1.0), sx.Bernoulli()):
            explorer = sx.Explorer(sx.Problem(3, rewards=rewards), sampler="top-two")
            for step in range(40):
                explorer.tell(explorer.ask(), float(step % 2))
        print("numba" in sys.modules)
    """
    assert python(code) == "False"


# ---------------------------------------------------------------- one's own files


def sampler(arm, **more):
    """A file that puts all on one arm."""
    lines = [f"{name} = {value!r}" for name, value in more.items()]
    lines += ["def allocate(config, table, run, scratch):", "    run.w[:] = 0.0"]
    return "\n".join([*lines, f"    run.w[{arm}] = 1.0", ""])


def most_played(pulls):
    return max(range(3), key=lambda a: pulls[0][a])


def test_an_edited_file_is_never_run_as_it_was(tmp_path):
    mine = tmp_path / "mine.py"
    for arm in (0, 2, 0):
        times = mine.stat() if mine.exists() else None
        mine.write_text(sampler(arm))
        if times:  # an editor, or a checkout, may keep the time
            os.utime(mine, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert most_played(simulated(mine, "gk16")) == arm


def test_an_edited_file_beside_it_is_never_run_as_it_was(tmp_path):
    mine, other = tmp_path / "mine.py", tmp_path / "other.py"
    mine.write_text(sampler(0, WITHIN_CONSTRAINTS="other.py"))
    code = RUNS.replace("means=", 'scenario="anytime", means=')
    for arm in (2, 1):
        other.write_text(sampler(arm))
        assert most_played(json.loads(python(code, mine, "gk16"))) == arm


# ---------------------------------------------------------------- where it is kept


def test_two_processes_and_files_cut_off_do_no_harm(tmp_path):
    """Both find nothing there, wait for each other, and say for how long."""
    folder = tmp_path / "new" / "cache"
    code = ["-c", textwrap.dedent(RUNS), "uniform", "gk16"]
    crew = [started(code, SIMPLEXPLORE_CACHE=str(folder)) for _ in range(2)]
    (one, said), (other, _) = map(ended, crew)
    assert folder.stat().st_mode & 0o777 == 0o700
    expected = simulated("uniform", "gk16")
    assert json.loads(one) == json.loads(other) == expected
    assert all(line.startswith("compiling") for line in said.splitlines())
    files = [file for file in folder.rglob("*") if file.is_file() and file.stat().st_size]
    assert files
    for file in files:
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2])
    assert simulated("uniform", "gk16", cache=folder) == expected


@pytest.fixture
def refusal():
    """What is said of a folder that is named for machine code."""

    def say(folder):
        command = ["-m", "simplexplore", "simulate", str(both_ways.EXAMPLES / "star.toml")]
        process = started([*command, "--runs", "1"], SIMPLEXPLORE_CACHE=str(folder))
        out, said = process.communicate()
        assert (process.returncode, out) == (2, "")
        assert said.startswith("Error: ")
        return " ".join(said.split())

    return say


def test_folders_that_others_could_write_to_are_refused(tmp_path, refusal):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    for mode in (0o770, 0o707, 0o1777):
        folder.chmod(mode)
        assert "can be written by others" in refusal(folder)
    folder.chmod(0o700)
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert "is a link" in refusal(link)
    tmp_path.chmod(0o777)
    assert "can be written by others" in (said := refusal(folder))
    assert "SIMPLEXPLORE_CACHE" in said
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_folders_of_others_are_refused(tmp_path, refusal):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    assert "belongs to another user" in refusal(folder)
    os.chown(folder, 0, 0)
    os.chown(tmp_path, 12345, 12345)
    assert "belongs to another user" in refusal(folder)


def test_a_folder_of_ones_choice_that_cannot_be_made(tmp_path, refusal):
    (tmp_path / "file").write_text("")
    said = refusal(tmp_path / "file" / "x")
    assert "machine code cannot be kept in SIMPLEXPLORE" in said


def test_without_a_folder_machine_code_lasts_as_long_as_the_process(tmp_path):
    (tmp_path / "file").write_text("")
    home = {"SIMPLEXPLORE_CACHE": "", "XDG_CACHE_HOME": str(tmp_path / "file")}
    assert simulated("uniform", "gk16", **home) == simulated("uniform", "gk16")
