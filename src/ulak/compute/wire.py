"""Frames on a worker's pipe. Both ends are the same interpreter, so marshal, the cheapest, carries the envelope."""

from __future__ import annotations

import marshal
import socket
import struct
from typing import Any

_HEAD = struct.Struct("<Q")
_HEAD_SIZE = _HEAD.size
_BUFFER_BYTES = 65536
LARGEST_BYTES = 2**31 - 64  # marshal's own limit for one object


def pack(message: Any) -> bytes:
    body = marshal.dumps(message)
    return _HEAD.pack(len(body)) + body


class Frames:
    """Bytes from a pipe in, whole messages out; what is incomplete waits for its rest. One thread at a time.

    The buffer is kept: a new one for each read would cost more than the read.
    """

    __slots__ = ("_buffer", "_rest")

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._rest = bytearray()

    def receive(self, pipe: socket.socket, flags: int = 0) -> list[Any] | None:
        """One read's messages; None when the other end has hung up."""
        count = pipe.recv_into(self._buffer, 0, flags)
        if not count:
            return None
        if not self._rest and _HEAD.unpack_from(self._buffer)[0] == count - _HEAD_SIZE:
            return [marshal.loads(self._buffer[_HEAD_SIZE:count])]  # the usual case: exactly one frame
        self._rest += self._buffer[:count]
        return self._whole()

    def _whole(self) -> list[Any]:
        messages, at, rest = [], 0, self._rest
        while len(rest) - at >= _HEAD_SIZE:
            end = at + _HEAD_SIZE + _HEAD.unpack_from(rest, at)[0]
            if end > len(rest):
                break
            with memoryview(rest) as view, view[at + _HEAD_SIZE : end] as body:
                messages.append(marshal.loads(body))
            at = end
        if at:
            del rest[:at]
        return messages
