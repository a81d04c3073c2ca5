"""How evenly work is shared and how long people wait: figures over helpers and tasks, pure and from the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ulak.dispatch.policy import Policy
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

RECENT = 1000  # tasks and offers that the figures look back on


def gini_of(shares: Mapping[int, int]) -> float:
    """Of a histogram {completed: helpers}: 0 when all have the same, towards 1 when one has all."""
    helpers = sum(shares.values())
    total = sum(amount * number for amount, number in shares.items())
    if not helpers or not total:
        return 0.0
    before = weighted = 0
    for amount, number in sorted(shares.items()):
        # Ranks before + 1 … before + number, each with this amount.
        weighted += amount * (number * before + number * (number + 1) // 2)
        before += number
    return (2 * weighted) / (helpers * total) - (helpers + 1) / helpers


@dataclass(frozen=True, slots=True)
class Figures:
    """Over active helpers: how evenly this month's work is shared, who waits longest, who is silent; and how fast."""

    helpers: int = 0
    gini: float = 0.0
    longest_wait_seconds: float = 0.0
    silent_share: float = 0.0
    assign_p50_seconds: float | None = None
    assign_p95_seconds: float | None = None
    acceptance_rate: float | None = None
    overdue_seconds: float = 0.0


def read_figures(tx: Tx, policy: Policy) -> Figures:
    rows = tx.rows(sql.count_shares, month=policy.month(tx.now), pause_after=policy.pause_after)
    helpers = sum(number for _, number, *_ in rows)
    served_at = min((row[3] for row in rows), default=tx.now)
    waits = sorted(wait / 1000 for (wait,) in tx.rows(sql.list_waits, n=RECENT))
    answers = dict(tx.rows(sql.count_answers, n=RECENT))
    asked = sum(answers.get(state, 0) for state in ("ACCEPTED", "REJECTED", "EXPIRED"))
    return Figures(
        helpers=helpers,
        gini=round(gini_of({share: number for share, number, *_ in rows}), 4),
        longest_wait_seconds=(tx.now - served_at) / 1000,
        silent_share=round(sum(row[2] for row in rows) / helpers, 4) if helpers else 0.0,
        assign_p50_seconds=_part(waits, 0.5),
        assign_p95_seconds=_part(waits, 0.95),
        acceptance_rate=round(answers.get("ACCEPTED", 0) / asked, 4) if asked else None,
        overdue_seconds=read_overdue(tx),
    )


def read_overdue(tx: Tx) -> float:
    """The oldest open offer past its deadline: the same index as the one that finds it."""
    row = tx.row(sql.find_overdue, now=tx.now)
    return 0.0 if row is None or row[0] is None else (tx.now - row[0]) / 1000


def list_overdue(tx: Tx, grace_millis: int, limit: int) -> list[tuple[int, int]]:
    """(task, offer) of the oldest open offers that are past their deadline by more than the grace."""
    return [(task, offer) for task, offer in tx.rows(sql.list_overdue, before=tx.now - grace_millis, n=limit)]


def _part(values: list[float], part: float) -> float | None:
    return values[min(int(len(values) * part), len(values) - 1)] if values else None
