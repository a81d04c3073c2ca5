"""Routes whose path has a name in it that may hold a slash: sent as %2F it belongs to the name, and ends no segment."""

from __future__ import annotations

import re
from urllib.parse import unquote

from fastapi.routing import APIRoute
from starlette.routing import Match

from ulak.http.hot_routes import Scope

# A lone surrogate stands for the slash while the route is looked for: no decoded path has one of its own.
_KEPT = "\udc2f"
_SLASH = re.compile("%2f", re.IGNORECASE)


class SegmentRoute(APIRoute):
    """Servers decode a path before it is split at its slashes; this splits first."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw = (scope.get("raw_path") or b"").decode("ascii", "replace")
        if not _SLASH.search(raw):
            return super().matches(scope)
        path = _KEPT.join(unquote(part) for part in _SLASH.split(raw))
        match, found = super().matches({**scope, "path": path})
        if match != Match.NONE:
            found["path_params"] = {name: _whole(value) for name, value in found["path_params"].items()}
        return match, found


def _whole(value: object) -> object:
    return value.replace(_KEPT, "/") if isinstance(value, str) else value
