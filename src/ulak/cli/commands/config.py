"""`ulak config`: look at the settings, check them, print the defaults."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from ulak.cli.option import Assignments, ConfigFile, load_settings
from ulak.errors import Misconfigured
from ulak.settings import LoadedSettings
from ulak.settings.document import default_toml, shown
from ulak.settings.key import keys, value_at
from ulak.settings.tree import Settings

commands = typer.Typer(help="Look at the settings and check them.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="config")


@commands.command()
def show(config: ConfigFile = None, assignments: Assignments = None) -> None:
    """Every setting with its value and where that came from."""
    loaded = load_settings(config, assignments)
    table = Table("key", "value", "origin", box=None, pad_edge=False)
    for key in keys(Settings):
        table.add_row(key, shown(value_at(loaded.settings, key)), loaded.origin(key))
    _wide_console().print(table, markup=False)


@commands.command()
def check(config: ConfigFile = None, assignments: Assignments = None) -> None:
    """Look for mistakes; the exit code is 1 when there are any."""
    try:
        _check_address(load_settings(config, assignments))
    except Misconfigured as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    typer.echo("The settings are in order.")


def _check_address(loaded: LoadedSettings) -> None:
    """Refuse an address that the driver can't read, with its origin; opening the store would refuse it without."""
    if not loaded.settings.store.startswith(("postgresql://", "postgres://")):
        return
    from ulak.stores.postgres.address import read_address  # the driver takes a while to load

    try:
        read_address(loaded.settings.store)
    except Misconfigured as error:
        raise Misconfigured(f"{loaded.origin('store')}: store: {error}") from None


@commands.command()
def default() -> None:
    """A settings file with every default, as a start for your own."""
    typer.echo(default_toml(), nl=False)


def _wide_console() -> Console:
    """Folds nothing when the output is a pipe, so that `grep` sees whole lines."""
    console = Console()
    return console if console.is_terminal else Console(width=240)
