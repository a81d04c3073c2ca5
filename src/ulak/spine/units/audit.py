"""The audit log: a line for each action (who, verb, object, when), in the verb's own commit, chained by hashes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from ulak import codec
from ulak.errors import Invalid
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.validate import to_json

sql = Queries("ulak.spine")

MAX_OBJECT = 500
MAX_DETAIL_BYTES = 16_384
BEFORE_THE_FIRST = "0" * 64
_CHAIN = "audit:chain"  # the key that writers of a shared store hold while they add a line


@dataclass(frozen=True, slots=True)
class AuditLine:
    """`hash` covers the line and the hash before it: a line that is changed, removed or put in breaks the chain."""

    seq: int
    at: int
    who: str
    verb: str
    object: str
    detail: str
    hash: str

    def chained(self, previous: str) -> str:
        """The hash that this line must have after the given one."""
        said = [self.seq, self.at, self.who, self.verb, self.object, self.detail]
        return hashlib.sha256(f"{previous}\n{codec.encode_text(said)}".encode()).hexdigest()


def record(tx: Tx, who: str, verb: str, object: str, detail: Any = None) -> int:  # noqa: A002 - the log's own word
    """Add a line in the transaction of the verb that it is about; return its number.

    `who` is a key's name or a person, `verb` is room.noun.verb, `object` is what it was done to. No secrets here.
    """
    written = to_json(detail, f"audit line {verb}", "detail").decode()
    if len(written) > MAX_DETAIL_BYTES:
        raise Invalid(f"the detail of audit line {verb} is larger than {MAX_DETAIL_BYTES} bytes; name what changed")
    tx.lock_keys([_CHAIN])
    newest = tx.row(sql.last_audit_line)
    seq, previous = (0, BEFORE_THE_FIRST) if newest is None else newest
    line = AuditLine(seq + 1, tx.now, who, verb, object[:MAX_OBJECT], written, "")
    tx.execute(
        sql.insert_audit_line,
        seq=line.seq,
        at=line.at,
        who=who,
        verb=verb,
        object=line.object,
        detail=written,
        hash=line.chained(previous),
    )
    return line.seq


def read_lines(
    tx: Tx,
    before: int,
    limit: int,
    *,
    who: str | None = None,
    verb: str | None = None,
    object: str | None = None,  # noqa: A002
) -> list[AuditLine]:
    """Newest first, from below a line's number. A verb is given whole, or by its first word: `kinds`."""
    low, high = (None, None) if verb is None else (f"{verb}.", f"{verb}/")
    rows = tx.rows(sql.list_audit_lines, before=before, n=limit, who=who, verb=verb, low=low, high=high, object=object)
    return [AuditLine(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class ChainState:
    """How far the chain was followed: the last line that fits, its hash, and the first that does not."""

    seq: int = 0
    hash: str = BEFORE_THE_FIRST
    broken_at: int | None = None


def follow_chain(tx: Tx, state: ChainState, limit: int) -> tuple[ChainState, int]:
    """Check the lines after a state; return where that leads, and how many there were."""
    lines = [AuditLine(*row) for row in tx.rows(sql.read_audit_lines, after=state.seq, n=limit)]
    for line in lines:
        if line.seq != state.seq + 1 or line.hash != line.chained(state.hash):
            return ChainState(state.seq, state.hash, line.seq), len(lines)
        state = ChainState(line.seq, line.hash)
    return state, len(lines)
