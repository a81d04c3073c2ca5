"""`ulak breakers`: which destinations are closed off, and letting them try again."""

from __future__ import annotations

from typing import Annotated

import typer

from ulak.cli.command import Api, Shown, asks, lines, table
from ulak.errors import Invalid

ID_LETTERS = 16
EMPTY = "No breaker is open. A destination is closed off after it has failed several times in a row."

breakers = typer.Typer(help="Look at circuit breakers and reset them.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(breakers, name="breakers")


@asks(breakers, "list")
async def list_(api: Api) -> Shown:
    """Breakers that are not closed."""
    answer = await api.ask("GET", "/api/breakers")
    return answer, table(answer["breakers"], "id", "destination", "state", "failures", "untilAt", empty=EMPTY)


@asks(breakers)
async def reset(
    api: Api,
    which: Annotated[str | None, typer.Argument(metavar="[ID|DESTINATION]")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> Shown:
    """Close a breaker, so that its destination is tried at once."""
    if which is None and not everything:
        raise Invalid("name a breaker by its id or its destination, or give --all; see: ulak breakers list")
    # What looks like an id may be a destination all the same, so it is asked for as both.
    named = {"id": which if which is not None and len(which) == ID_LETTERS else None, "destination": which}
    answer = await api.ask("POST", "/api/breakers/reset", body={**named, "all": everything})
    return answer, lines(f"{answer['reset']} closed.")
