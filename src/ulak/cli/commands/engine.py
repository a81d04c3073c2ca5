"""`ulak workers`, `ulak timers` and `ulak cron`: who works on the store, what comes next, and running it now."""

from __future__ import annotations

from typing import Annotated

import typer

from ulak.cli.command import Api, Shown, asks, lines, segment, table

cron = typer.Typer(help="Look at cron entries, and run one now.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    asks(app)(workers)
    asks(app)(timers)
    app.add_typer(cron, name="cron")


async def workers(api: Api) -> Shown:
    """Processes that have the store open. `running` is known of the process that answers."""
    page = await api.ask("GET", "/api/workers")
    return page, table(page["items"], "id", "label", "running", "startedAt", "leaseAt", "node", "isThis")


async def timers(
    api: Api,
    after: Annotated[str | None, typer.Option(help="`next` of the page before, as --json shows it.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most rows.")] = 50,
) -> Shown:
    """Jobs that are put off, the nearest first."""
    page = await api.ask("GET", "/api/timers", {"limit": limit} | ({} if after is None else {"after": after}))
    return page, table(
        page["items"], "id", "kind", "dueAt", "attempt", "key",
        empty="No timers. A job with a delay, or one that is tried again later, is here.",
    )  # fmt: skip


@asks(cron, "list")
async def list_(api: Api) -> Shown:
    """Cron entries of the process that answers, with their next times."""
    page = await api.ask("GET", "/api/cron")
    return page, table(
        page["items"], "name", "expression", "nextAt", "kind", "timeZone",
        empty='No entries. Declare one: ulak.cron("nightly", "0 3 * * *", "report.make")',
    )  # fmt: skip


@asks(cron, "run")
async def run(api: Api, name: Annotated[str, typer.Argument(metavar="NAME")]) -> Shown:
    """Run a cron entry now, in addition to its scheduled times."""
    done = await api.ask("POST", f"/api/cron/{segment(name, slashes=True)}/run")
    return done, lines(f"{done['id']}  {done['name']} was enqueued.")
