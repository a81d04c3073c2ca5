"""Frames on a worker's pipe. Both ends are the same interpreter, so marshal, the cheapest, carries the envelope."""

from __future__ import annotations

import marshal
import socket
import struct
from collections.abc import Callable
from typing import Any

_HEAD = struct.Struct("<QI")  # the body's length, and how many descriptors come with the frame
_HEAD_SIZE = _HEAD.size
_BUFFER_BYTES = 65536
MAX_DESCRIPTORS = 250  # in one frame; the kernel takes 253
MAX_MESSAGE_BYTES = 2**31 - 64  # marshal's own limit for one object


def pack(message: Any, descriptors: int = 0) -> bytes:
    body = marshal.dumps(message)
    return _HEAD.pack(len(body), descriptors) + body


class Frames:
    """Bytes from a pipe in, whole messages out; what is incomplete waits for its rest. One thread at a time.

    The buffer is kept: a new one a read would cost more than it. A frame's descriptors, which `adopt` gets,
    were sent before it on a socket of their own: to look for them at every read cost 12 of 60 µs of a round trip.
    """

    __slots__ = ("_adopt", "_buffer", "_descriptors", "_rest")

    def __init__(self, descriptors: socket.socket, adopt: Callable[[Any, list[int]], Any]) -> None:
        self._adopt = adopt
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._descriptors = descriptors
        self._rest = bytearray()

    def receive(self, pipe: socket.socket, flags: int = 0) -> list[Any] | None:
        """One read's messages; None when the other end has hung up."""
        count = pipe.recv_into(self._buffer, 0, flags)
        if not count:
            return None
        if not self._rest and _HEAD.unpack_from(self._buffer) == (count - _HEAD_SIZE, 0):
            return [marshal.loads(self._buffer[_HEAD_SIZE:count])]  # the usual case: exactly one frame
        self._rest += self._buffer[:count]
        return self._whole()

    def _whole(self) -> list[Any]:
        messages, at, rest = [], 0, self._rest
        while len(rest) - at >= _HEAD_SIZE:
            length, descriptors = _HEAD.unpack_from(rest, at)
            end = at + _HEAD_SIZE + length
            if end > len(rest):
                break
            with memoryview(rest) as view, view[at + _HEAD_SIZE : end] as body:
                messages.append(self._adopted(marshal.loads(body), descriptors))
            at = end
        if at:
            del rest[:at]
        return messages

    def _adopted(self, message: Any, count: int) -> Any:
        if not count:
            return message
        return self._adopt(message, self._received(count))

    def _received(self, count: int) -> list[int]:
        try:
            _, descriptors, _, _ = socket.recv_fds(self._descriptors, 1, count, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            descriptors = []
        if len(descriptors) != count:
            raise ValueError(f"a frame came with {len(descriptors)} of {count} descriptors")
        return descriptors
