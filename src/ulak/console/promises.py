"""The promises of actions, how they are kept, and the rest of each budget: on the overview and on their own page."""

from __future__ import annotations

from typing import Any

from ulak.console.page import Found

SLO = "/api/actions/slo"
PROMISES = (
    ("p95_end_to_end_seconds", "End to end, p95", "seconds"),
    ("success_rate", "Success", "percent"),
    ("dlq_rate", "Dead letters", "percent"),
    ("critical_retry_exhausted_rate", "Critical, retries used up", "percent"),
)


def promises(found: Found) -> list[dict[str, Any]] | None:
    slo, say = found.of(SLO), found.say
    if slo is None:
        return None
    write = {"seconds": say.seconds, "percent": say.percent}
    return [
        {
            "name": say(title),
            "now": "–" if slo[name]["value"] is None else write[form](slo[name]["value"]),
            "target": write[form](slo[name]["target"]),
            "left": max(slo[name]["budget_left"], 0.0),
        }
        for name, title, form in PROMISES
    ]
