"""Secrets that are kept elsewhere: a setting names one by `${env:NAME}` or `${file:path}`; plug-ins add places."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from pydantic import SecretStr

from ulak.errors import Misconfigured

GROUP = "ulak.secrets"

Source = Callable[[str], str]
"""Finds a secret by its name; raises LookupError or OSError when there is none."""

BUILT_IN = (
    EntryPoint(name="env", value="ulak.secrets:from_environment", group=GROUP),
    EntryPoint(name="file", value="ulak.secrets:from_file", group=GROUP),
)
_REFERENCE = re.compile(r"\$\{([a-z][a-z0-9_-]*):([^}]+)\}")


def from_environment(name: str) -> str:
    return os.environ[name]


def from_file(path: str) -> str:
    """A file's text without the line break at its end, as orchestrators mount secrets."""
    return Path(path).read_text("utf-8").rstrip("\r\n")


def reveal(given: SecretStr, setting: str) -> str:
    """The secret itself: as it was written, or from the place that a reference names."""
    text = given.get_secret_value()
    found = _REFERENCE.fullmatch(text)
    return text if found is None else _look_up(found[1], found[2], setting)


def _look_up(place: str, name: str, setting: str) -> str:
    points = {point.name: point for point in (*BUILT_IN, *entry_points(group=GROUP))}
    if place not in points:
        raise Misconfigured(
            f"{setting} asks {place!r} for its secret, and there is no such place; there are: "
            f"{', '.join(sorted(points))}. Install the plug-in for it (entry point group {GROUP!r})."
        )
    try:
        source: Source = points[place].load()
        return source(name)
    except (LookupError, OSError, ValueError, ImportError, AttributeError) as error:
        # The error's own words may quote what was found.
        raise Misconfigured(
            f"{setting} can't be read from {place}:{name} ({type(error).__name__}); check that it is there."
        ) from None
