"""`ulak demo`: proofs to watch. Each has a folder, a port and a store of its own, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from ulak.cli.command import AsJson
from ulak.errors import Unavailable

if TYPE_CHECKING:
    from ulak.cli.crash_demo import Ledger

demo = typer.Typer(help="Proofs to watch.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(demo, name="demo")


@demo.callback()
def _group() -> None:
    """Proofs to watch."""  # with one command only, typer would leave the group out


@demo.command()
def crash(
    kills: Annotated[int, typer.Option(min=1, max=10_000, help="Kill the server so often.")] = 10,
    seconds: Annotated[float, typer.Option(min=1, max=86_400, help="Begin no further kill after so long.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the moments at which it is killed.")] = 7,
    as_json: AsJson = False,
) -> None:
    """Kill a serving process (SIGKILL) again and again while a client posts; then count what was lost."""
    from ulak.cli.crash_demo import CrashDemo

    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="ulak-crash-") as folder:
        typer.echo(
            f"A client posts to a server that is killed up to {kills:,} times.\nStore: {folder}/crash.db", err=True
        )
        live, tell = _watching(console)
        with live:
            ledger = asyncio.run(CrashDemo(Path(folder), seed, tell).run(kills, seconds))
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(_document(ledger))).decode())
    else:
        typer.echo(_told(ledger))
    if not ledger.is_clean:
        raise Unavailable("the ledger does not balance; please report this with the seed and the lines above")


def _watching(console: Console) -> tuple[AbstractContextManager[Any], Callable[[Ledger], None]]:
    """A table that is drawn again and again; where nobody can watch, a line for every kill."""
    if console.is_terminal:
        live = Live(console=console, refresh_per_second=10)
        return live, lambda ledger: live.update(_table(ledger))
    told = [0]

    def tell(ledger: Ledger) -> None:
        if ledger.killed > told[0]:
            told[0] = ledger.killed
            typer.echo("  ".join(f"{name} {value}" for name, value in _figures(ledger).items()), err=True)

    return nullcontext(), tell


def _figures(ledger: Ledger) -> dict[str, int]:
    return {
        "accepted": len(ledger.accepted),
        "arrived": ledger.arrived,
        "on the way": len(ledger.on_the_way),
        "killed": ledger.killed,
        "uncertain": ledger.uncertain,
        "lost": len(ledger.lost),
    }


def _table(ledger: Ledger) -> Table:
    figures = _figures(ledger)
    drawn = Table(*figures, box=None, pad_edge=False)
    drawn.add_row(*(f"{value:,}" for value in figures.values()))
    return drawn


def _document(ledger: Ledger) -> dict[str, Any]:
    return {
        "kills": ledger.killed,
        "posts": ledger.posts,
        "unanswered": ledger.unanswered,
        "accepted": len(ledger.accepted),
        "arrived": ledger.arrived,
        "arrivedTwice": len(ledger.twice),
        "uncertainAttempts": ledger.uncertain,
        "unexplained": sorted(ledger.unexplained),
        "lost": sorted(ledger.lost),
        "accounted": ledger.accounted,
    }


def _told(ledger: Ledger) -> str:
    rows = (
        ("posted", ledger.posts, f"requests; {ledger.unanswered:,} broke, repeated with the same key"),
        ("accepted", len(ledger.accepted), "answered with 202"),
        ("arrived", ledger.arrived, "at the receiver"),
        ("arrived twice", len(ledger.twice), f"{len(ledger.unexplained)} without an uncertain attempt to explain it"),
        ("uncertain", ledger.uncertain, "attempts were cut off by a kill, and said so"),
        ("lost", len(ledger.lost), "accepted and not arrived"),
    )
    lines = [f"  {name:<14}{number:>7,}   {meaning}" for name, number, meaning in rows]
    books = "balances" if ledger.accounted else "DOES NOT BALANCE"
    return "\n".join(
        [
            f"Killed {ledger.killed} times with SIGKILL. The ledger:",
            *lines,
            f"The store's own account {books}.",
        ]
    )
