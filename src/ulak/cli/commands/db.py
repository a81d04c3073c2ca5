"""`ulak db`: the store's schema, its health, backups, coming back from one, and moving to PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulak.cli.command import Api, Shown, asks, lines
from ulak.cli.option import Assignments, ConfigFile, load_settings
from ulak.errors import Unavailable

db = typer.Typer(help="Look after the store.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(db, name="db")


@db.command()
def migrate(config: ConfigFile = None, assignments: Assignments = None) -> None:
    """Bring the store's schema up to this release. Stop the processes that work on it first."""
    from ulak.cli.schema import migrate_store

    applied = migrate_store(load_settings(config, assignments).settings)
    typer.echo(f"Applied: {', '.join(map(str, applied))}." if applied else "The schema is up to date.")


@asks(db)
async def check(api: Api) -> Shown:
    """Is every accepted job accounted for? The exit code is 1 when not, or when the schema does not fit."""
    found = await api.ask("GET", "/api/db")
    if found["differences"]:
        raise Unavailable(
            "jobs are not accounted for: "
            + ", ".join(f"{kind} {number:+}" for kind, number in found["differences"].items())
        )
    held = f" {found['held']} are held after a restore; let them go: ulak db resume." if found["held"] else ""
    warned = [f"Warning: {warning}." for warning in found["warnings"]]
    return found, lines(f"{found['store']} is in order: {found['live']} unfinished jobs, none lost.{held}", *warned)


@db.command()
def backup(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")],
    config: ConfigFile = None,
    assignments: Assignments = None,
) -> None:
    """Write a consistent copy of a SQLite store, even while a server runs."""
    from ulak.cli.schema import back_up

    back_up(load_settings(config, assignments).settings, path)
    typer.echo(f"Wrote {path}, {path.stat().st_size} bytes.")


@db.command()
def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A backup of a SQLite store.")],
    replace: Annotated[bool, typer.Option("--replace", help="Put the present store aside, if there is one.")] = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
) -> None:
    """Make a backup the store. Its unfinished work is held, because it may have been done since: see db resume."""
    from ulak.cli.restore import restore_store

    held = restore_store(load_settings(config, assignments).settings, path, replace=replace)
    _tell_held(held)


@db.command()
def move(
    to: Annotated[str, typer.Option("--to", metavar="ADDRESS", help="An empty PostgreSQL database: postgresql://…")],
    source: Annotated[
        str | None, typer.Option("--from", metavar="ADDRESS", help="The SQLite store; otherwise the setting store.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
) -> None:
    """Move a SQLite store to PostgreSQL, with its unfinished work and its past. Stop the server first."""
    from ulak.cli.move import move_store, show_plan

    settings = load_settings(config, assignments).settings
    settings = settings.model_copy(update={"store": source}) if source else settings
    if dry_run:
        show_plan(settings.store, to)
    else:
        move_store(settings, to)


@db.command()
def hold(config: ConfigFile = None, assignments: Assignments = None) -> None:
    """Hold all unfinished work and void all leases: for a PostgreSQL store that pg_restore has just brought back."""
    from ulak.cli.restore import hold_store

    _tell_held(hold_store(load_settings(config, assignments).settings))


def _tell_held(held: int) -> None:
    typer.echo(f"{held} unfinished jobs are held. Look (ulak jobs list), cancel what is done, then: ulak db resume")


@asks(db)
async def resume(api: Api) -> Shown:
    """Let go what a restore has held: jobs get their due times back, and what is overdue runs."""
    answer = await api.ask("POST", "/api/db/resume")
    return answer, lines(f"{answer['resumed']} jobs were let go.")
