"""`ulak db move`: what would go, and the move itself, with the SQLite file locked from its server."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress

from ulak.app import Ulak
from ulak.cli import logs
from ulak.cli.command import table
from ulak.cli.running_server import file_of
from ulak.cli.schema import locked
from ulak.clock import SystemClock
from ulak.errors import Conflict, Misconfigured, NotFound
from ulak.masking import mask_url
from ulak.rooms import LINES
from ulak.settings import Settings
from ulak.spine.loops.rescuer import Rescuer
from ulak.spine.query import Queries
from ulak.stores import move
from ulak.stores.migrate import MOVED, judge, sqlite_format, sqlite_versions
from ulak.stores.sqlite.file_lock import holder
from ulak.stores.sqlite.reader import keep_off_foreign, open_reader
from ulak.stores.sqlite.session import open_writer, opening

sql = Queries("ulak.spine")


def show_plan(source: str, target: str) -> None:
    """Changes nothing, so a server may have the file open."""
    database = _check_addresses(source, target)
    with opening(database), contextlib.closing(open_reader(database)) as connection:
        judge(sqlite_versions(connection), LINES, "sqlite")
        move.check_target(target, LINES)
        counts = move.count_source(connection, LINES)
        foreign = move.find_foreign(connection, LINES)
    table([{"table": name, "rows": number} for name, number in counts.items()], "table", "rows")()
    typer.echo(f"{sum(counts.values())} rows would go to {mask_url(target)}. Nothing was changed.")
    _tell_foreign(foreign)
    if held_by := _holder(database):
        typer.echo(f"{database} is in use by {held_by}: stop it before the move.")


def move_store(settings: Settings, target: str) -> None:
    database = _check_addresses(settings.store, target)
    if held_by := _holder(database):
        raise Conflict(f"{database} is in use by {held_by}; stop that server or worker, then run the move again")
    if _has_arrived(database, target):
        typer.echo("The interrupted move had arrived: all of it is there.")
    else:
        move.check_target(target, LINES)  # before anything is touched
        logs.set_up_quietly(settings.log)
        asyncio.run(_rescue(settings))
        _carry(database, target)
    typer.echo(
        f"{database} is left as it was, but nobody can work on it any more. "
        "Set the setting store to the new address, and start."
    )


def _check_addresses(source: str, target: str) -> Path:
    database = file_of(source)
    if database is None:
        raise Misconfigured(f"{mask_url(source)} is not a SQLite file; name one: --from sqlite:///ulak.db")
    if not database.is_file():
        raise NotFound(f"no store {database}; check --from, or the setting store")
    if not target.startswith(("postgresql://", "postgres://")):
        raise Misconfigured(f"{mask_url(target)} is not a PostgreSQL address; name one: --to postgresql://…")
    keep_off_foreign(database)
    return database


def _holder(database: Path) -> str | None:
    return holder(database.with_name(database.name + ".lock"))


def _has_arrived(database: Path, target: str) -> bool:
    """A move that was interrupted between the two commits may be complete."""
    with opening(database), contextlib.closing(open_reader(database)) as connection:
        if sqlite_format(connection) != MOVED:
            judge(sqlite_versions(connection), LINES, "sqlite")
            return False
    with locked(database), contextlib.closing(open_writer(database)) as connection:
        return move.find_out(connection, target)


async def _rescue(settings: Settings) -> None:
    """Mark the jobs of a killed server uncertain, as every start does; a schema that does not fit is refused."""
    async with Ulak(settings=settings, work=False) as ulak:
        spine = settings.spine
        await Rescuer(ulak.store, ulak.telemetry, spine.lease_seconds, spine.poison_deaths).beat()


def _carry(database: Path, target: str) -> None:
    with locked(database), contextlib.closing(open_writer(database)) as connection:
        judge(sqlite_versions(connection), LINES, "sqlite")
        if connection.execute(sql.find_leaseholders.sqlite).fetchone() is not None:
            raise Conflict(f"a server was started on {database} meanwhile, and killed; run the move again")
        counts = _copy(connection, target, sum(move.count_source(connection, LINES).values()))
        foreign = move.find_foreign(connection, LINES)
    _tell_counts(counts)
    _tell_foreign(foreign)


def _copy(connection: sqlite3.Connection, target: str, rows: int) -> list[move.Count]:
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("moving", total=rows)
        return move.move(
            connection,
            target,
            LINES,
            SystemClock(),
            lambda name, number: bar.update(task, description=name, advance=number),
        )


def _tell_counts(counts: Iterable[move.Count]) -> None:
    rows = [count._asdict() for count in counts]
    table(rows, "table", "source", "target")()
    typer.echo(f"Moved {sum(row['target'] for row in rows)} rows; every table has the same number on both sides.")


def _tell_foreign(tables: list[str]) -> None:
    if tables:
        typer.echo(f"Not Ulak's, and so not moved: {', '.join(tables)}.")
