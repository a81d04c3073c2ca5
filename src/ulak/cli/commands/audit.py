"""`ulak audit`: who did what to which object, and whether the log is whole."""

from __future__ import annotations

from typing import Annotated

import typer

from ulak.cli.command import Api, Shown, asks, lines, table
from ulak.errors import Invalid

audit = typer.Typer(help="Look at the audit log and check it.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(audit, name="audit")


@asks(audit, "list")
async def list_(
    api: Api,
    who: Annotated[str | None, typer.Option(help="Only what this key or person did.")] = None,
    verb: Annotated[str | None, typer.Option(help="Only this verb, or all that begin with this word.")] = None,
    object_: Annotated[str | None, typer.Option("--object", help="Only what was done to this.")] = None,
    after: Annotated[str | None, typer.Option(help="Only lines below this number: the next page.")] = None,
    limit: Annotated[int, typer.Option(help="Most rows.")] = 50,
) -> Shown:
    """Lines of the audit log, newest first."""
    wanted = {"who": who, "verb": verb, "object": object_, "after": after, "limit": limit}
    page = await api.ask("GET", "/api/audit", {name: value for name, value in wanted.items() if value is not None})
    return page, table(
        page["items"],
        "seq",
        "at",
        "who",
        "verb",
        "object",
        "detail",
        empty="No lines. Pausing a kind or changing a plan leaves one.",
    )


@asks(audit, exit_status=lambda answer: 0 if answer["valid"] else 1)
async def verify(
    api: Api,
    head: Annotated[
        str | None, typer.Option(metavar="SEQ:HASH", help="A line that must be there, as an earlier run printed it.")
    ] = None,
) -> Shown:
    """Follow the chain from the first line to the last; ends with status 1 if a line does not fit."""
    answer = await api.ask("GET", "/api/audit/verify")
    if head is not None:
        seq, _, digest = head.partition(":")
        if not (seq.isascii() and seq.isdecimal() and digest):
            raise Invalid(f"--head {head!r:.100} is not SEQ:HASH; give what an earlier run printed")
        page = await api.ask("GET", "/api/audit", {"after": str(int(seq) + 1), "limit": 1})
        answer["valid"] = answer["valid"] and [line["hash"] for line in page["items"]] == [digest]
    return answer, lines(_told(answer, head))


def _told(answer: dict[str, str | bool | None], head: str | None) -> str:
    if answer["brokenAt"] is not None:
        return f"Line {answer['brokenAt']} does not fit the one before it: one was changed, or one is gone."
    if not answer["valid"]:
        return f"The line {head} is not there: the log was cut off, or is another one."
    return f"{answer['seq']} lines, each fits the one before it. Head: {answer['seq']}:{answer['hash']}"
