"""Anonymous shared memory: files without a name, gone with the last process that has them open or mapped.

So nothing is left behind by a SIGKILL, whoever it hits.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import weakref
from functools import cache
from typing import Any

_FAILED = ctypes.c_void_p(-1).value


class Segment:
    """A piece of shared memory. When nothing refers to it any more it is closed, or goes to its pool for another use.

    The latter only when each of its users has said that no mapping is left: a private mapping shows what is written
    later to pages that it has not changed itself.
    """

    __slots__ = ("_pool", "_regions", "clean", "descriptor", "size", "users")

    def __init__(self, descriptor: int, pool: SegmentPool | None = None) -> None:
        self.descriptor = descriptor
        self.size = 0  # what has been written so far
        self.users = self.clean = 0  # values in it, and those whose receiver has let go of them
        self._pool = pool
        self._regions: list[weakref.ref[Any]] = []

    def write(self, piece: Any, offset: int) -> None:
        view = memoryview(piece).cast("B")
        while view:
            written = os.pwrite(self.descriptor, view, offset)
            view, offset = view[written:], offset + written

    def map(self, offset: int, size: int) -> Any:
        """The bytes as a writable buffer of our own: what is written there is seen by nobody else.

        Not by the mmap module: its objects keep a descriptor each, and a caller may keep thousands of results.
        """
        libc = _libc()
        address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, self.descriptor, offset)
        if address == _FAILED:
            raise OSError(ctypes.get_errno(), "shared memory could not be mapped")
        region = (ctypes.c_ubyte * size).from_address(address)
        weakref.finalize(region, libc.munmap, address, size).atexit = False
        self._regions.append(weakref.ref(region))
        return memoryview(region)

    @property
    def is_released(self) -> bool:
        """No mapping of it is left in this process, nor in one that was forked from it."""
        return not _forks and all(region() is None for region in self._regions)

    def __del__(self, close: Any = os.close) -> None:
        if self._pool is None or self.clean < self.users or not self._pool.give(self.descriptor, self.size):
            close(self.descriptor)


class SegmentPool:
    """Segments for another use: their pages are there already, which makes writing five times as fast."""

    def __init__(self, count: int, max_bytes: int) -> None:
        self._count, self._max_bytes = count, max_bytes
        self._free: list[int] = []

    def take(self) -> Segment:
        try:
            return Segment(self._free.pop(), self)
        except IndexError:
            return Segment(_new_file("ulak-data"), self)

    def give(self, descriptor: int, size: int) -> bool:
        """False: too many, or too large; the caller has to close it."""
        if len(self._free) >= self._count or size > self._max_bytes:
            return False
        self._free.append(descriptor)
        return True

    def __del__(self, close: Any = os.close) -> None:
        while self._free:
            close(self._free.pop())


_forks: list[bool] = []  # not empty after a fork of a task: its child may have mappings that we can't see
os.register_at_fork(after_in_parent=lambda: _forks.append(True), after_in_child=_forks.clear)


def _new_file(name: str) -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    descriptor, path = tempfile.mkstemp(prefix=name)
    os.unlink(path)
    return descriptor


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc
