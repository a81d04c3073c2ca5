"""Measures a side in a fresh place: a file or a database that nothing else has used, removed whatever happens."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.child import measure
from bench.postgres_server import Server


def in_file(side: Callable[..., Any], *arguments: Any, timeout_seconds: float = 90) -> Any:
    """side(path, ...) with the path of a file that does not exist yet."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        return measure(side, str(Path(folder) / "queue.db"), *arguments, timeout_seconds=timeout_seconds)


def in_database(server: Server, side: Callable[..., Any], *arguments: Any, timeout_seconds: float = 90) -> Any:
    """side(uri, ...) with the address of a new, empty database."""
    with server.database() as uri:
        return measure(side, uri, *arguments, timeout_seconds=timeout_seconds)
