"""Controls: what people have set for a kind (paused, concurrency). Kept in the store, for all instances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ulak.errors import Invalid
from ulak.spine.job import MAX_KIND
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units import audit
from ulak.spine.validate import is_kind, is_whole

sql = Queries("ulak.spine")

MAX_CONCURRENCY = 100_000


class Unchanged(Enum):
    """Leave it as it is; None means something of its own: the handler's number."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True)
class Control:
    """A paused kind is accepted and not claimed. `concurrency` is of each process; None leaves the handler's."""

    paused: bool = False
    concurrency: int | None = None


def load_controls(tx: Tx) -> dict[str, Control]:
    return {kind: Control(bool(paused), concurrency) for kind, paused, concurrency in tx.rows(sql.list_controls)}


def control(
    tx: Tx,
    who: str,
    kind: str,
    *,
    paused: bool | Unchanged = UNCHANGED,
    concurrency: int | Unchanged | None = UNCHANGED,
) -> Control:
    """Change the given values of a kind's control; return the control in force. A change is audited and an event."""
    _check(kind, concurrency)
    tx.lock_keys(["kinds:control"])  # values that are not given stay as they are in the store
    before = load_controls(tx).get(kind, Control())
    after = before
    if not isinstance(paused, Unchanged):
        after = replace(after, paused=paused)
    if not isinstance(concurrency, Unchanged):
        after = replace(after, concurrency=concurrency)
    if after != before:
        tx.execute(sql.save_control, kind=kind, paused=int(after.paused), concurrency=after.concurrency, now=tx.now)
        _tell(tx, who, kind, before, after)
    return after


def _check(kind: str, concurrency: int | Unchanged | None) -> None:
    if not is_kind(kind):
        raise Invalid(f"{kind!r:.50} is not a job kind; give 1 to {MAX_KIND} characters")
    given = not (concurrency is None or isinstance(concurrency, Unchanged))
    if given and not is_whole(concurrency, 1, MAX_CONCURRENCY):
        text = f"must be a whole number, 1 to {MAX_CONCURRENCY}, or null"
        raise Invalid(f"concurrency of {kind} {text}; pause the kind to run none", fields=[("concurrency", text)])


def _tell(tx: Tx, who: str, kind: str, before: Control, after: Control) -> None:
    if after.paused != before.paused:
        audit.record(tx, who, "kinds.pause" if after.paused else "kinds.resume", kind)
    if after.concurrency != before.concurrency:
        audit.record(tx, who, "kinds.set", kind, {"concurrency": after.concurrency, "before": before.concurrency})
    tx.emit("kind.controlled", 0, kind, [after.paused, after.concurrency])
