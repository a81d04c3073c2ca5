"""What the figures were taken on, printed with them: ratios travel between machines, absolute figures do not."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from importlib import metadata
from typing import Any

PACKAGES = ("huey", "procrastinate", "pgqueuer", "asyncpg", "psycopg", "uvloop")


def facts(postgres_version: str | None) -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": postgres_version or "not used",
        "syncs/s": round(syncs_per_second()),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str:
    """Figures without a peer can be taken where the peers are not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def syncs_per_second(seconds: float = 0.3) -> float:
    """4 KiB written and synced, again and again: the disk's price of one durable commit."""
    with tempfile.TemporaryFile() as file:
        begins, count = time.perf_counter(), 0
        while time.perf_counter() - begins < seconds:
            os.pwrite(file.fileno(), bytes(4096), 0)
            os.fdatasync(file.fileno())
            count += 1
        return count / (time.perf_counter() - begins)
