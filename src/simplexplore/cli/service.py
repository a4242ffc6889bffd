"""The commands of the service: serving a store, and its tokens."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from simplexplore.errors import SettingError

from .options import DEFAULT_STORE, AsJson, StoreUrl
from .terminal import say

token_commands = typer.Typer(
    no_args_is_help=True, help="Tokens: who may watch, run or change studies over HTTP."
)


def serve(
    store: StoreUrl = DEFAULT_STORE,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; else on this machine only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="P", min=0, max=65535, help="Its port; 0 chooses a free one.")
    ] = 8080,
    as_json: AsJson = False,
) -> None:
    """Serve studies over HTTP, with a dashboard; Ctrl-C ends it."""
    try:
        from simplexplore.service.server import serve as run
    except ModuleNotFoundError as error:
        raise SettingError(
            f"the service needs the package {error.name!r}; install 'simplexplore[service]'."
        ) from None

    run(
        store,
        host,
        port,
        lambda url: say({"url": url}, f"Studies are served at {url}", as_json=as_json),
    )


@token_commands.command()
def create(
    role: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="read (watch), run (also create, ask, tell, void) or admin (also archive).",
        ),
    ] = "read",
    note: Annotated[str, typer.Option(metavar="TEXT", help="Who it is for.")] = "",
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown once; only its digest is stored."""
    from simplexplore.service.tokens import create_token
    from simplexplore.study.store import Store

    token, text = create_token(Store(store), role, note)
    say({"token": text, **asdict(token)}, text, as_json=as_json)
    if not as_json:
        typer.echo(f"Keep it: it cannot be shown again. Its id is {token.id}.", err=True)


@token_commands.command("list")
def list_all(store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the tokens of a store, without their secrets."""
    from simplexplore.service.tokens import list_tokens
    from simplexplore.study.store import Store

    found = list_tokens(Store(store, must_exist=True))
    lines = [
        f"{token.id}  {token.role:<5}  {datetime.fromtimestamp(token.created, UTC):%Y-%m-%d}  "
        f"{token.note}{'' if token.revoked is None else '  (revoked)'}"
        for token in found
    ]
    words = "\n".join(lines) or "No tokens: everybody on this machine may do everything."
    say({"tokens": [asdict(token) for token in found]}, words, as_json=as_json)


@token_commands.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As 'token list' shows it.")],
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Revoke a token: it is refused from then on."""
    from simplexplore.service.tokens import revoke_token
    from simplexplore.study.store import Store

    token = revoke_token(Store(store, must_exist=True), token_id)
    words = f"Token {token.id} ({token.role}) is revoked."
    say({"id": token.id, "revoked": True}, words, as_json=as_json)
