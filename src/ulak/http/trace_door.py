"""The way in for traces: what a request makes belongs to the trace that it came with. Only where traces are on."""

from __future__ import annotations

from ulak.http.hot_routes import App, Receive, Scope, Send
from ulak.spine.trace import HEADERS, Tracer

_WANTED = frozenset(name.encode() for name in HEADERS)


class TraceDoor:
    def __init__(self, inner: App, tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        with self._tracer.within(_headers(scope)):
            await self._inner(scope, receive, send)


def _headers(scope: Scope) -> dict[str, str]:
    """As W3C has it: several lines of tracestate are one list, and several of traceparent are none that counts."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in _WANTED:
            key, text = name.decode(), value.decode("latin-1")
            found[key] = f"{found[key]},{text}" if key in found else text
    return found
