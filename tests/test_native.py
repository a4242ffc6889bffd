"""Kernels as machine code: the same bits, filed safely, compiled once."""

import importlib
import inspect
import itertools
import math
import os
import subprocess
import sys
import textwrap
import time
from collections import defaultdict
from pathlib import Path

import numba
import numpy as np
import pytest

import simplexplore as sx
from engines import natively
from nightly import nightly
from permissions import open_folder, ordinary_user
from simplexplore.exploration import compile as compiling
from simplexplore.exploration.compile import Program
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.plan import prepare
from simplexplore.exploration.seeding import streams
from simplexplore.exploration.stopping import THRESHOLDS
from simplexplore.kernels import blocks, cache, native, pipeline, records, thresholds
from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.slots import FORMS, Slots
from simplexplore.problem.problem import SCENARIOS
from simplexplore.samplers import SAMPLERS, find_sampler


def problem(rewards=None, **settings):
    return sx.Problem(
        5,
        {"front": "a1 + a2 <= 0.5", "back": "a3 + a4 <= 0.5"},
        rewards or sx.Gaussian(1.0),
        means=[0.9, 0.5, 0.4, 0.85, 0.7],
        **settings,
    )


def run_python(code, **environment):
    """The output of a fresh process."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---------------------------------------------------------------- records


def test_every_record_has_a_layout():
    for kind in (*vars(records).values(), Slots):
        if isinstance(kind, type) and issubclass(kind, tuple) and kind is not tuple:
            places = blocks.fields(kind.__name__)
            assert tuple(places)[:-1] == kind._fields
            known = {*blocks.ARRAYS, *FORMS, "int", "float", "bool"}
            nested = {"Limits", "Slots", "Table", "Tilts"}
            assert {annotation for annotation, _ in places.values()} <= known | nested | {""}


def test_blocks_refuse_what_compiled_code_would_misread():
    shares = records.Shares(np.zeros(3), np.zeros(3))
    assert len(blocks.Block(shares, lambda *_: 0).words) == 4
    for wrong in (np.zeros(3, np.float32), np.zeros((3, 1)), np.zeros(6)[::2]):
        with pytest.raises(TypeError, match="is no Vector"):
            blocks.Block(shares._replace(w=wrong), lambda *_: 0)


# ---------------------------------------------------------------- one compiler, the same bits


@pytest.mark.parametrize("kind", ["closed", "root", pytest.param("learned", marks=nightly)])
def test_everything_compiles_and_is_kept(kind):
    # In one process, which shares what units have in common; later tests find it on disk.
    files = {
        find_sampler(name).in_scenario(scenario).file
        for name, scenario in itertools.product(SAMPLERS, SCENARIOS)
    }
    for entry, file, rule, sticking, regretting in itertools.product(
        compiling._ENTRIES, sorted(files), THRESHOLDS, (False, True), (False, True)
    ):
        program = Program(file, None, rule, kind, sticking, regretting)
        program.compile(entry)
        assert program.is_ready(entry)
        for unit in program.units(entry):
            assert unit._shelf.holds(unit.name)


@pytest.mark.parametrize("rewards", [sx.Gaussian(1.0), sx.Bernoulli()], ids=lambda x: x.name)
@pytest.mark.parametrize("sampler", ["top-two", "ctns", "cge"])
def test_compiled_and_uncompiled_events_are_the_same(sampler, rewards, monkeypatch):
    plan = prepare(problem(rewards, scenario="anytime"), sampler, "mixture")
    kinds = np.tile([records.ASKED, records.ASKED, records.TOLD, records.TOLD], 30)
    states = []
    for long in (math.inf, -1.0):  # never, always
        monkeypatch.setattr(compiling.Stopwatch, "LONG", long)
        engine = Engine(plan)
        engine.forget(streams(3, range(1))[0])
        draw = np.random.default_rng(5)
        if long < 0:
            engine._program.compile("fold")
        for i in range(0, len(kinds), 4):
            arms = np.full(4, -1)
            engine.fold(kinds[i : i + 2], arms[:2], np.zeros(2))
            arms[2:] = arms[1::-1]  # told in another order
            means = np.asarray(plan.problem.means)[arms[2:]]
            rewarded = (draw.random(2) < means).astype(float)
            engine.fold(kinds[i + 2 : i + 4], arms[2:], rewarded)
        assert engine._has_blocks == (long < 0)
        states.append(engine.state())
    assert states[0].keys() == states[1].keys()
    for name, array in states[0].items():
        assert array.tobytes() == states[1][name].tobytes(), name


@kernel
def indices_of_all_sorts(setting, table, run, memory, row):  # noqa: ARG001
    taken = memory.arms[row]
    taken[-1] += run.n[row] + run.n[-2] + memory.arms[-1, 0]
    memory.arms[-1, row - 2] = taken[0] + run.integers[records.VERTEX]
    memory.arms[0, 1:] = run.n[3]
    run.choices[row] ^= run.choices[-1]
    taken = 2  # another type
    return taken * memory.arms[row, -1] + memory.arms.shape[1] + taken**row + row // taken


@kernel
def control_of_all_sorts(setting, table, run, memory, row):  # noqa: ARG001
    total = 0.0
    for i in range(row - 3, 7):
        for k in range(i, -3, -2):
            if k == 4:
                continue
            if i * k > 20:
                break
            total = max(0.5 * total, total + i * k)
        else:
            total -= 1.0
    for i in range(2, 9, row + 1):
        total += i
    for _ in range(5, row):
        total = math.nan
    chosen = memory.arms[row]
    if total > 0.0:
        chosen = run.n
    for a in range(3):
        if a > 0:
            before = chosen[a - 1]
        if a > 1:
            chosen[a] += before
    least, row = min(int(-total), row), max(row, 2)
    never = math.nan
    memory.arms[row, 0], memory.arms[row, 1] = max(never, 1.0), max(1.0, never)
    memory.arms[row, 2], memory.arms[row, 3] = min(never, 1.0), min(-0.0, 0.0)
    return total + least


@kernel
def types_of_all_sorts(setting, table, run, memory, row):  # noqa: ARG001
    """Names that stand for a whole number and for a fraction, before and after each other."""
    count = setting.size
    share = count
    if row > 0:
        share = count / 3
    for _ in range(count):
        _, least = share, -1
        if share > 1.0:
            least = 2
            share = share - 0.5
        run.n[least + 1] += share
    status = records.STOPPED
    if share < 1.0:
        status = records.GO_ON
    return status + (count // 2) / 4 + least


OURS = "simplexplore.kernels.of_this_test"  # where no index counts from the end


@pytest.mark.parametrize(
    ("function", "module"),
    [
        (indices_of_all_sorts, __name__),
        (control_of_all_sorts, __name__),
        (control_of_all_sorts, OURS),
        (types_of_all_sorts, __name__),
        (types_of_all_sorts, OURS),
    ],
)
def test_statements_are_compiled_as_in_python(function, module, monkeypatch):
    monkeypatch.setattr(function, "__module__", module)
    found = []
    for is_compiled in (False, True):
        engine = Engine(prepare(problem(), "top-two", "gk16"))
        setting, table, run, memory = engine.records
        memory = memory._replace(arms=np.arange(15.0).reshape(3, 5))
        run.n[:] = np.arange(5) / 7
        run.choices[:] = [2**63 + 5, 3, 2**64 - 1, 9]
        given = [setting, table, run, memory]
        if is_compiled:
            code = cache.code_of(inspect.getsource(function))
            unit = native.Unit(function, "Level", "closed", code)
            given = [blocks.Block(one, lambda *_: 0) for one in given]
            value = unit.entry(*(block.address for block in given), 1)
        else:
            value = function(*given, 1)
        found.append((value, *(x.tobytes() for x in (memory.arms, run.choices, run.n))))
    assert found[0] == found[1]


def test_numba_is_what_the_pipeline_expects():
    # If this fails after an update of numba: pipeline.py, frontend.py and lowering.py must follow
    # it. Until then plain.py serves, slower to compile and without a disk cache.
    assert native._compiler() is pipeline.compiled


def test_numba_finds_scipy_when_it_needs_it():
    # Compiling kernels does not import it, which would take long.
    found = run_python("""
        import sys
        import numba
        import numpy as np
        from simplexplore.kernels import pipeline
        pipeline._declare()
        before = "scipy.linalg" in sys.modules
        product = numba.njit(lambda x: np.dot(x, x))(np.full((2, 2), 3.0))
        print(before, product.tolist())
    """)
    assert found == "False [[18.0, 18.0], [18.0, 18.0]]"


def test_plain_numba_is_used_only_where_it_is_asked_for():
    # Doctests import every file; what is compiled after that is compiled as ever.
    importlib.import_module("simplexplore.kernels.plain")
    assert isinstance(numba.typeof(thresholds.gk16).dispatcher, pipeline._Dispatcher)


@pytest.mark.parametrize("entry", ["level", pytest.param("step", marks=nightly)])
def test_plain_numba_gives_the_same(entry, tmp_path):
    code = f"""
        import sys
        HIDE
        import simplexplore as sx
        problem = sx.Problem(3, dict(c="a1 <= 0.5"), means=[0.9, 0.5, 0.1])
        engine = (explorer := sx.Explorer(problem, "uniform", threshold="kk21"))._engine
        if {entry!r} == "level":  # which asks the threshold alone
            engine._program._used = {{"reached"}}
        engine._program.compile({entry!r})
        if {entry!r} == "step":
            engine._stopwatch.skip()
        for step in range(40):
            explorer.tell(explorer.ask(), step % 3 / 7)
        edges = range(len(engine.evidence()[0]))
        levels = [engine._natively("level", edge) for edge in edges] if {entry!r} == "level" else []
        state = dict((name, array.tobytes().hex()) for name, array in engine.state().items())
        print(levels, state, engine._blocks is not None)
        print("simplexplore.kernels.plain" in sys.modules)
    """
    hidden = code.replace("HIDE", "sys.modules['simplexplore.kernels.pipeline'] = None")
    plain = run_python(hidden, SIMPLEXPLORE_CACHE=str(tmp_path))
    ours = run_python(code.replace("HIDE", ""))
    assert plain.endswith("True\nTrue")
    assert ours.endswith("True\nFalse")
    assert plain.splitlines()[0] == ours.splitlines()[0]


def test_live_studies_need_no_compiler():
    code = """
        import sys
        import simplexplore as sx
        for rewards in (sx.Gaussian(1.0), sx.Bernoulli()):
            explorer = sx.Explorer(sx.Problem(3, rewards=rewards), sampler="top-two")
            for step in range(40):
                explorer.tell(explorer.ask(), float(step % 2))
        print("numba" in sys.modules)
    """
    assert run_python(code) == "False"


def test_machine_code_on_disk_needs_no_compiler():
    code = """
        import sys
        import simplexplore as sx
        problem = sx.Problem(3, means=[0.9, 0.5, 0.1])
        sx.simulate(problem, sampler="top-two", runs=2, workers=1)
        print("numba" in sys.modules)
    """
    run_python(code)
    assert run_python(code) == "False"


def test_machine_code_that_may_not_be_seen_is_not_there(monkeypatch):
    shelf = cache.Shelf("code", "target")
    with open_folder() as folder:
        inner = folder / "inner"
        inner.mkdir()
        monkeypatch.setattr(cache, "cache_folder", lambda: inner)
        shelf.write("unit", "symbol", b"code")
        assert shelf.holds("unit")
        with ordinary_user(folder):
            inner.chmod(0o000)
            assert not shelf.holds("unit")
            assert shelf.read("unit") is None
            inner.chmod(0o700)


def test_ones_own_code_on_disk_may_need_numba(tmp_path):
    code = f"""
        from pathlib import Path
        from simplexplore.exploration.compile import Program
        from simplexplore.samplers import find_sampler
        for power in ("edge", "(edge + 1)"):
            file = Path({str(tmp_path)!r}, f"mine{{len(power)}}.py")
            file.write_text(
                "def reached(setting, table, run, edge, statistic):\\n"
                f"    return statistic ** {{power}} > 8.0\\n"
            )
            program = Program(find_sampler("uniform").file, file, "reached", "closed", False)
            reached = program.bound("reached", program.slots.reached).entry
            print([reached(0, 0, 0, edge, 2.0) for edge in range(5)])
    """
    found = "[False, False, False, False, True]\n[False, False, False, True, True]"
    cache = {"SIMPLEXPLORE_CACHE": str(tmp_path)}
    assert [run_python(code, **cache) for _ in range(2)] == [found, found]


# ---------------------------------------------------------------- compiling behind


@pytest.mark.parametrize(
    ("events", "used", "made"),
    [(1_000, False, False), (50_000, True, False), (200_000, True, True)],
)
def test_machine_code_for_events_to_come(monkeypatch, events, used, made):
    monkeypatch.setattr(compiling.Stopwatch, "ENOUGH", 4.0)
    stopwatch = compiling.Stopwatch()
    stopwatch.foresee(events)
    assert (stopwatch.is_long, stopwatch.is_up) == (used, made)
    stopwatch.foresee(1)  # a long import does not make the next reward a long one
    assert not stopwatch.is_long


def test_machine_code_in_memory_is_used_at_once(monkeypatch):
    monkeypatch.setattr(compiling.Stopwatch, "_together", defaultdict(float))
    plan = prepare(problem(sx.Gaussian(1.0)), "top-two", "gk16")
    words = streams(3, range(1))[0]
    used = []
    for make in (Engine, lambda plan: natively(Engine(plan)), Engine):
        engine = make(plan)
        engine.begin(words)
        used.append(engine._has_blocks)
        assert not engine._stopwatch.is_up  # nothing is compiled because of it
    assert used == [False, True, True]


def test_short_runs_count_together(monkeypatch):
    monkeypatch.setattr(compiling.Stopwatch, "_together", defaultdict(float))
    monkeypatch.setattr(compiling.Stopwatch, "LONG", 0.05)
    plan = prepare(problem(sx.Gaussian(1.0)), "top-two", "gk16")
    natively(Engine(plan))._program.compile("step")  # it is on disk
    used = []
    for _ in range(3):
        engine = Engine(plan)
        with engine._stopwatch.running():
            time.sleep(0.03)
        engine.begin(streams(3, range(1))[0])
        used.append(engine._has_blocks)
    assert used == [False, True, True]


def test_a_long_study_is_compiled_in_the_background(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling.Stopwatch, "LONG", 0.0)
    monkeypatch.setattr(compiling.Stopwatch, "ENOUGH", 0.0)
    mine = tmp_path / "mine.py"  # certainly not compiled yet
    mine.write_text(
        f"# {tmp_path}\ndef allocate(setting, table, run, memory):\n"
        "    for a in range(setting.size):\n        run.w[a] = setting.inside[a]\n"
    )
    explorer = sx.Explorer(sx.Problem(2, means=[0.5, 0.4]), str(mine), delta=1e-9)
    program = explorer._engine._program
    assert not program.is_ready("step")
    began = time.monotonic()
    while not program.is_ready("step") and time.monotonic() - began < 600:
        explorer.tell(explorer.ask(), 0.5)
        time.sleep(0.01)
    assert program.is_ready("step")
    explorer.tell(explorer.ask(), 0.5)  # and now natively
    assert explorer._engine._blocks is not None


def test_who_waits_is_told_how_long(monkeypatch, capsys):
    class Slow:
        is_ready = False

        def __init__(self, function):
            self.function = function

        @property
        def address(self):
            time.sleep(0.3)
            return 1

    monkeypatch.setattr(compiling, "PATIENCE", 0.1)
    # In 0.1 s half of the first unit was made, perhaps: a fiftieth of what is left.
    monkeypatch.setattr(compiling, "_SECONDS", {"simulate_runs": 2.0})
    monkeypatch.setattr(compiling, "_SECONDS_OF_OTHERS", 12.25)
    monkeypatch.setattr(compiling, "_SECONDS_OF_NUMBA", 0.0)
    plan = prepare(problem(), "top-two", "gk16")
    program = Engine(plan)._program
    units = [Slow(unit.function) for unit in program.units("simulate")]
    monkeypatch.setattr(program, "units", lambda _: units)
    program.compile("simulate")
    said = capsys.readouterr().err
    assert len(units) == 5
    assert said == "compiling (once on this machine), about 5 s more ...\n"
    for unit in units:
        unit.is_ready = True
    program.compile("simulate")
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------- the cache


def unit(tmp_path, monkeypatch, text="X = 1.0\n"):
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    file = tmp_path / "mine.py"
    file.write_text(
        text + "def reached(setting, table, run, edge, statistic):\n    return statistic > X\n"
    )
    uniform = find_sampler("uniform").file
    program = Program(uniform, file, "reached", "closed", False)
    return program.bound("reached", program.slots.reached)


def test_a_damaged_file_is_compiled_again(tmp_path, monkeypatch):
    first = unit(tmp_path, monkeypatch)
    assert first.address
    (path,) = tmp_path.glob("*/*.code")
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:100] + b"\0" + whole[101:], b"junk\n" * 9):
        path.write_bytes(damaged)
        compiling._unit.cache_clear()
        again = unit(tmp_path, monkeypatch)
        assert again._read() == 0
        assert again.address
        assert path.read_bytes() != damaged


def test_another_text_is_another_file(tmp_path, monkeypatch):
    for text, count in (("X = 1.0\n", 1), ("X = 2.0\n", 2), ("X = 1.0\n", 2)):
        assert unit(tmp_path, monkeypatch, text).address
        assert len(list(tmp_path.glob("*/*.code"))) == count


def test_a_file_that_changes_under_a_program_is_not_misfiled(tmp_path, monkeypatch):
    first = unit(tmp_path, monkeypatch)
    (tmp_path / "mine.py").write_text("X = 7.0\ndef reached(*_):\n    return False\n")
    assert first.address  # of the text that was read
    compiling._unit.cache_clear()
    assert not unit(tmp_path, monkeypatch, "X = 7.0\n").is_ready


def test_two_processes_compile_a_thing_once(tmp_path):
    folder = tmp_path / "cache"
    code = """
        import sys, time
        from pathlib import Path
        from simplexplore.kernels import native
        made = []
        compiler = native._compiler()
        def counted(*arguments):
            made.append(arguments)
            time.sleep(0.1)
            return compiler(*arguments)
        native._compiler = lambda: counted
        from simplexplore.exploration.compile import Program
        from simplexplore.samplers import find_sampler
        program = Program(find_sampler("uniform").file, None, "kk21", "closed", False)
        program.compile("level")
        print(len(made))
    """
    crew = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=os.environ | {"SIMPLEXPLORE_CACHE": str(folder)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    made = [int(one.communicate()[0]) for one in crew]
    assert [one.returncode for one in crew] == [0, 0]
    assert sum(made) == len(list(folder.glob("*/*.code"))) > 3


def test_the_folder_is_ours_alone(tmp_path, monkeypatch):
    folder = tmp_path / "new" / "cache"
    monkeypatch.setenv("SIMPLEXPLORE_CACHE", str(folder))
    cache.cache_folder.cache_clear()
    try:
        assert cache.cache_folder() == folder
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        cache.cache_folder.cache_clear()


def test_folders_that_others_could_write_to_are_refused(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    cache.check_folder(folder)
    for mode in (0o770, 0o707, 0o1777):
        folder.chmod(mode)
        with pytest.raises(sx.SettingError, match="can be written by others"):
            cache.check_folder(folder)
    folder.chmod(0o700)
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(sx.SettingError, match="is a link"):
        cache.check_folder(link)
    tmp_path.chmod(0o777)
    with pytest.raises(sx.SettingError, match=r"can be written by others.*SIMPLEXPLORE_CACHE"):
        cache.check_folder(folder)
    tmp_path.chmod(0o1777)  # like /tmp: nobody may remove what is not theirs
    cache.check_folder(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_folders_of_others_are_refused(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    with pytest.raises(sx.SettingError, match="belongs to another user"):
        cache.check_folder(folder)
    os.chown(folder, 0, 0)
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(sx.SettingError, match="belongs to another user"):
        cache.check_folder(folder)


def test_a_folder_of_ones_choice_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SIMPLEXPLORE_CACHE", str(tmp_path / "file" / "x"))
    cache.cache_folder.cache_clear()
    try:
        with pytest.raises(sx.SettingError, match="machine code cannot be kept in SIMPLEXPLORE"):
            cache.cache_folder()
    finally:
        cache.cache_folder.cache_clear()


def test_without_a_home_machine_code_lasts_as_long_as_the_process(tmp_path):
    (tmp_path / "file").write_text("")
    code = """
        from simplexplore.exploration.compile import Program
        from simplexplore.kernels import cache
        from simplexplore.samplers import find_sampler
        program = Program(find_sampler("uniform").file, None, "kk21", "closed", False)
        program.compile("level")
        assert program.entry("level").address
        print(cache.cache_folder(), cache.lasts())
    """
    home = {"SIMPLEXPLORE_CACHE": "", "XDG_CACHE_HOME": str(tmp_path / "file")}
    folder, lasts = run_python(code, **home).split()
    assert lasts == "False"
    assert not Path(folder).exists()


def test_uncompiled_simulations_for_debugging():
    code = """
        import sys
        import simplexplore as sx
        problem = sx.Problem(3, means=[0.9, 0.5, 0.1])
        result = sx.simulate(problem, sampler="top-two", runs=2, workers=1)
        print(result.stopping_times.tolist(), "numba" in sys.modules)
    """
    plain = run_python(code, NUMBA_DISABLE_JIT="1")
    assert plain.endswith("False")
    assert plain.rpartition(" ")[0] == run_python(code).rpartition(" ")[0]
