"""What goes between the parent and the processes that it kills: the order for a life, and the records of it.

A record is one write to a pipe, framed by its length: what was written before a SIGKILL is read by the parent.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from typing import Literal

import msgspec

_LENGTH = struct.Struct("<H")
WORKED, RETRIED = "done", "retry"


class Life(msgspec.Struct, frozen=True):
    """How a process is to live. `until` says when it ends by itself; `point` and `reach` where it kills itself."""

    address: str
    number: int
    seed: int = 0
    producers: int = 0
    until: Literal["killed", "drained", "stopped"] = "killed"
    point: str | None = None
    reach: int = 1
    jobs: tuple[tuple[str, int], ...] = ()
    accept_before_stop: int = 0
    payload_bytes: int = 0
    settings: dict[str, float] = {}


class Ready(msgspec.Struct, tag=True, array_like=True):
    pid: int


class Accepted(msgspec.Struct, tag=True, array_like=True):
    """`enqueue` has returned. Only what this says is owed by the store."""

    ids: list[int]
    tokens: list[int]


class Refused(msgspec.Struct, tag=True, array_like=True):
    """`enqueue` has raised; `outcome` is "no" or "unknown"."""

    tokens: list[int]
    outcome: str


class Began(msgspec.Struct, tag=True, array_like=True):
    id: int
    kind: str
    key: str | None
    epoch: int
    attempt: int
    crashes: int
    pid: int
    at: int


class Ended(msgspec.Struct, tag=True, array_like=True):
    id: int
    epoch: int
    outcome: str


class Finished(msgspec.Struct, tag=True, array_like=True):
    """It ends by itself: drained, or stopped as it was told."""

    left: list[int]


class Failed(msgspec.Struct, tag=True, array_like=True):
    """Something that must not happen."""

    text: str


Record = Ready | Accepted | Refused | Began | Ended | Finished | Failed
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


class Mouth:
    """The writing end. A parent that is gone is the end of the child too."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def say(self, record: Record) -> None:
        body = _encode(record)
        frame = _LENGTH.pack(len(body)) + body
        try:
            with self._lock:
                sent = os.write(self._descriptor, frame)
        except BrokenPipeError:
            os._exit(3)
        assert sent == len(frame)  # within PIPE_BUF, so it can't be cut


class Ear:
    """The reading end."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._held = b""
        self.ended = False

    def hear(self) -> Iterator[Record]:
        """What has come; call it when there is something to read."""
        read = os.read(self.descriptor, 1 << 20)
        self.ended = not read
        held, start = self._held + read, 0
        while start + 2 <= len(held):
            end = start + 2 + _LENGTH.unpack_from(held, start)[0]
            if end > len(held):
                break
            yield _decode(memoryview(held)[start + 2 : end])
            start = end
        self._held = held[start:]

    def close(self) -> None:
        os.close(self.descriptor)
