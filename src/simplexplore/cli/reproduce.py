"""The command ``reproduce``: the paper's figures and tables, and how its claims fare."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from simplexplore.errors import SettingError

from .options import AsJson, ClusterAddress, Device, Workers
from .terminal import console, progress


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", show_default="all", help="What to reproduce."),
    ] = None,
    list_parts: Annotated[bool, typer.Option("--list", help="Name all parts and exit.")] = False,
    runs: Annotated[
        int | None,
        typer.Option(metavar="N", show_default="as in the paper", help="Runs of each sampler."),
    ] = None,
    workers: Workers = None,
    device: Device = "cpu",
    cluster: ClusterAddress = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the report and all numbers.")
    ] = Path("reproduction-output"),
    as_json: AsJson = False,
) -> None:
    """Reproduce figures and tables of the paper; what is finished in DIR is not run again."""
    from simplexplore.report.table import Column, Table, text_column
    from simplexplore.reproduction import PARTS, find_parts
    from simplexplore.reproduction import reproduce as run
    from simplexplore.simulation.cluster import executor_at

    if list_parts:
        rows = [(part.name, part.source, part.title) for part in PARTS.values()]
        if as_json:
            keys = ("name", "source", "title")
            typer.echo(json.dumps({"parts": [dict(zip(keys, r, strict=True)) for r in rows]}))
            return
        columns = (Column("name", "left"), text_column("in the paper"), text_column("what it is"))
        table = Table("What can be reproduced", columns)
        for row in rows:
            table.add_row(*row)
        table.print(console())
        return
    for option, value in (("--runs", runs), ("--workers", workers)):
        if value is not None and value < 1:
            raise SettingError(f"{option} must be 1 or more; got {value}.")
    parts = find_parts(names or [])
    if out.exists() and not out.is_dir():
        raise SettingError(f"cannot reproduce into {str(out)!r}: it is a file, not a folder.")
    began = time.monotonic()
    try:
        with executor_at(cluster) as executor, _Bars() as bars:
            report = run(
                parts,
                out,
                runs=runs,
                workers=workers,
                device=device,
                executor=executor,
                progress=bars.show,
            )
    except KeyboardInterrupt:
        typer.echo(
            f"Interrupted. What is finished stays in {out}; the same command resumes.",
            err=True,
        )
        raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps({**report, "seconds": time.monotonic() - began}))
        return
    verdicts = ", ".join(f"{count} {name}" for name, count in report["verdicts"].items() if count)
    typer.echo(f"Claims: {verdicts}.")
    typer.echo(f"Report: {report['page']}")


class _Bars:
    """A bar for what is under way on a terminal, else a line when something new begins."""

    def __init__(self) -> None:
        self._bars = progress("done")
        self._task: Any = None
        self._label = ""

    def __enter__(self) -> "_Bars":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def show(self, label: str, done: int, total: int) -> None:
        """Say how far something is."""
        if self._bars.disable:
            if label != self._label:
                typer.echo(label, err=True)
        elif label != self._label:
            self._task = self._bars.add_task(label, completed=done, total=total or None)
        else:
            self._bars.update(self._task, completed=done, total=total or None)
        self._label = label
