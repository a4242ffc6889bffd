"""The style that all tables for a terminal have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console

# Rows beyond this are counted in words.
MAX_ROWS = 15


def print_limited(console: Console, table: Table, total: int, what: str) -> None:
    """Print a table, and how many rows of the total it leaves out."""
    console.print()
    console.print(table)
    if total > MAX_ROWS:
        console.print(f"... and {total - MAX_ROWS} more {what}", style="dim")


def titled_table(title: str) -> Table:
    """An empty table in the style of all of them."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
