"""`Prefer: wait=N` (RFC 7240): how many seconds a request waits for capacity; 0 is an offer."""

from __future__ import annotations

import re

from ulak.http.hot_routes import Scope

_WAIT = re.compile(rb'(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])', re.IGNORECASE)

HEADER = {
    "Prefer": "`wait=N`: at a bound, wait up to N seconds for capacity (at most 30); `wait=0` is refused at once."
}

# The same for a route that FastAPI describes.
DESCRIBED = {
    "parameters": [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": text}
        for name, text in HEADER.items()
    ]
}


def preferred_wait(scope: Scope) -> float | None:
    """None when the request does not say, or says it in a way that can't be read: a preference may be ignored."""
    for name, value in scope["headers"]:
        if name == b"prefer" and (found := _WAIT.search(value)):
            return float(found[1])
    return None
