"""`ulak bus`: messages that their topics do not take, and dropping those that they never will."""

from __future__ import annotations

from typing import Annotated

import typer

from ulak.cli.command import Api, Shown, asks, lines, segment, table
from ulak.errors import Invalid

NOTHING = "Nothing waits: every topic takes its messages."

bus = typer.Typer(help="Look at messages that their topics do not take, and drop them.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(bus, name="bus")


@asks(bus)
async def waiting(
    api: Api,
    topic: Annotated[str | None, typer.Argument(metavar="[TOPIC]", help="The messages of this topic.")] = None,
    after: Annotated[str | None, typer.Option(help="`next` of the page above.")] = None,
    limit: Annotated[int, typer.Option(help="Most rows.")] = 50,
) -> Shown:
    """Topics that do not take their messages; of one topic, the messages."""
    if topic is None:
        answer = await api.ask("GET", "/api/bus/waiting")
        return answer, table(answer["topics"], "topic", "number", "cause", empty=NOTHING)
    page = await api.ask("GET", f"/api/bus/waiting/{segment(topic)}", {"after": after, "limit": limit})
    return page, table(page["items"], "id", "key", "bytes", empty=NOTHING)


@asks(bus)
async def drop(
    api: Api,
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    identifier: Annotated[str | None, typer.Argument(metavar="[ID]", help="One message.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that wait for the topic.")] = False,
) -> Shown:
    """Drop a message that its topic will never take; those behind it follow. Audited."""
    if (identifier is None) != everything:
        raise Invalid("name one message by its id, or give --all; see: ulak bus waiting TOPIC")
    body = {"id": identifier, "all": everything}
    answer = await api.ask("POST", f"/api/bus/waiting/{segment(topic)}/drop", body=body)
    return answer, lines(f"{answer['dropped']} dropped.")
