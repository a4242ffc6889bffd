"""What commands on one study have in common: they open it, and print an outcome."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from simplexplore.errors import SimplexploreError

from .options import DEFAULT_STORE, AsJson, StoreUrl
from .terminal import say

if TYPE_CHECKING:
    from simplexplore.report.document import Document
    from simplexplore.study.study import Study


class Outcome(NamedTuple):
    """What a command found or did.

    Attributes
    ----------
    data : mapping
        For `--json`.
    text : str, Document or None
        Otherwise; None prints nothing.
    status : int
        The exit status.
    """

    data: Mapping[str, Any]
    text: "str | Document | None"
    status: int = 0


def study_command(group: typer.Typer, **settings: Any) -> Callable[..., Callable[..., Outcome]]:
    """Make a command of a function that takes a study and options, and returns an `Outcome`."""

    def decorated(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
        @wraps(function)
        def command(name: str, store: str, as_json: bool, **options: Any) -> None:
            from simplexplore.study.study import Study

            with Study.open(store, name) as study:
                outcome = function(study, **options)
            say(outcome.data, outcome.text, as_json=as_json)
            if outcome.status:
                raise typer.Exit(outcome.status)

        _, *own = inspect.signature(function).parameters.values()
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter("name", keyword, annotation=StudyName),
            *(one.replace(kind=keyword) for one in own),
            inspect.Parameter("store", keyword, default=DEFAULT_STORE, annotation=StoreUrl),
            inspect.Parameter("as_json", keyword, default=False, annotation=AsJson),
        ]
        # The program reads these.
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        group.command(**settings)(command)
        return function

    return decorated


def _names_in_store(ctx: typer.Context, incomplete: str) -> list[str]:
    """Studies whose names begin so, for a shell that completes them."""
    from simplexplore.study.study import Study

    try:
        studies = Study.list(ctx.params.get("store") or DEFAULT_STORE)
    except SimplexploreError:
        return []
    return [study["name"] for study in studies if study["name"].startswith(incomplete)]


StudyName = Annotated[
    str, typer.Argument(metavar="NAME", help="The study's name.", autocompletion=_names_in_store)
]
Key = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Sent again under this name, it happens once.")
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept in the journal.")]


def with_answer(study: "Study", words: str) -> str:
    """What a command did, and the answer if the study has one."""
    return f"{words}\n{study.answer_in_words}" if study.stopped else words
