"""Temporary places for a store's files, removed whatever happens."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def temporary_path() -> Iterator[str]:
    """The path of a file that does not exist yet, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        yield str(Path(folder) / "queue.db")
