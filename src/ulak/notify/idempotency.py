"""Idempotency-Key: the same key with the same body gets the first answer again; with another body it is refused.

A batch has a key for each of its items, made of its own key and the item's place, and one for its size.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ulak.notify.reference import keep as keep_references
from ulak.spine.job import Row
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.enqueue import Full, enqueue_rows

sql = Queries(__package__)

PRUNE_SLICE = 1000
NO_JOB = 0


@dataclass(frozen=True, slots=True)
class Once:
    """A row to accept once per key. An earlier use counts for its lifetime."""

    key: str
    hash: str
    row: Row
    lifetime_millis: int
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How many items came under a batch's key. The first size counts for its lifetime."""

    key: str
    items: int
    lifetime_millis: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """This was accepted before; nothing new was made."""

    job: int


@dataclass(frozen=True, slots=True)
class Mismatch:
    """This key was used before with another body."""


def mark_of(scope: str, key: str) -> str:
    """A caller's key as it is stored: of one length, and apart from other callers'."""
    return hashlib.sha256(f"{scope}\n{key}".encode()).hexdigest()


Answer = int | Replayed | Mismatch | Full


def find_earlier(tx: Tx, item: Once) -> Replayed | Mismatch | None:
    """The answer to a repeat, which needs no capacity; None when the key is new."""
    known = _known(tx, [item.key], item.lifetime_millis).get(item.key)
    return None if known is None else _answer_again(item, *known)


def _known(tx: Tx, keys: list[str], lifetime_millis: int) -> dict[str, tuple[str, int]]:
    rows = tx.rows(sql.find_idempotency, keys=keys, since=tx.now - lifetime_millis)
    return {key: (hash_, job) for key, hash_, job in rows}


def _answer_again(item: Once, hash_: str, job: int) -> Replayed | Mismatch:
    return Replayed(job) if hash_ == item.hash else Mismatch()


def _accept(tx: Tx, items: list[Once]) -> list[Answer]:
    keys = sorted({item.key for item in items})
    tx.lock_keys([f"idempotency:{key}" for key in keys])
    known = _known(tx, keys, items[0].lifetime_millis)
    answers: list[Answer] = []
    kept, references = [], []
    for item in items:
        if item.key in known:
            answers.append(_answer_again(item, *known[item.key]))
            continue
        verdict = enqueue_rows(tx, [item.row])
        if isinstance(verdict, Full):
            answers.append(verdict)
            continue
        known[item.key] = (item.hash, verdict[0])
        kept.append((item.key, item.hash, verdict[0], tx.now))
        answers.append(verdict[0])
        if item.reference is not None:
            references.append((item.reference, verdict[0]))
    if kept:
        tx.insert_rows(sql.keep_idempotency, kept)
    keep_references(tx, references)
    return answers


ACCEPT_ONCE: Verb[Once, Answer] = Verb(WriterQueue.ENQUEUE, _accept)


def _keep_sizes(tx: Tx, sizes: list[BatchSize]) -> list[bool]:
    """Return for each whether it is the first size of its batch, or the same again."""
    keys = sorted({one.key for one in sizes})
    tx.lock_keys([f"idempotency:{key}" for key in keys])
    known = {key: size for key, (size, _) in _known(tx, keys, sizes[0].lifetime_millis).items()}
    new = {one.key: str(one.items) for one in reversed(sizes) if one.key not in known}
    if new:
        tx.insert_rows(sql.keep_idempotency, [(key, size, NO_JOB, tx.now) for key, size in new.items()])
    known |= new
    return [known[one.key] == str(one.items) for one in sizes]


KEEP_SIZE: Verb[BatchSize, bool] = Verb(WriterQueue.ENQUEUE, _keep_sizes)


def prune(tx: Tx, keep_millis: int) -> int:
    """Remove a slice of the keys that no longer count."""
    return tx.execute(sql.prune_idempotency, before=tx.now - keep_millis, n=PRUNE_SLICE)
