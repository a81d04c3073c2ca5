"""`ulak events`: read the event log, and follow it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
import typer

from ulak.cli.command import Api, Shown, asks, lines
from ulak.cli.table import local

PAUSE_SECONDS = 1.0


def register(app: typer.Typer) -> None:
    asks(app)(events)


async def events(
    api: Api,
    after: Annotated[int, typer.Option(help="Only events above this sequence number.")] = 0,
    limit: Annotated[int, typer.Option(help="Most events of one page.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes; one line of JSON each.")] = False,
) -> Shown:
    """Events in commit order."""
    page = await api.ask("GET", "/api/events", {"after": after, "limit": limit})
    while follow:
        _print(page["events"])
        if not page["events"]:  # a page may be short while there is more
            await asyncio.sleep(PAUSE_SECONDS)
        page = await api.ask("GET", "/api/events", {"after": page["after"], "limit": limit})
    return page, lines(*map(_line, page["events"]))


def _print(found: list[dict[str, Any]]) -> None:
    for event in found:
        typer.echo(msgspec.json.encode(event).decode())


def _line(event: dict[str, Any]) -> str:
    data = "" if event["data"] is None else msgspec.json.encode(event["data"]).decode()
    about = f"{event['job'] or '-'}  {event['kind']}  {data}".rstrip()
    return f"{event['seq']:>8}  {local(event['at'])}  {event['name']:<12}  {about}"
