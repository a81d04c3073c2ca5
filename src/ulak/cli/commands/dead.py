"""`ulak dead`: browse dead letters, mend them, send them again, drop them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import track

from ulak.cli.command import Api, Shown, asks, each, lines, segment, table
from ulak.errors import Invalid
from ulak.spine.units.dead_letters import ERROR_CLASSES

dead = typer.Typer(help="Look at dead letters, mend them, send them again.", no_args_is_help=True)

PAGE = 500
COLUMNS = ("id", "kind", "attempt", "code", "cause", "settledAt", "errorClass", "payload")
EMPTY = "No dead letters. A job is here when its last attempt has failed, or when it can never work."
Kind = Annotated[str | None, typer.Option(help="Only this kind.")]
ErrorClass = Annotated[str | None, typer.Option(help=f"Only of this class: {', '.join(ERROR_CLASSES)}.")]
Contains = Annotated[str | None, typer.Option(help="Only with this text in the cause.")]
Code = Annotated[str | None, typer.Option(help="Why, for machines: SMTP_TIMEOUT, WEBHOOK_HTTP_503.")]
DiedBefore = Annotated[str | None, typer.Option(metavar="INSTANT", help="For example 2027-01-01T00:00:00Z.")]
DiedAfter = Annotated[str | None, typer.Option(metavar="INSTANT", help="For example 2027-01-01T00:00:00Z.")]
DeadId = Annotated[str, typer.Argument(metavar="ID")]


def register(app: typer.Typer) -> None:
    app.add_typer(dead, name="dead")


@asks(dead, "list")
async def list_(
    api: Api,
    kind: Kind = None,
    error_class: ErrorClass = None,
    contains: Contains = None,
    code: Code = None,
    died_before: DiedBefore = None,
    died_after: DiedAfter = None,
    after: Annotated[str | None, typer.Option(help="Only ids above this one: the next page.")] = None,
    limit: Annotated[int, typer.Option(help="Most rows.")] = 50,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show payloads as they are, not masked.")] = False,
) -> Shown:
    """Dead letters, oldest first."""
    wanted = _filter(kind, error_class, contains, died_before, died_after, code)
    page = await api.ask("GET", "/api/dead", {**wanted, "after": after, "limit": limit, "reveal": reveal})
    return page, table(page["dead"], *COLUMNS, empty=EMPTY)


def _filter(
    kind: str | None,
    error_class: str | None,
    contains: str | None,
    died_before: str | None,
    died_after: str | None,
    code: str | None,
) -> dict[str, str]:
    given = {
        "kind": kind,
        "errorClass": error_class,
        "contains": contains,
        "diedBefore": died_before,
        "diedAfter": died_after,
        "code": code,
    }
    return {name: value for name, value in given.items() if value is not None}


@asks(dead)
async def edit(
    api: Api,
    identifier: DeadId,
    payload: Annotated[str, typer.Argument(metavar="JSON", help="The new payload; @FILE reads it, - takes the input.")],
) -> Shown:
    """Replace a dead letter's payload before it is sent again."""
    await api.ask("PUT", f"/api/dead/{segment(identifier)}/payload", body=_payload(payload))
    return {"id": identifier}, lines(
        f"The payload of {identifier} is replaced; send it: ulak dead redrive {identifier}"
    )


def _payload(given: str) -> Any:
    try:
        text = sys.stdin.read() if given == "-" else Path(given[1:]).read_text("utf-8") if given[:1] == "@" else given
        return msgspec.json.decode(text)
    except OSError as error:
        raise Invalid(f"{given[1:]} can't be read ({error.strerror}); @FILE names a file, - takes the input") from None
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise Invalid(f"the payload is not JSON: {error}") from None


@asks(dead)
async def drop(api: Api, identifiers: Annotated[list[str], typer.Argument(metavar="ID...")]) -> Shown:
    """Drop dead letters for good."""
    await each(identifiers, lambda one: api.ask("DELETE", f"/api/dead/{segment(one)}"))
    return {"dropped": identifiers}, lines(f"Dropped: {', '.join(identifiers)}")


@asks(dead)
async def redrive(
    api: Api,
    identifiers: Annotated[list[str] | None, typer.Argument(metavar="[ID...]")] = None,
    kind: Kind = None,
    error_class: ErrorClass = None,
    contains: Contains = None,
    code: Code = None,
    died_before: DiedBefore = None,
    died_after: DiedAfter = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters there are.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which would go.")] = False,
    rate: Annotated[float | None, typer.Option(help="So many a second.", min=0.001)] = None,
) -> Shown:
    """Send dead letters again: the ones named, or all that fit."""
    wanted = _filter(kind, error_class, contains, died_before, died_after, code)
    if identifiers and (wanted or everything or rate is not None):
        raise Invalid("ids say which to send, and they go at once: give them without a filter, --all or --rate")
    if identifiers:
        return await send_again(api, identifiers, dry_run=dry_run)
    if not wanted and not everything:
        raise Invalid("name dead letters by their ids or by a filter, such as --kind, or give --all")
    body = {**wanted, "all": everything, "dryRun": dry_run}
    if dry_run or rate is None:
        answer = await api.ask("POST", "/api/dead/redrive", body=body)
        return answer, _told(answer, dry_run=dry_run)
    return await _send_at_a_rate(api, wanted, rate)


async def send_again(api: Api, identifiers: list[str], *, dry_run: bool = False) -> Shown:
    answer = await api.ask("POST", "/api/dead/redrive", body={"ids": identifiers, "dryRun": dry_run})
    missing = [one for one in identifiers if one not in answer["ids"]]
    if missing:
        raise Invalid(
            f"{len(answer['ids'])} of {len(identifiers)} {'would go' if dry_run else 'went'}; "
            f"not among the dead letters, or their unique key is taken: {', '.join(missing[:20])}"
        )
    return answer, _told(answer, dry_run=dry_run)


def _told(answer: dict[str, Any], *, dry_run: bool) -> Any:
    return lines(f"{answer['matched']} would go." if dry_run else f"{answer['redriven']} went back to work.")


async def _send_at_a_rate(api: Api, wanted: dict[str, str], rate: float) -> Shown:
    """Paced here, so that it can be watched and stopped."""
    ids: list[str] = []
    after: str | None = "0"
    while after is not None:
        page = await api.ask("GET", "/api/dead", {**wanted, "after": after, "limit": PAGE})
        ids += [one["id"] for one in page["dead"]]
        after = page["after"]
    went: list[str] = []
    for identifier in track(ids, "sending again", console=Console(stderr=True)):
        went += (await api.ask("POST", "/api/dead/redrive", body={"ids": [identifier]}))["ids"]
        await asyncio.sleep(1 / rate)
    answer = {"matched": len(ids), "redriven": len(went), "ids": went}
    return answer, _told(answer, dry_run=False)
