"""How commands find the server that has a SQLite store open: a file beside the store, readable by its owner alone.

It names the process and its address and holds a key that is valid while that process lives. Who may read the store's
file may read everything anyway, so the key opens nothing more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ulak.errors import Conflict, Misconfigured
from ulak.stores.sqlite.file_lock import holder

_FILE = "sqlite:///"


class HeldByWorker(Conflict):
    """A process that answers no HTTP, `ulak worker` as a rule, has the store open."""

    def __init__(self, database: Path, holder: str) -> None:
        super().__init__(f"{database} is held by {holder}, which answers no HTTP; stop it first")
        self.holder = holder


class RunningServer(msgspec.Struct, frozen=True):
    pid: int
    address: str
    token: str


def file_of(store: str) -> Path | None:
    """The database file of a store's address, if it has one; the file itself if that is a link."""
    named = Path(store.removeprefix(_FILE)) if store.startswith(_FILE) else None
    return named.resolve() if named is not None and named.is_symlink() else named


def server_file_of(database: Path) -> Path:
    return database.with_name(database.name + ".server")


@contextlib.contextmanager
def announced(store: str, address: str, token: str) -> Iterator[None]:
    """While it lasts, commands on this machine find the server."""
    database = file_of(store)
    if database is None:
        yield
        return
    told_in = server_file_of(database)
    told_in.unlink(missing_ok=True)
    descriptor = os.open(told_in, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(RunningServer(os.getpid(), address, token)))
    try:
        yield
    finally:
        told_in.unlink(missing_ok=True)


def elsewhere(store: str) -> str:
    """A hint when processes work on other stores in this folder or beside the store; nothing otherwise."""
    meant = file_of(store)
    folders = {Path.cwd().resolve()} | (set() if meant is None else {meant.parent.resolve()})
    found = []
    for lock in sorted(lock for folder in folders for lock in folder.glob("*.lock")):
        database = lock.with_suffix("")
        if (meant is None or database != meant.resolve()) and database.is_file():
            with contextlib.suppress(OSError, Misconfigured):  # another program's lock, or another user's
                if (held_by := holder(lock)) is not None and held_by.startswith("pid "):
                    shown = database.name if database.parent == Path.cwd().resolve() else str(database)
                    found.append(f" Meanwhile {held_by} works on {shown}: --set store=sqlite:///{shown}")
    return "".join(found[:3])


def find_beside(store: str) -> RunningServer | None:
    """The server that has this store open; None when nobody has. A holder that can't be asked is an error."""
    database = file_of(store)
    held_by = None if database is None else holder(database.with_name(database.name + ".lock"))
    if database is None or held_by is None:
        return None
    try:
        found = msgspec.json.decode(server_file_of(database).read_bytes(), type=RunningServer)
    except (OSError, msgspec.MsgspecError):
        raise HeldByWorker(database, held_by) from None
    if str(found.pid) not in held_by.split():
        raise HeldByWorker(database, held_by)
    return found
