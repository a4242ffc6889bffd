"""Tutorials are scripts: run when the documentation is built, shown with what they print and draw.

A script has cells, as notebooks and editors know them: `# %% [markdown]` begins prose, `# %%`
Python, `# %% [hidden]` Python of which only the output is shown, `# %% [shell]` commands. What a page
shows is what came of running it; a script that fails fails the build.

    python docs/tutorials/runner.py plan_an_experiment OUT
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
# What pages show or offer; databases and tokens stay where they were made.
KEPT = (".csv", ".pdf", ".png", ".tex")
CELL = re.compile(r"^# %%(?: \[(hidden|markdown|shell)\])?\n", re.MULTILINE)


@dataclass
class Page:
    """A tutorial that was run: its text, and the files that it made."""

    text: str = ""
    files: dict[str, bytes] = field(default_factory=dict)


def cells(source: str) -> list[tuple[str, str]]:
    """Kind and text of each cell."""
    parts = CELL.split(source)[1:]
    return [
        (kind or "python", text.strip("\n"))
        for kind, text in zip(parts[::2], parts[1::2], strict=True)
    ]


def run(script: Path) -> Page:
    """Run a script in an empty folder with the examples in it."""
    page, names = Page(), {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        for example in EXAMPLES.iterdir():
            if example.is_file():
                shutil.copy(example, place)
        given = set(Path(place).iterdir())
        for kind, text in cells(script.read_text(encoding="utf-8")):
            before = set(Path(place).glob("*.png"))
            if kind == "markdown":
                page.text += (
                    re.sub(r"^# ?", "", text, flags=re.MULTILINE) + "\n\n"
                )
            elif kind == "shell":
                page.text += _shell(text)
            else:
                page.text += _python(
                    text, names, script, shown=kind != "hidden"
                )
            for picture in sorted(set(Path(place).glob("*.png")) - before):
                words = picture.stem.replace("-", " ")
                page.text += f"![{words}]({script.stem}-{picture.name})\n\n"
        page.files = {
            f"{script.stem}-{path.name}": path.read_bytes()
            for path in set(Path(place).iterdir()) - given
            if path.suffix in KEPT
        }
    link = f"*This page is [{script.name}]({script.name}), run when it was built.*\n"
    return Page(page.text + link, page.files)


def _python(
    text: str, names: dict[str, Any], script: Path, *, shown: bool
) -> str:
    """Run Python; what it prints, and the value of its last expression."""
    tree = ast.parse(text, script.name)
    last = (
        tree.body.pop()
        if tree.body and isinstance(tree.body[-1], ast.Expr)
        else None
    )
    printed, html = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, script.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(
                compile(ast.Expression(last.value), script.name, "eval"), names
            )
            if hasattr(value, "_repr_html_"):
                html = f"{value._repr_html_()}\n\n"
            elif value is not None:
                printed.write(f"{value!r}\n")
    code = f"```python\n{text}\n```\n\n" if shown else ""
    output = (
        f"```text\n{printed.getvalue().rstrip()}\n```\n\n"
        if printed.getvalue()
        else ""
    )
    return f"{code}{output}{html}"


def _shell(text: str) -> str:
    """Run commands; ours is the one of this Python."""
    shown = ""
    for command in re.sub(r"^# ?", "", text, flags=re.MULTILINE).splitlines():
        ours = re.sub(
            r"^simplexplore\b", f"{sys.executable} -m simplexplore", command
        )
        done = subprocess.run(
            ours,
            shell=True,
            check=False,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "COLUMNS": "80",
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
        )
        if done.returncode:
            raise RuntimeError(f"{command}\n{done.stderr}")
        shown += f"$ {command}\n{done.stdout}"
    return f"```console\n{shown.rstrip()}\n```\n\n"


def scripts() -> list[Path]:
    """All tutorials."""
    return sorted(
        path for path in HERE.glob("*.py") if path.name != Path(__file__).name
    )


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page for each tutorial, and its pictures, while mkdocs collects files."""
    from mkdocs.structure.files import File

    for script in scripts():
        page = run(script)
        files.append(
            File.generated(
                config, f"tutorials/{script.stem}.md", content=page.text
            )
        )
        for name, data in page.files.items():
            files.append(
                File.generated(config, f"tutorials/{name}", content=data)
            )
    return files


if __name__ == "__main__":
    out = Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    found = run(HERE / f"{sys.argv[1]}.py")
    (out / f"{sys.argv[1]}.md").write_text(found.text, encoding="utf-8")
    for name, data in found.files.items():
        (out / name).write_bytes(data)
