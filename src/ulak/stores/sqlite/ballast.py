"""A full disk can't even drain.

Below a free-space mark new work is refused, and a ballast file is given up to let results through.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class Ballast:
    def __init__(self, database: Path, ballast_mb: int, min_free_mb: int) -> None:
        self._folder = database.parent
        self._file = database.with_name(database.name + ".ballast")
        self._bytes = ballast_mb * 1024 * 1024
        self._min_free = min_free_mb * 1024 * 1024

    def load(self) -> None:
        """Lay the ballast down while there is plenty of capacity for it."""
        if (
            self._bytes
            and not self._file.exists()
            and shutil.disk_usage(self._folder).free > 4 * self._bytes + self._min_free
        ):
            with self._file.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, self._bytes)

    def drop(self) -> bool:
        """Give the ballast up; False when it is gone already."""
        if not self._file.exists():
            return False
        self._file.unlink()
        return True

    def shortage(self) -> str | None:
        """Why new work must be refused, if it must."""
        free = shutil.disk_usage(self._folder).free
        if free >= self._min_free:
            return None
        return f"only {free // 1024 // 1024} MB are free on the store's disk, less than spine.min_free_mb"
