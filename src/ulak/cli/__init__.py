"""The command line: one module per command group, each with a `register(app)`. Translates, never decides."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer

from ulak.cli import streams
from ulak.cli.commands import (
    audit,
    breakers,
    bus,
    config,
    db,
    dead,
    demo,
    engine,
    events,
    jobs,
    keys,
    kinds,
    serve,
    status,
)
from ulak.errors import Error
from ulak.masking import mask_text
from ulak.rooms import NAMES

__all__ = ["app", "main"]

app = typer.Typer(
    name="ulak",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks print local variables, and those hold secrets
)
_rooms = [import_module(f"ulak.cli.commands.{name}") for name in NAMES]
for module in (serve, status, *_rooms, jobs, dead, kinds, engine, breakers, bus, events, db, keys, audit, config, demo):
    module.register(app)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ulak {version('ulak')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the release and end.")
    ] = False,
) -> None:
    """Carries a change to whoever must act on it, and can prove what happened."""


def command() -> Callable[[], Any]:
    """The whole tree of commands. A flag takes no value, so its help shows no type."""
    whole = typer.main.get_command(app)
    waiting: list[Any] = [whole]
    while waiting:
        one = waiting.pop()
        waiting += getattr(one, "commands", {}).values()
        for option in [*one.params, one.get_help_option(typer.Context(one))]:
            if getattr(option, "is_flag", False):
                option.metavar = ""
    return whole


def main() -> None:
    streams.take_any_text()
    try:
        command()()
    except Error as error:
        _fail(str(error))
    except OSError as error:  # of a file that the command names, or of its output
        streams.drop_output()
        place = "" if error.filename is None else f"{error.filename}: "
        _fail(f"{place}{error.strerror or error}; check the path, its rights and the disk")


def _fail(text: str) -> NoReturn:
    typer.echo(f"ulak: {mask_text(text)}", err=True)
    sys.exit(1)
