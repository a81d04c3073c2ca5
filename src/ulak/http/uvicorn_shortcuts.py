"""Shorter ways through uvicorn for a body that is there already, and for an answer that is written whole.

uvicorn makes two writes of an answer: two system calls here, and the client is woken twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from ulak.http.failure import Headers


def body_at_hand(receive: Callable[..., Any]) -> bytes | None:
    """The whole body, if it came with its head, as a small one does; to ask for it costs a no-op request 4 %."""
    cycle = getattr(receive, "__self__", None)
    if (
        not isinstance(cycle, RequestResponseCycle)
        or cycle.more_body
        or cycle.disconnected
        or cycle.response_complete
        or cycle.waiting_for_100_continue
    ):
        return None
    body, cycle.body = bytes(cycle.body), bytearray()
    cycle.message_event.clear()
    cycle.flow.resume_reading()
    return body


def answer_whole(send: Callable[..., Any], status: int, headers: Headers, body: bytes) -> bool:
    """False when nothing was written, because `send` is not uvicorn's own, or because the answer is not that simple.

    It is simple when nobody has to be waited for, nothing left out, nothing logged, and nothing was sent before.
    """
    cycle = getattr(send, "__self__", None)
    if (
        not isinstance(cycle, RequestResponseCycle)
        or cycle.flow.write_paused
        or cycle.disconnected
        or cycle.response_started
        or cycle.access_log
        or cycle.scope["method"] == "HEAD"
    ):
        return False
    head = _head(status, *cycle.default_headers, *headers)
    end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
    cycle.response_started = cycle.response_complete = True
    cycle.transport.write(b"%bcontent-length: %d\r\n%b%b" % (head, len(body), end, body))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True


@lru_cache(maxsize=64)
def _head(status: int, *headers: tuple[bytes, bytes]) -> bytes:
    """The same for every answer of a second: only its date changes."""
    return STATUS_LINE[status] + b"".join(b"%b: %b\r\n" % header for header in headers)
