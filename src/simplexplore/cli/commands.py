"""Groups of commands whose help names no value behind a flag."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


def _without_values(parameters: Any) -> Any:
    """Parameters as they are, flags without the type that typer would name behind them."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> Any:
        return _without_values(super().get_params(ctx))


class Group(TyperGroup):
    """Commands under one name."""

    def get_params(self, ctx: Any) -> Any:
        return _without_values(super().get_params(ctx))


class Commands(typer.Typer):
    """A group to which commands are added; alone, it prints its help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": Group, "no_args_is_help": True, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a function as a command."""
        return super().command(name, **{"cls": _Command, **settings})
