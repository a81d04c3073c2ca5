"""uvicorn's protocol with bounds that it lacks: how large a head is, and how long a head and a body may take."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 65_536
HEAD_SECONDS = 15.0
BODY_SECONDS = 60.0
BODY_LOOK_SECONDS = 10.0
MIN_BODY_BYTES_PER_SECOND = 1024
# A body that was refused is read and dropped within these bounds, since many clients send it all before they read.
MAX_DRAINED_BYTES = 64 * 1024 * 1024
DRAIN_SECONDS = 10.0

_HEAD_TOO_LARGE = (
    "431 Request Header Fields Too Large",
    "head_too_large",
    "the request line and headers are too large",
)
_NOT_HTTP = ("400 Bad Request", "invalid", "this is not an HTTP request that can be read; correct it")
_NOT_ONE_HOST = ("400 Bad Request", "invalid", "HTTP/1.1 needs a Host header, and only one; send one")
_BODY_TOO_SLOW = ("408 Request Timeout", "too_slow", "the body came too slowly; send it again")


def _answer(status: str, error: str, message: str) -> bytes:
    body = f'{{"error":"{error}","message":"{message}"}}'
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {len(body)}"
    return f"{head}\r\n\r\n{body}".encode("ascii")


class BoundedProtocol(HttpToolsProtocol):
    """Hangs up on a head that never ends and on a body that trickles; reads on after a refusal, within limits."""

    _head_bytes = 0
    _chunk_bytes = 0
    _patience: asyncio.TimerHandle | None = None
    _body_bytes = 0
    _body_began = 0.0
    _body_look: asyncio.TimerHandle | None = None
    _answered_at: float | None = None
    _in_body = False
    _refused = False
    _closes_after = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._patience = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        self._chunk_bytes = len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_body:
            self._count_body(len(data))
        elif self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(_HEAD_TOO_LARGE)
        elif self._head_bytes > 0 and self._patience is None:  # the first part of a later request on this connection
            self._patience = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    # The head

    def on_headers_complete(self) -> None:
        if self._refused:  # what came along behind a refused request is not begun
            return
        may_be_too_large = self._head_bytes > MAX_HEAD_BYTES or self._chunk_bytes > MAX_HEAD_BYTES
        self._head_bytes = -1 << 62  # what follows is body, and the guard counts that
        if self._patience is not None:
            self._forget_patience()
        if may_be_too_large and self._head_size() > MAX_HEAD_BYTES:
            self._refuse(_HEAD_TOO_LARGE)
        elif not self._has_one_host() and self.parser.get_http_version() == "1.1":
            self._refuse(_NOT_ONE_HOST)
        else:
            self._in_body = True
            super().on_headers_complete()
            # uvicorn would close with its answer, and a client that is still sending would lose that answer.
            self._closes_after = not self.cycle.keep_alive
            self.cycle.keep_alive = True

    def _has_one_host(self) -> bool:
        by_name = dict(self.headers)  # usually none stands twice, and then nothing has to be counted
        if len(by_name) == len(self.headers):
            return b"host" in by_name
        return [name for name, _ in self.headers].count(b"host") == 1

    def _head_size(self) -> int:
        return sum(len(name) + len(value) for name, value in self.headers) + len(self.url)

    def send_400_response(self, msg: str) -> None:
        """uvicorn's own words have another shape."""
        self._refuse(_NOT_HTTP)

    def _refuse(self, answer: tuple[str, str, str]) -> None:
        self._refused = True
        self.transport.write(_answer(*answer))
        self.transport.close()

    def _forget_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    # The body

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._end_body()
        if self._refused:
            return
        super().on_message_complete()
        if self._closes_after:
            self.cycle.keep_alive = False
            if self.cycle.response_complete:
                self.transport.close()

    def _count_body(self, number: int) -> None:
        """Called only for a body that did not come with its head."""
        if self._body_look is None:
            self._body_bytes, self._body_began, self._answered_at = 0, self.loop.time(), None
            self._body_look = self.loop.call_later(BODY_LOOK_SECONDS, self._look_at_body)
        self._body_bytes += number
        if self.cycle.response_complete:
            if self._answered_at is None:
                self._answered_at, self._body_bytes = self.loop.time(), 0
            if self._body_bytes > MAX_DRAINED_BYTES or self.loop.time() - self._answered_at > DRAIN_SECONDS:
                self.transport.close()

    def _look_at_body(self) -> None:
        self._body_look = self.loop.call_later(BODY_LOOK_SECONDS, self._look_at_body)
        if self.cycle.response_complete:
            self.transport.close()
        elif not self.flow.read_paused and self._is_too_slow(self.loop.time() - self._body_began):
            self._refuse(_BODY_TOO_SLOW)

    def _is_too_slow(self, seconds: float) -> bool:
        return seconds > BODY_SECONDS or self._body_bytes < MIN_BODY_BYTES_PER_SECOND * seconds

    def _end_body(self) -> None:
        self._in_body = False
        if self._body_look is not None:
            self._body_look.cancel()
            self._body_look = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_patience()
        self._end_body()
        super().connection_lost(exc)
