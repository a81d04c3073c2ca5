"""Files that only their owner may read: a store holds recipients, bodies and signing secrets in clear."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ulak.errors import Conflict, Unavailable

_OWNER_ONLY = 0o600


def make_private(path: Path) -> None:
    """A new and empty file, for SQLite or a copy to fill."""
    try:
        _make(path)
    except FileExistsError:
        raise Conflict(f"{path} exists already; name a file that does not") from None
    except OSError as error:
        raise Unavailable(f"{path} can't be written ({error.strerror}); nothing was written") from error


def discard(path: Path) -> None:
    """Remove an unfinished copy, with the journal that SQLite leaves next to it on a full disk."""
    for each in (path, path.with_name(path.name + "-journal")):
        each.unlink(missing_ok=True)


def ensure_private(path: Path) -> None:
    """So that SQLite does not make the file, with a mode that others can read; its WAL gets the file's mode.

    One that is there is left as it is, and not even opened: to close it again would drop the locks that SQLite has on
    it in this process. If the file can't be made, SQLite is about to say why.
    """
    with contextlib.suppress(OSError):
        _make(path)


def _make(path: Path) -> None:
    target = os.path.realpath(path)  # through a link that leads to no file yet
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY))
