"""`ulak status`: is it well? One screen, the verdict first, from the running server or from the store."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import typer

from ulak.cli import logs
from ulak.cli.command import Api, AsJson
from ulak.cli.option import Assignments, ConfigFile, load_settings
from ulak.cli.running_server import HeldByWorker, elsewhere, file_of
from ulak.cli.table import local
from ulak.cli.verdict import MAX_DEAD, STATES, Observed, judge, pools_nearly_full, screen
from ulak.clock import to_millis
from ulak.errors import Error, Unavailable
from ulak.masking import mask_text
from ulak.settings import Settings


def register(app: typer.Typer) -> None:
    app.command()(status)


def status(as_json: AsJson = False, config: ConfigFile = None, assignments: Assignments = None) -> None:
    """Is it well? Exits with 0 when it works, and with 1 when not, or when no process works on the store."""
    settings = load_settings(config, assignments).settings
    logs.set_up_quietly(settings.log)
    facts = asyncio.run(_facts(settings))
    verdict = judge(facts)
    if as_json:
        document = msgspec.to_builtins(verdict) | msgspec.to_builtins(facts)
        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        typer.echo("\n".join(screen(facts, verdict)))
        if not facts.is_running and (hint := elsewhere(settings.store)):
            typer.echo(hint.strip(), err=True)
    raise typer.Exit(verdict.exit_code)


async def _facts(settings: Settings) -> Observed:
    from ulak.cli.api_client import open_api  # the HTTP stack takes a while to load

    try:
        async with open_api(settings) as api:
            return await _ask(api)
    except HeldByWorker as held:
        database = file_of(settings.store)
        assert database is not None  # only a file has a holder
        return await _look_into(database, settings.store, f"{held.holder}, which answers no HTTP")


async def _ask(api: Api) -> Observed:
    problem, reasons = None, []
    try:
        reasons = (await api.ask("GET", "/readyz"))["reasons"]
    except Unavailable as error:
        problem = str(error)
    overview = await api.ask("GET", "/api/overview")
    workers = [one for one in (await api.ask("GET", "/api/workers"))["items"] if _is_alive(one, api, overview["at"])]
    letters = await api.ask("GET", "/api/dead", {"limit": MAX_DEAD})
    held = 0
    with contextlib.suppress(Error):  # it needs the scope admin, and the verdict can do without
        held = (await api.ask("GET", "/api/db"))["held"]
    oldest, totals = overview["oldestAt"], overview["totals"]
    return Observed(
        place=api.place,
        is_running=bool(workers),
        states=overview["states"],
        accounted=overview["accounted"],
        done=totals["done"],
        uncertain=totals["uncertain"],
        dead=len(letters["dead"]) + (letters["after"] is not None),
        held=held,
        oldest_seconds=_age(oldest, overview["at"]),
        problem=problem,
        reasons=tuple(reasons),
        breakers=tuple(f"{one['destination']} is {one['state']}" for one in overview["breakers"]),
        pools=pools_nearly_full(overview["pools"]),
        rooms=overview["rooms"],
        simulated=tuple(overview["simulated"]),
        workers=tuple(map(_worker, workers)),
    )


def _is_alive(one: dict[str, Any], api: Api, now: int) -> bool:
    """This process only looks, unless it is the server; another lives as long as its lease does."""
    if one["isThis"]:
        return api.is_served
    return one["leaseAt"] is None or to_millis(datetime.fromisoformat(one["leaseAt"])) > now


def _age(oldest_at: int | None, now: int) -> float | None:
    """None when nothing waits, or everything is for later."""
    return None if oldest_at is None or oldest_at > now else (now - oldest_at) / 1000


def _worker(one: dict[str, Any]) -> str:
    running = "" if one["running"] is None else f", runs {one['running']}"
    return f"{one['label']}, since {local(one['startedAt'])}{running}"


async def _look_into(database: Path, place: str, worker: str) -> Observed:
    """A worker without HTTP has the file open: read it, and never write to it."""
    from ulak.stores.sqlite.glance import glance

    sample, letters, held = await glance(database, MAX_DEAD + 1)
    return Observed(
        place=place,
        is_running=True,
        states={name: sum(n for (_, state), n in sample.live.items() if state == name) for name in STATES},
        accounted=all(sample.difference(kind) == 0 for kind in sample.kinds()),
        done=sum(number for (word, _), number in sample.tally.items() if word == "done"),
        uncertain=sum(number for (word, _), number in sample.tally.items() if word == "uncertain"),
        dead=letters,
        held=held,
        oldest_seconds=_age(min(sample.oldest_at.values(), default=None), sample.taken_at),
        breakers=tuple(f"{mask_text(one.destination)} is {one.state}" for one in sample.breakers),
        workers=(worker,),
    )
