"""The room's eye on itself: service levels, and whether every accepted run ended or waits for a reason."""

from __future__ import annotations

from typing import Any

from ulak.actions.slo import Ended, Levels, report
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.live import find_live

sql = Queries("ulak.actions")

PAGE = 5000
BURN_HOURS = (1, 6)


def read_ended(tx: Tx, hours: float) -> list[Ended]:
    since = tx.now - round(hours * 3_600_000)
    return [
        Ended(kind, route, bool(critical), state, reason, hundredths / 100, number)
        for kind, route, critical, state, reason, hundredths, number in tx.rows(sql.count_ended, since=since)
    ]


def service_levels(tx: Tx, hours: float) -> dict[str, Any]:
    return {"hours": hours, **report(read_ended(tx, hours))}


def burn_rates(tx: Tx) -> dict[int, dict[str, float]]:
    """How fast each budget was used up in the last hours: 1 uses exactly what there is."""
    rates = {}
    for hours in BURN_HOURS:
        levels = Levels()
        for ended in read_ended(tx, hours):
            levels.add(ended)
        rates[hours] = levels.burns()
    return rates


def watch(tx: Tx) -> dict[str, Any]:
    """`difference` is 0 as long as nothing was lost: every run ended, or a live job of it says why it waits."""
    counted = tx.row(sql.count_runs)
    assert counted is not None
    accepted, ended = int(counted[0]), int(counted[1])
    waiting: set[int] = set()
    after = 0
    while rows := tx.rows(sql.find_open_steps, after=after, n=PAGE):
        jobs = {job for _, _, *both in rows for job in both if job is not None}
        live = find_live(tx, sorted(jobs))
        waiting |= {run for run, _, *both in rows if live.intersection(both)}
        after = rows[-1][0]
    return {
        "accepted": accepted,
        "ended": ended,
        "waiting": len(waiting),
        "difference": accepted - ended - len(waiting),
    }
