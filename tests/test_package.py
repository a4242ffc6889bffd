"""The package as a whole: public names, and what importing it costs."""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import rooms
import simplexplore

ROOT = Path(__file__).parent.parent


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_public_name_can_be_had():
    for name in simplexplore.__all__:
        assert getattr(simplexplore, name) is not None
    shown = {name for name in dir(simplexplore) if not name.startswith("_")}
    assert shown == set(simplexplore.__all__) - {"__version__"}


def test_type_checkers_are_told_the_same_names():
    stub = ast.parse((ROOT / "src" / "simplexplore" / "__init__.pyi").read_text())
    told = {
        alias.asname: f"simplexplore.{line.module}"
        for line in stub.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    assert sorted([*told, "__version__"]) == sorted(simplexplore.__all__)
    for name, module in told.items():
        home = importlib.import_module(module)
        assert getattr(simplexplore, name) is getattr(home, name), name


def test_no_test_file_needs_another():
    for file in Path(__file__).parent.glob("*.py"):
        assert not re.search(r"^\s*(from|import) test_", file.read_text(), re.MULTILINE), file


def test_lines_of_code_are_neither_blanks_nor_comments_nor_docstrings():
    source = '''"""Doc."""

# A comment.
class A:
    """Doc
    in lines."""

    x = """text
    in lines"""  # and a comment

    def f(self):
        return (
            1,

        )
'''
    # class, two lines of x, def, return, 1 and the bracket
    assert rooms.code_lines(source, ast.parse(source)) == 7


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The wheel and the source archive, built without a network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def test_the_wheel_works_by_itself(archives, tmp_path):
    with zipfile.ZipFile(archives[0]) as wheel:
        wheel.extractall(tmp_path)
    ours = {p.relative_to(ROOT / "src") for p in (ROOT / "src").rglob("*") if p.is_file()}
    packed = {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()}
    assert {p for p in ours if "__pycache__" not in p.parts} <= packed
    path = ROOT / "examples" / "meal.toml"
    code = (
        "import simplexplore as sx; from simplexplore.service import static_files; "
        f"print(sx.__file__, round(sx.lower_bound(sx.Problem.from_file({str(path)!r})).samples, 1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [str(tmp_path / "simplexplore" / "__init__.py"), "122.1"]


def test_what_the_package_says_of_itself(archives):
    with zipfile.ZipFile(archives[0]) as wheel:
        (name,) = (n for n in wheel.namelist() if n.endswith("METADATA"))
        metadata = Parser().parsestr(wheel.read(name).decode())
    text = metadata.get_payload()
    # Nothing that needs the repository: no picture, no link but to the web.
    assert not re.search(r"!\[|<img", text)
    assert re.findall(r"\]\(([^)]*)\)", text) == ["https://proceedings.mlr.press/v238/"]
    assert "pip install simplexplore" in text
    versions = {c.rpartition(" ")[2] for c in metadata.get_all("Classifier") if "Python ::" in c}
    assert versions >= {"3.11", "3.12", "3.13", "3.14"}
    assert metadata["License-Expression"] == "BSD-3-Clause"
    pulled = [r for r in metadata.get_all("Requires-Dist") if "extra == 'all'" in r]
    assert pulled
    assert not re.search("pytest|playwright|mypy|mkdocs|dev|docs", " ".join(pulled))


def test_the_source_archive_can_be_tested_and_built_again(archives):
    with tarfile.open(archives[1]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert names >= {"README.md", "PACKAGE.md", "LICENSE", "pyproject.toml", "Makefile"}
    assert names >= {"tests/test_package.py", "docs/index.md", "examples/meal.toml"}
    assert not any("__pycache__" in name or name.startswith(".venv") for name in names)


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'simplexplore' has no attribute 'Porblem'"):
        _ = simplexplore.Porblem


@pytest.mark.parametrize("statement", ["import simplexplore", "import simplexplore.cli.app"])
def test_import_is_light(statement):
    assert modules_after(statement).isdisjoint({"numpy", "scipy", "numba", "matplotlib", "rich"})


def test_a_bound_needs_no_pictures():
    statement = "import simplexplore as sx; sx.lower_bound(sx.Problem(2), [1.0, 0.0])"
    assert modules_after(statement).isdisjoint({"matplotlib", "typer", "rich"})


def test_a_simulation_without_a_picture_loads_nothing_that_draws():
    statement = (
        "from simplexplore.cli.simulate import simulate\n"
        "try: simulate('missing.toml')\n"
        "except Exception as error: assert 'missing.toml' in str(error), error"
    )
    assert "matplotlib" not in modules_after(statement)


def documented(text):
    """Names in the sections Parameters and Attributes of a numpydoc docstring."""
    found = re.findall(
        r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w+\n---|\Z)",
        text or "",
        re.DOTALL | re.MULTILINE,
    )
    heads = re.findall(r"^(\S.*?)(?: :.*)?$", "\n".join(found), re.MULTILINE)
    return {name.strip(" *") for head in heads for name in head.split(",")}


def test_the_reference_has_every_public_name_with_its_parameters():
    page = (ROOT / "docs" / "api.md").read_text()
    hidden = set(re.findall(r"::: simplexplore\.\S+\.(\w+)\n +options:\n +members: false", page))
    undocumented = []
    for name in set(simplexplore.__all__) - {"SAMPLERS", "THRESHOLDS", "__version__"}:
        public = getattr(simplexplore, name)
        if inspect.ismodule(public):
            assert f"`sx.{name}`" in page
            continue
        if inspect.isclass(public) and issubclass(public, simplexplore.SimplexploreError):
            assert public.__doc__
            assert public.__module__ == "simplexplore.errors"  # shown as a whole
            continue
        assert f"::: {public.__module__}.{name}\n" in page, name
        callables = {name: public}
        if inspect.isclass(public) and name not in hidden:
            callables |= {
                f"{name}.{key}": getattr(public, key)
                for key, member in vars(public).items()
                if not key.startswith("_") and callable(getattr(member, "__func__", member))
            }
        for key, one in callables.items():
            given = {p for p in inspect.signature(one).parameters if not p.startswith("_")}
            told = documented(inspect.getdoc(one))
            undocumented += [f"{key}: {p}" for p in given - told - {"self"}]
    assert undocumented == ["Study: row"]  # create and open make studies, not users
