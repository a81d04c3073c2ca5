"""Server-sent events: how one is written, and the one that tells that a cursor did not fit."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from fastapi.responses import StreamingResponse

from ulak.spine.event import Reset


def sse(seq: int, name: str, data: bytes) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (seq, name.encode(), data)


def sse_reset(reset: Reset) -> bytes:
    """Return a reset: a follower has missed events and reads the present state again; the stream goes on."""
    said = {"reason": reset.reason, **reset._asdict()}
    return sse(reset.resume, "reset", msgspec.json.encode(said))


def stream_of(chunks: AsyncIterator[bytes], cursor: int) -> StreamingResponse:
    """A stream that tells its start in a header: a first block with an id and no data is an empty event to some."""
    headers = {"cache-control": "no-store", "x-ulak-cursor": str(cursor)}
    return StreamingResponse(chunks, media_type="text/event-stream", headers=headers)
