"""What must be true of dispatch's tables whatever has happened, read from the tables themselves."""

from __future__ import annotations

from typing import Any

from ulak.spine.query import Query
from ulak.spine.store import Tx


def _query(text: str) -> Query:
    return Query("audit", text, text, ())


CHECKS = {
    "a helper has two running tasks": """
        SELECT helper FROM dispatch_task WHERE state = 'ASSIGNED' GROUP BY helper HAVING count(*) > 1""",
    "a helper has two open offers": """
        SELECT helper FROM dispatch_offer WHERE state = 'OPEN' GROUP BY helper HAVING count(*) > 1""",
    "a helper is busy without a task, or has one and is not busy": """
        SELECT id FROM dispatch_helper WHERE (doing = 2) <> EXISTS (
          SELECT 1 FROM dispatch_task WHERE dispatch_task.helper = dispatch_helper.id AND state = 'ASSIGNED')""",
    "a helper is being asked without an offer, or has one and is not": """
        SELECT id FROM dispatch_helper WHERE (doing = 1) <> EXISTS (
          SELECT 1 FROM dispatch_offer WHERE dispatch_offer.helper = dispatch_helper.id AND state = 'OPEN')""",
    "an open offer belongs to a task that does not wait": """
        SELECT dispatch_offer.id FROM dispatch_offer JOIN dispatch_task ON dispatch_task.id = task
        WHERE dispatch_offer.state = 'OPEN' AND dispatch_task.state <> 'OFFERED'""",
    "an open offer has no timer": """
        SELECT id FROM dispatch_offer WHERE state = 'OPEN' AND NOT EXISTS (
          SELECT 1 FROM job WHERE job.id = dispatch_offer.timer AND kind = 'dispatch.expire')""",
    "a timer waits for an offer that is closed": """
        SELECT job.id FROM job WHERE kind = 'dispatch.expire' AND state IN (0, 1) AND EXISTS (
          SELECT 1 FROM dispatch_offer WHERE dispatch_offer.timer = job.id AND dispatch_offer.state <> 'OPEN')""",
    "a task waits for nobody": """
        SELECT id FROM dispatch_task WHERE state = 'OFFERED' AND NOT EXISTS (
          SELECT 1 FROM dispatch_offer WHERE task = dispatch_task.id AND dispatch_offer.state = 'OPEN')""",
    "a task searches without anybody who will": """
        SELECT id FROM dispatch_task WHERE state = 'SEARCHING' AND NOT EXISTS (
          SELECT 1 FROM job WHERE job.id = dispatch_task.timer)""",
    "more are asked than the task's width": """
        SELECT dispatch_task.id FROM dispatch_task JOIN dispatch_offer ON task = dispatch_task.id
        WHERE dispatch_offer.state = 'OPEN' GROUP BY dispatch_task.id, width HAVING count(*) > width""",
    "somebody was asked twice": """
        SELECT task FROM dispatch_offer GROUP BY task, helper HAVING count(*) > 1""",
    "two hold the same task": """
        SELECT task FROM dispatch_offer WHERE state = 'ACCEPTED' AND released_at IS NULL
        GROUP BY task HAVING count(*) > 1""",
    "a closed offer has no end, or an open one has": """
        SELECT id FROM dispatch_offer WHERE (state = 'OPEN') <> (ended_at IS NULL)""",
}
QUERIES = {what: _query(text) for what, text in CHECKS.items()}


def faults(tx: Tx) -> list[tuple[str, Any]]:
    return [(what, row) for what, query in QUERIES.items() for row in tx.rows(query)]
