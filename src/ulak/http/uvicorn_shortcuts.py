"""A whole answer in one write. uvicorn makes two of it: two system calls here, and the client is woken twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from ulak.http.failure import Headers


def answer_whole(send: Callable[..., Any], status: int, headers: Headers, body: bytes) -> bool:
    """False when nothing was written, because `send` is not uvicorn's own, or because the answer is not that simple."""
    cycle = getattr(send, "__self__", None)
    if not isinstance(cycle, RequestResponseCycle) or not _is_simple(cycle):
        return False
    lines = [b"%b: %b\r\n" % header for header in cycle.default_headers + headers]
    lines.append(b"content-length: %d\r\n" % len(body))
    if not cycle.keep_alive:
        lines.append(b"connection: close\r\n")
    cycle.response_started = cycle.response_complete = True
    cycle.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[status], b"".join(lines), body))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True


def _is_simple(cycle: RequestResponseCycle) -> bool:
    """Nobody has to be waited for, nothing left out, nothing logged, and nothing was sent before."""
    return not (
        cycle.flow.write_paused
        or cycle.disconnected
        or cycle.response_started
        or cycle.access_log
        or cycle.scope["method"] == "HEAD"
    )
