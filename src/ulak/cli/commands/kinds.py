"""`ulak kinds`: which job kinds there are, and steering them while they are served."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ulak.cli.command import Api, Shown, asks, lines, segment, table
from ulak.errors import Invalid

kinds = typer.Typer(help="Look at job kinds; pause, resume and bound them live.", no_args_is_help=True)
Kind = Annotated[str, typer.Argument(metavar="KIND")]


def register(app: typer.Typer) -> None:
    app.add_typer(kinds, name="kinds")


@asks(kinds, "list")
async def list_(api: Api) -> Shown:
    """Kinds that have a handler, unfinished jobs, or a control."""
    page = await api.ask("GET", "/api/kinds")
    return page, table(
        page["items"],
        "kind",
        "paused",
        "concurrency",
        "declared",
        "jobs",
        "oldestAt",
        empty="No kinds. Declare a handler: @ulak.handles(kind).",
    )


@asks(kinds)
async def pause(api: Api, kind: Kind) -> Shown:
    """Accept jobs of a kind and let them wait; attempts that run end as usual."""
    return await _change(api, kind, {"paused": True})


@asks(kinds)
async def resume(api: Api, kind: Kind) -> Shown:
    """Let the jobs of a kind run again."""
    return await _change(api, kind, {"paused": False})


@asks(kinds, "set")
async def set_(
    api: Api,
    kind: Kind,
    concurrency: Annotated[int | None, typer.Option(help="Most jobs at once, in each process.")] = None,
    declared: Annotated[bool, typer.Option("--declared", help="As many as its handler declares.")] = False,
) -> Shown:
    """Bound how many jobs of a kind run at once."""
    if (concurrency is None) == (not declared):
        raise Invalid("give --concurrency N or --declared")
    return await _change(api, kind, {"concurrency": concurrency})


async def _change(api: Api, kind: str, change: dict[str, Any]) -> Shown:
    state = await api.ask("PATCH", f"/api/kinds/{segment(kind, slashes=True)}", body=change)
    most = "as many as its handler declares" if state["concurrency"] is None else f"at most {state['concurrency']}"
    now = "is paused; resumed, it runs" if state["paused"] else "runs"
    return state, lines(f"{kind} {now} {most} at once in each process.")
