"""Ending many attempts on PostgreSQL, where a round trip costs more than a statement: fence, keep and delete in one."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from ulak.spine.job import JobEvent
from ulak.spine.outcome import Cancel, Done, Settlement
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.finish import Leased, announce, detail_of

sql = Queries(__package__)
spine_sql = Queries("ulak.spine")

_fence = attrgetter("id", "epoch")


def finish_plain(tx: Tx, settlements: Sequence[Settlement]) -> set[tuple[int, int]]:
    """Those of which nothing has to be looked at or done before they leave."""
    # Of several with one id the statement looks at the last: that must be the newest, a stale one must not hide it.
    ended = sorted(filter(_is_plain, settlements), key=_fence)
    if not ended:
        return set()
    found = tx.rows(
        sql.finish_jobs,
        id=[one.id for one in ended],
        epoch=[one.epoch for one in ended],
        done=[int(type(one.outcome) is Done) for one in ended],
        now=tx.now,
    )
    details = {one.id: detail for one in ended if (detail := detail_of(one)) is not None}
    tx.update_rows(spine_sql.keep_details, [(details[row[2]], row[2]) for row in found if row[2] in details])
    payloads = {row[2]: row[1] for row in found if row[1] is not None}
    for word in (JobEvent.DONE, JobEvent.CANCELLED):
        rows = [Leased._make(row[2:]) for row in found if row[0] == word]
        if rows:
            announce(tx, word, rows, details, payloads)
    return {(row[2], row[3]) for row in found}


def _is_plain(one: Settlement) -> bool:
    return type(one.outcome) is Cancel or (type(one.outcome) is Done and one.outcome.unit is None)
