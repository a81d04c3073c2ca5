"""`ulak changes`: sync a list, decide about what was held back, follow a feed into a file, make up lists to try."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ulak.cli import logs
from ulak.cli.command import Api, AsJson, Shown, asks, lines, segment, table
from ulak.cli.option import Assignments, ConfigFile, load_settings
from ulak.errors import Invalid
from ulak.settings import Settings

if TYPE_CHECKING:
    from ulak.app import Ulak
    from ulak.changes.model import SyncReport

changes = typer.Typer(help="Full lists in, a change feed out.", no_args_is_help=True)

LOOK_SECONDS = 0.2
EXITS = {"success": 0, "partial": 3, "failed": 1}
QUARANTINED = 4

Registry = Annotated[str, typer.Argument(metavar="REGISTRY", help="gib, or a name of changes.registry.")]
SyncId = Annotated[str, typer.Argument(metavar="SYNC")]
ListFile = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, metavar="FILE")]
_COLUMNS = ("feed", "added", "modified", "removed", "withheld", "count", "cursor", "until")


def register(app: typer.Typer) -> None:
    app.add_typer(changes, name="changes")


@changes.command()
def sync(
    registry: Registry,
    pk: ListFile = None,
    gb: ListFile = None,
    file: ListFile = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Only begin it, and print its id.")] = False,
    as_json: AsJson = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
) -> None:
    """Sync a registry and print how it ended. Exit code: 0 success, 3 partial, 4 quarantined, 1 failed.

    With a server, it does the work; without one, this command does, for this registry only. With --no-wait, the sync is
    left to the next process that works on the store.
    """
    settings = load_settings(config, assignments).settings
    logs.set_up_quietly(settings.log)
    found = asyncio.run(_sync(settings, registry, _files(pk, gb, file), wait=not no_wait))
    _print_sync(found, as_json=as_json)
    code = QUARANTINED if found.get("verdict") == "quarantined" else EXITS.get(found["status"], 0)
    raise typer.Exit(code)


def _files(pk: Path | None, gb: Path | None, file: Path | None) -> dict[str, Path]:
    if (pk is None) != (gb is None):
        raise Invalid("--pk and --gb belong together; give both")
    if pk is not None and gb is not None:
        if file is not None:
            raise Invalid("give --pk and --gb, or --file")
        return {"PK": pk, "GB": gb}
    return {} if file is None else {"list": file}


async def _sync(settings: Settings, registry: str, files: Mapping[str, Path], *, wait: bool) -> dict[str, Any]:
    from ulak.cli.api_client import open_api
    from ulak.cli.running_server import find_beside

    path = f"/api/changes/{segment(registry)}"
    served = bool(settings.client.url) or find_beside(settings.store) is not None
    if not served:
        return await (_sync_here if wait else _begin_here)(settings, registry, files)
    async with open_api(settings) as api:
        body: dict[str, Any] = {}
        if files:
            inbox = await api.ask("GET", f"{path}/inbox")
            body = {"inbox": await asyncio.to_thread(stage, Path(inbox["folder"]), files)}
        begun: dict[str, Any] = await api.ask("POST", f"{path}/sync", body=body)
        if not wait or begun["status"] == "partial":
            return begun
        with _progress(registry):
            while True:
                found: dict[str, Any] = await api.ask("GET", f"{path}/syncs/{begun['syncId']}")
                if found["status"] != "running":
                    return found
                await asyncio.sleep(LOOK_SECONDS)


async def _sync_here(settings: Settings, registry: str, files: Mapping[str, Path]) -> dict[str, Any]:
    """Open the store, run this room's jobs alone, and wait for what a sync leaves to be done."""
    from ulak.app import Ulak

    ulak = Ulak(settings=settings, work=["changes.*"])
    ulak.changes.registries.only = registry
    async with ulak:
        with _progress(registry):
            found = await _sync_in(ulak, registry, files)
            if found.verdict == "busy" and not ulak.store.multi_process:  # left by a process that died; it runs here
                await ulak.changes.wait(registry, found.sync_id)
                found = await _sync_in(ulak, registry, files)
            await _finish(ulak)
    built: dict[str, Any] = msgspec.to_builtins(found)
    return built


async def _begin_here(settings: Settings, registry: str, files: Mapping[str, Path]) -> dict[str, Any]:
    from ulak.app import Ulak

    async with Ulak(settings=settings, work=False) as ulak:
        inbox = await _staged(ulak, registry, files)
        begun = await ulak.changes.start(registry, inbox=inbox)
    return {"syncId": begun.sync_id, "status": str(begun.status)}


async def _sync_in(ulak: Ulak, registry: str, files: Mapping[str, Path]) -> SyncReport:
    return await ulak.changes.sync(registry, inbox=await _staged(ulak, registry, files))


async def _staged(ulak: Ulak, registry: str, files: Mapping[str, Path]) -> str | None:
    return await asyncio.to_thread(stage, ulak.changes.inbox(registry), files) if files else None


async def _finish(ulak: Ulak) -> None:
    """Wait until the archives of a sync are written and what is too old is pruned."""
    while True:
        counts = await ulak.jobs.counts()
        waiting = [dict(counts.get(kind) or {}) for kind in ("changes.archive", "changes.prune")]
        if not any(number for states in waiting for number in states.values() if isinstance(number, int)):
            return
        await asyncio.sleep(LOOK_SECONDS / 4)


def stage(inbox: Path, files: Mapping[str, Path]) -> str:
    """Put files where a sync of this machine finds them; returns the name of their folder."""
    name = uuid.uuid4().hex
    folder = inbox / name
    try:
        folder.mkdir(parents=True)
        for role, path in files.items():
            shutil.copyfile(path, folder / role)
    except OSError as error:
        raise Invalid(f"the files can't be put into {inbox} ({error.strerror}); run this where the server is") from None
    return name


@contextlib.contextmanager
def _progress(registry: str) -> Iterator[None]:
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task(f"syncing {registry}", total=None)
        yield


def _print_sync(found: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
        return
    seconds = found.get("seconds")
    told = [f"sync {found['syncId']}: {found['status']}"]
    if found.get("verdict"):
        told.append(f"({found['verdict']}{'' if seconds is None else f', {seconds:.1f} s'})")
    typer.echo(" ".join(told))
    if found.get("error"):
        typer.echo(found["error"])
    feeds = found.get("feeds") or {}
    if feeds:
        table([{"feed": name, **feed} for name, feed in feeds.items()], *_COLUMNS)()


@asks(changes)
async def status(api: Api) -> Shown:
    """Every feed: how many records, up to when, and where its log stands."""
    found = await api.ask("GET", "/api/v1/status")
    rows = [{"feed": name, **feed} for name, feed in found["feeds"].items()]
    return found, table(
        rows,
        "feed",
        "count",
        "cursor",
        "until",
        "stateHash",
        empty="No feeds. Name a list in the settings, [[changes.registry]].",
    )


@asks(changes, "list")
async def list_(
    api: Api,
    registry: Registry,
    limit: Annotated[int, typer.Option(help="Most syncs of one page.")] = 20,
) -> Shown:
    """Syncs of a registry, newest first."""
    found = await api.ask("GET", f"/api/changes/{segment(registry)}/syncs", {"limit": limit})
    return found, table(
        found["items"],
        "syncId",
        "status",
        "verdict",
        "seconds",
        "error",
        empty="No syncs yet. Begin one: ulak changes sync REGISTRY",
    )


@asks(changes)
async def show(api: Api, registry: Registry, sync_id: SyncId) -> Shown:
    """One sync with its numbers."""
    found = await api.ask("GET", f"/api/changes/{segment(registry)}/syncs/{segment(sync_id)}")
    return found, lambda: _print_sync(found, as_json=False)


@asks(changes)
async def preview(api: Api, registry: Registry, sync_id: SyncId) -> Shown:
    """Preview a list that a sync has held back: its numbers, and the first of the changes."""
    found = await api.ask("GET", f"/api/changes/{segment(registry)}/syncs/{segment(sync_id)}/preview")
    rows = [{"feed": name, **one} for name, feed in found["feeds"].items() for one in feed["changes"]]
    return found, table(rows, "feed", "identifier", "changeType")


@asks(changes)
async def approve(
    api: Api,
    registry: Registry,
    sync_id: SyncId,
    ceiling: Annotated[int, typer.Option(help="Publish only if no more than this many changes were held back.")],
) -> Shown:
    """Publish what a sync has held back, as a new sync."""
    path = f"/api/changes/{segment(registry)}/syncs/{segment(sync_id)}/approve"
    found = await api.ask("POST", path, body={"ceiling": ceiling})
    return found, lines(f"sync {found['syncId']} has begun")


@asks(changes)
async def reject(api: Api, registry: Registry, sync_id: SyncId) -> Shown:
    """Drop what a sync has held back."""
    found = await api.ask("POST", f"/api/changes/{segment(registry)}/syncs/{segment(sync_id)}/reject")
    return found, lines("Dropped.")


@changes.command()
def generate(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the two ZIPs go.")],
    users: Annotated[int, typer.Option(min=1, max=10_000_000, help="How many users.")] = 1000,
    generation: Annotated[int, typer.Option(min=0, max=100_000, help="Which list in a row of them.")] = 0,
    churn: Annotated[float, typer.Option(min=0, max=1, help="Part that differs from the list before.")] = 0.01,
    seed: Annotated[int, typer.Option(help="Another seed makes up other users.")] = 1,
) -> None:
    """Make up PK and GB lists in the shape of GİB's; nothing in them is real."""
    from ulak.changes.generator import Plan, write_lists

    for path in write_lists(folder, Plan(users, generation, churn, seed)).values():
        typer.echo(str(path))


@changes.command()
def follow(
    url: Annotated[str, typer.Argument(metavar="URL", help="A feed, like http://host:8080/api/v1/einvoice")],
    into: Annotated[Path, typer.Option(metavar="FILE", help="SQLite file of the copy; made if it is not there.")],
    once: Annotated[bool, typer.Option("--once", help="Catch up, prove the copy, and end.")] = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
) -> None:
    """Keep a proven copy of a feed in a SQLite file. It may be killed at any time and goes on from where it was."""
    from ulak.changes.follower import Follower

    settings = load_settings(config, assignments).settings
    follower = Follower(url, into, key=settings.client.key.get_secret_value(), tell=_tell)
    with contextlib.closing(follower), contextlib.suppress(KeyboardInterrupt):
        if once:
            proven = asyncio.run(follower.catch_up())
            typer.echo(f"{follower.copy.count()} records, cursor {follower.copy.cursor}, state {proven}")
        else:
            asyncio.run(follower.follow())


def _tell(word: str, facts: Mapping[str, Any]) -> None:
    typer.echo(f"{word} {msgspec.json.encode(facts).decode()}", err=True)
