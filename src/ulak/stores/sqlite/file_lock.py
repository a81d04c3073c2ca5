"""An OS lock that keeps a second process off a SQLite store. Its text names the holder, for messages only."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from time import sleep
from typing import IO, cast

from ulak.errors import Conflict, Misconfigured

TRIES = 20
PAUSE_SECONDS = 0.01


class FileLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    def take(self) -> None:
        file = _open(self._path, "a+")
        if not _taken(file):
            file.close()
            raise Conflict(
                f"another process ({holder(self._path) or 'unknown'}) has {self._path.with_suffix('')} open; "
                "stop it, ask it over its API, or give this one a store of its own"
            ) from None
        file.truncate(0)
        file.write(f"pid {os.getpid()}")
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _taken(file: IO[str]) -> bool:
    """Take the lock; False when a process holds it. One that only looks (see `holder`) is waited for."""
    for _ in range(TRIES):
        if _lock(file, fcntl.LOCK_EX):
            return True
        if not _lock(file, fcntl.LOCK_SH):
            return False
        fcntl.flock(file, fcntl.LOCK_UN)
        sleep(PAUSE_SECONDS)
    return False


def _lock(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _open(path: Path, mode: str) -> IO[str]:
    try:
        return cast("IO[str]", path.open(mode))
    except OSError as error:
        raise Misconfigured(
            f"{path} can't be opened ({error.strerror}); check the setting store, and whose files these are"
        ) from error


def holder(path: Path) -> str | None:
    """Return the lock's holder, or None. Trying a shared lock is enough, and does not make us look like a holder."""
    if not path.exists():
        return None
    with _open(path, "r+") as file:
        if _lock(file, fcntl.LOCK_SH):
            return None
        return file.read().strip() or "a process that did not say its name"
