"""`ulak serve` and `ulak worker`: one process that works, with the HTTP door or without it."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from ulak.cli.option import Assignments, ConfigFile

AppName = Annotated[
    str | None,
    typer.Option("--app", metavar="MODULE:NAME", help="Your Ulak with its handlers, for example shop.jobs:ulak."),
]


Kinds = Annotated[
    list[str] | None,
    typer.Option("--kinds", metavar="PATTERN", help="Serve only kinds that fit, like 'notify.*'; may be repeated."),
]


def register(app: typer.Typer) -> None:
    app.command()(serve)
    app.command()(worker)


def serve(
    app: AppName = None,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="A simulated town in which everything works; nothing leaves the machine."),
    ] = False,
    kinds: Kinds = None,
    config: ConfigFile = None,
    assignments: Assignments = None,
) -> None:
    """Work, and answer HTTP. Stops gracefully on SIGTERM and SIGINT."""
    # Imported here, because the whole HTTP stack takes a while to load and the other commands don't need it.
    from ulak.cli.process import run
    from ulak.cli.serving import serve_until

    until = partial(serve_until, demo=demo and app is None)
    run(app, config, assignments, until, demo=demo, kinds=kinds)


def worker(
    app: AppName = None, kinds: Kinds = None, config: ConfigFile = None, assignments: Assignments = None
) -> None:
    """Work without HTTP. Stops gracefully on SIGTERM and SIGINT."""
    from ulak.cli.process import run, work_until

    run(app, config, assignments, work_until, kinds=kinds)
