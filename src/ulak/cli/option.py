"""Options that several commands share, and the settings that they lead to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulak.errors import Misconfigured
from ulak.settings import LoadedSettings, load

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Settings file; otherwise ULAK_CONFIG, otherwise ulak.toml if it is there."),
]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting, for example http.port=9000.")
]


def load_settings(config: Path | None, assignments: list[str] | None) -> LoadedSettings:
    return load(config, overrides=dict(map(_pair, assignments or [])))


def _pair(assignment: str) -> tuple[str, str]:
    name, sign, value = assignment.partition("=")
    if not sign:
        raise Misconfigured(f"--set {name}: has no value; write --set {name}=VALUE")
    return name.strip(), value
