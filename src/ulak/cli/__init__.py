"""The command line: one module per command group, each with a `register(app)`. Translates, never decides."""

from __future__ import annotations

import sys

import typer

from ulak.cli import breakers, compute, config, db, dead, events, jobs, keys, notify, serve
from ulak.errors import Error
from ulak.masking import mask_text

__all__ = ["app", "main"]

app = typer.Typer(
    name="ulak",
    help="Carries a change to whoever must act on it, and can prove what happened.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks print local variables, and those hold secrets
)
for module in (serve, notify, jobs, dead, breakers, events, compute, db, keys, config):
    module.register(app)


@app.callback()
def _root() -> None:
    """Keeps `ulak` a group of commands, however few there are."""


def main() -> None:
    try:
        app()
    except Error as error:
        typer.echo(f"ulak: {mask_text(str(error))}", err=True)
        sys.exit(1)
