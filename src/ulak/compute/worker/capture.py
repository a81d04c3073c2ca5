"""A script's output, kept up to a bound; on IO workers each thread has its own."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable
from typing import Any


class Capture:
    """A text stream that keeps the first `limit` characters and counts the rest.

    Not an io.TextIOBase: the finalizer of those costs more than everything else here.
    """

    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None
    mode = "w"
    closed = False
    line_buffering = False

    def __init__(self, limit: int, descriptor: int | None = None) -> None:
        self._parts: list[str] = []
        self._free = limit
        self._dropped = 0
        self._descriptor = descriptor

    def write(self, text: str) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        kept = text[: self._free]
        if kept:
            self._parts.append(kept)
            self._free -= len(kept)
        self._dropped += len(text) - len(kept)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        if self._descriptor is None:
            raise io.UnsupportedOperation("fileno: on an IO worker a script's output has no descriptor of its own")
        return self._descriptor

    @property
    def buffer(self) -> io.BufferedIOBase:
        return _Bytes(self)

    def keep(self, data: bytes) -> None:
        """Add output that came by the descriptor, also after the stream was closed."""
        closed, self.closed = self.closed, False
        self.write(data.decode("utf-8", "replace"))
        self.closed = closed

    def text(self) -> str:
        if not self._parts:
            return ""
        tail = f"\n... {self._dropped} more characters were not kept" if self._dropped else ""
        text = "".join(self._parts)
        if not text.isascii():  # half of a surrogate pair, as in names of files, could be stored nowhere
            text = text.encode("utf-8", self.errors).decode()
        return text + tail


class _Bytes(io.BufferedIOBase):
    """For scripts that write bytes to `sys.stdout.buffer`."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._capture.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


class Router(io.TextIOBase):
    """Replaces sys.stdout or sys.stderr of an IO worker: a thread with a capture writes there, others as before."""

    def __init__(self, outside: Any) -> None:
        self._outside = outside
        self._own = threading.local()

    def aim(self, capture: Capture | None) -> None:
        self._own.capture = capture

    @property
    def _target(self) -> Any:
        return getattr(self._own, "capture", None) or self._outside

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._target.write(text)  # what stands there, in a Ray worker for one, may return None
        return len(text)

    def flush(self) -> None:
        self._target.flush()

    def close(self) -> None:
        """Closing it would silence the neighbours; a script may close only its own capture."""

    @property
    def buffer(self) -> Any:
        return self._target.buffer

    def fileno(self) -> int:
        return int(self._outside.fileno())
