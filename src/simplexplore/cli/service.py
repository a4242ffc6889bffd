"""The commands of the service: serving a store, and its tokens."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from simplexplore.errors import SettingError
from simplexplore.report.json_text import to_json

from .commands import Commands
from .options import DEFAULT_STORE, AsJson, StoreUrl
from .terminal import console

token_commands = Commands(help="Tokens: who may watch, run or change studies over HTTP.")


def serve(
    store: StoreUrl = DEFAULT_STORE,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where to listen; by default for this machine only."),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            metavar="P", min=0, max=65535, help="Port to listen on; 0 chooses a free one."
        ),
    ] = 8080,
    webhooks_anywhere: Annotated[
        bool,
        typer.Option(
            "--webhooks-anywhere",
            help="Let webhooks reach this machine and its network, too.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve studies over HTTP, with a dashboard; Ctrl-C ends it."""
    try:
        from simplexplore.service.server import serve as run
    except ModuleNotFoundError as error:
        raise SettingError(
            f"the service needs the package {error.name!r}; install 'simplexplore[service]'."
        ) from None

    def announce(url: str) -> None:
        typer.echo(to_json({"url": url}) if as_json else f"Studies are served at {url}")

    run(store, host, port, announce, webhooks_anywhere=webhooks_anywhere)


@token_commands.command()
def create(
    role: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="read (watch), run (also create, ask, tell, void, pause) or admin (also extend, "
            "archive).",
        ),
    ] = "read",
    note: Annotated[
        str, typer.Option(metavar="TEXT", show_default=False, help="Who it is for.")
    ] = "",
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown once; only its digest is stored."""
    from simplexplore.service.tokens import create_token
    from simplexplore.study.store import Store

    token, text = create_token(Store(store), role, note)
    if as_json:
        typer.echo(to_json({"token": text, **asdict(token)}))
    else:
        typer.echo(text)
        typer.echo(f"Keep it: it cannot be shown again. Its id is {token.id}.", err=True)


@token_commands.command("list")
def list_all(store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the tokens of a store, without their secrets."""
    from simplexplore.service.tokens import list_tokens
    from simplexplore.study.store import Store

    found = list_tokens(Store(store, must_exist=True))
    if as_json:
        typer.echo(to_json({"tokens": [asdict(token) for token in found]}))
        return
    if not found:
        typer.echo("No tokens: everybody on this machine may do everything.")
    for token in found:
        made = datetime.fromtimestamp(token.created, UTC).strftime("%Y-%m-%d")
        state = "" if token.revoked is None else "  (revoked)"
        console().print(f"{token.id}  {token.role:<5}  {made}  {token.note}{state}")


@token_commands.command()
def revoke(
    token_id: Annotated[
        str, typer.Argument(metavar="ID", show_default=False, help="As 'token list' shows it.")
    ],
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Revoke a token: it is refused from then on."""
    from simplexplore.service.tokens import revoke_token
    from simplexplore.study.store import Store

    token = revoke_token(Store(store, must_exist=True), token_id)
    if as_json:
        typer.echo(to_json({"id": token.id, "revoked": True}))
    else:
        typer.echo(f"Token {token.id} ({token.role}) is revoked.")
