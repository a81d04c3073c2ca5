"""`ulak keys`: make, list and revoke API keys."""

from __future__ import annotations

from typing import Annotated

import typer

from ulak.cli.command import Api, Shown, asks, lines, segment, table

keys = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(keys, name="keys")


@asks(keys, may_make=True)
async def create(
    api: Api,
    name: Annotated[str, typer.Argument(help="Whose it is, for people.")],
    scopes: Annotated[
        list[str], typer.Option("--scope", help="notify, jobs, metrics, admin, reveal, …; as often as needed.")
    ],
) -> Shown:
    """Make a key. Its token is printed once and kept nowhere."""
    made = await api.ask("POST", "/api/keys", body={"name": name, "scopes": scopes})
    told = f"Key {made['id']} ({made['name']}: {', '.join(made['scopes'])}). Its token is shown only now:"
    return made, lines(told, made["token"])


@asks(keys, "list")
async def list_(api: Api) -> Shown:
    """All keys, revoked ones too."""
    answer = await api.ask("GET", "/api/keys")
    return answer, table(
        answer["keys"], "id", "name", "scopes", "madeAt", "revokedAt", empty="No keys. Make one: ulak keys create NAME"
    )


@asks(keys)
async def revoke(api: Api, identifier: Annotated[str, typer.Argument(metavar="ID")]) -> Shown:
    """Revoke a key: at once on the server that is asked, within seconds on others."""
    await api.ask("DELETE", f"/api/keys/{segment(identifier)}")
    return {"id": identifier}, lines(f"Key {identifier} opens nothing any more.")
