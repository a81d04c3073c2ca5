"""The redrive at a rate: one at a time for all processes of a store; progress is saved with the letters it sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from ulak import codec
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units import audit

sql = Queries("ulak.spine")

NAME = "redrive"  # of its row in `meta`
LOCK = "dead:redrive"  # it serialises changes of the row
GONE = "the process that sent them is gone; letters that were not sent are still here: start again for the rest"


class Progress(msgspec.Struct, frozen=True):
    """How far a redrive is; `matched` is how many fitted when it began. Each that begins has the next number."""

    number: int
    owner: int
    matched: int
    rate_per_second: float
    started_at: int
    redriven: int = 0
    state: Literal["running", "ended", "stopped", "failed"] = "running"
    reason: str | None = None


def read_redrive(tx: Tx, own: int) -> Progress | None:
    """The one that runs, or the last one. One whose process is gone has failed, though nobody could write that."""
    row = tx.row(sql.read_meta, name=NAME)
    if row is None:
        return None
    found = msgspec.json.decode(row[0], type=Progress)
    if found.state != "running" or found.owner == own or found.owner in _alive(tx):
        return found
    return msgspec.structs.replace(found, state="failed", reason=GONE)


def begin_redrive(tx: Tx, own: int, matched: int, rate_per_second: float) -> Progress | None:
    """None while another one runs, here or in another process."""
    before = _locked(tx, own)
    if before is not None and before.state == "running":
        return None
    number = 1 if before is None else before.number + 1
    return _save(tx, Progress(number, own, matched, rate_per_second, tx.now))


def send_next(
    tx: Tx, own: int, number: int, who: str, ids: list[int], send: Callable[[Tx, str, list[int]], list[int]]
) -> bool:
    """Send these again; False if somebody has stopped this redrive meanwhile."""
    found = _locked(tx, own)
    if found is None or (found.number, found.state) != (number, "running"):
        return False
    sent = len(send(tx, who, ids))
    _save(tx, msgspec.structs.replace(found, owner=own, redriven=found.redriven + sent))
    return True


def end_redrive(tx: Tx, own: int, number: int, reason: str | None = None) -> None:
    """With a reason it has failed."""
    found = _locked(tx, own)
    if found is not None and (found.number, found.state) == (number, "running"):
        state: Literal["ended", "failed"] = "ended" if reason is None else "failed"
        _save(tx, msgspec.structs.replace(found, state=state, reason=reason))


def stop_redrive(tx: Tx, own: int, who: str) -> Progress | None:
    """Letters that went stay sent. None if no redrive runs."""
    found = _locked(tx, own)
    if found is None or found.state != "running":
        return None
    audit.record(tx, who, "dead.redrive.stop", f"after {found.redriven}")
    return _save(tx, msgspec.structs.replace(found, state="stopped"))


def _locked(tx: Tx, own: int) -> Progress | None:
    tx.lock_keys([LOCK])
    return read_redrive(tx, own)


def _alive(tx: Tx) -> set[int]:
    """Other processes of a shared store. A file has one process at a time, and no row for it."""
    return {owner for owner, _, _, _, lease_at in tx.rows(sql.list_owners) if lease_at >= tx.now}


def _save(tx: Tx, progress: Progress) -> Progress:
    tx.execute(sql.save_meta, name=NAME, value=codec.encode_text(progress))
    return progress
