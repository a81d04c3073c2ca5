"""`ulak jobs`: list, show, cancel and redrive jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from ulak.cli.command import Api, Shown, asks, each, lines, segment, table
from ulak.cli.commands.dead import send_again
from ulak.cli.table import fact, local
from ulak.spine.units.records import STATUSES

jobs = typer.Typer(help="Look at jobs and step in.", no_args_is_help=True)

COLUMNS = ("id", "kind", "status", "acceptedAt", "attempt", "key", "priority", "dueAt", "settledAt")
JobId = Annotated[str, typer.Argument(metavar="ID")]
JobIds = Annotated[list[str], typer.Argument(metavar="ID...")]
Reveal = Annotated[bool, typer.Option("--reveal", help="Show payloads as they are, not masked.")]


def register(app: typer.Typer) -> None:
    app.add_typer(jobs, name="jobs")


@asks(jobs, "list")
async def list_(
    api: Api,
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
    status: Annotated[str | None, typer.Option(help=f"Only this status: {', '.join(STATUSES)}.")] = None,
    key: Annotated[str | None, typer.Option(help="Only of this key.")] = None,
    after: Annotated[str | None, typer.Option(metavar="INSTANT", help="Accepted then or later.")] = None,
    until: Annotated[str | None, typer.Option(metavar="INSTANT", help="Accepted before then.")] = None,
    before: Annotated[str | None, typer.Option(help="Only ids below this one: the next page.")] = None,
    limit: Annotated[int, typer.Option(help="Most rows.")] = 50,
) -> Shown:
    """Jobs, newest first, live and finished."""
    query = {"kind": kind, "status": status, "key": key, "acceptedAfter": after, "acceptedBefore": until}
    page = await api.ask("GET", "/api/jobs", {**query, "before": before, "limit": limit})
    return page, table(
        page["jobs"], *COLUMNS, empty="No jobs fit. Enqueue one: POST /api/jobs, or ulak.enqueue in Python."
    )


@asks(jobs)
async def show(api: Api, identifier: JobId, reveal: Reveal = False) -> Shown:
    """One job with its timeline."""
    job = await api.ask("GET", f"/api/jobs/{segment(identifier)}", {"reveal": reveal})
    facts = [f"{name}: {fact(value)}" for name, value in job.items() if name != "timeline" and value is not None]
    steps = [
        f"  {local(one['at'])}  {one['word']} ({one['attempt']})  {fact(one['detail'])}" for one in job["timeline"]
    ]
    return job, lines(*facts, "timeline:", *steps)


@asks(jobs)
async def cancel(api: Api, identifiers: JobIds) -> Shown:
    """Cancel jobs: at once while they wait, by a mark that the worker sees while they run."""
    verdicts = await each(identifiers, lambda one: api.ask("POST", f"/api/jobs/{segment(one)}/cancel"))
    return verdicts, table(verdicts, "id", "status")


@asks(jobs)
async def redrive(api: Api, identifiers: JobIds) -> Shown:
    """Send dead jobs again, with fresh attempts."""
    return await send_again(api, identifiers)
