"""Ending many attempts on SQLite: fence and keep in one statement, and look at each only when not all were taken."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from ulak.spine.job import JobEvent
from ulak.spine.outcome import DONE, Settlement
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.finish import note_departure

sql = Queries(__package__)
spine_sql = Queries("ulak.spine")

_epoch, _fence = attrgetter("epoch"), attrgetter("id", "epoch")


def finish_simple(tx: Tx, settlements: Sequence[Settlement]) -> set[tuple[int, int]]:
    """Those that are done as most are, with nothing else to write or to hand on. Any other goes the longer way."""
    ended = [one for one in settlements if one.outcome is DONE and one.key is None]
    kept: list[Settlement] = []
    for epoch in set(map(_epoch, ended)):
        of_epoch = {one.id: one for one in ended if one.epoch == epoch}
        ids = list(of_epoch)
        if tx.execute(sql.finish_simple, ids=ids, epoch=epoch, now=tx.now) < len(ids):
            ids = [identifier for (identifier,) in tx.rows(sql.find_finished, ids=ids)]
        tx.execute(spine_sql.delete_jobs, ids=ids)
        kept += map(of_epoch.__getitem__, ids)
    if kept:
        note_departure(tx, JobEvent.DONE, kept)
    return set(map(_fence, kept))
