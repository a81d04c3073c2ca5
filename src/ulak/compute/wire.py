"""Frames on a worker's pipe. Both ends are the same interpreter, so marshal, the cheapest, carries the envelope."""

from __future__ import annotations

import marshal
import struct
from typing import Any

_HEAD = struct.Struct("<Q")
_HEAD_SIZE = _HEAD.size
RECEIVE_BYTES = 65536  # below malloc's mmap threshold, which would cost a system call per read
LARGEST_BYTES = 2**31 - 64  # marshal's own limit for one object


def pack(message: Any) -> bytes:
    body = marshal.dumps(message)
    return _HEAD.pack(len(body)) + body


class Frames:
    """Bytes in, whole messages out; what is incomplete waits for its rest."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        if not self._rest:
            body = len(data) - _HEAD_SIZE
            if body >= 0 and _HEAD.unpack_from(data)[0] == body:  # the usual case: exactly one frame
                return [marshal.loads(memoryview(data)[_HEAD_SIZE:])]
        self._rest += data
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
