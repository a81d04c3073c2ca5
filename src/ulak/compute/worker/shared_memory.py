"""Anonymous shared memory: files without a name, gone with the last process that has them open or mapped.

So a SIGKILL of any process leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

PAGE = mmap.ALLOCATIONGRANULARITY
_FAILED = ctypes.c_void_p(-1).value


_forks: list[bool] = []  # one for each fork of this process: a child may have mappings that we can't see
os.register_at_fork(after_in_parent=lambda: _forks.append(True), after_in_child=_forks.clear)


class Loan:
    """Memory that somebody else will use again. It is given back with the last that refers to it.

    Never, if this process has been forked meanwhile.
    """

    __slots__ = ("_forks", "_give_back", "_ticket")

    def __init__(self, ticket: int, give_back: Callable[[int], object]) -> None:
        self._ticket, self._give_back = ticket, give_back
        self._forks = len(_forks)

    def __del__(self, forks: list[bool] = _forks) -> None:
        if len(forks) == self._forks:
            self._give_back(self._ticket)


class Segment:
    """A piece of shared memory. When nothing refers to it any more it is closed, or goes to its pool for another use.

    The latter only when each of its users has said that no mapping is left: a private mapping shows what is written
    later to pages that it has not changed itself.
    """

    __slots__ = ("_loan", "_pages", "_pool", "_regions", "clean", "descriptor", "size", "ticket", "users")

    def __init__(self, descriptor: int, pool: SegmentPool | None = None, loan: Loan | None = None) -> None:
        self.descriptor = descriptor
        self.size = 0  # what has been allotted so far
        self.users = self.clean = 0  # values in it, and those whose receiver has let go of them
        self.ticket = 0  # of the loan, if it is one
        self._pool, self._loan = pool, loan
        self._pages: memoryview | None = None
        self._regions: list[weakref.ref[Any]] = []

    def write(self, piece: Any, offset: int) -> None:
        view = memoryview(piece).cast("B")
        if self._pages is not None:
            self._pages[offset : offset + len(view)] = view
            return
        while view:
            written = os.pwrite(self.descriptor, view, offset)
            view, offset = view[written:], offset + written

    def map(self, offset: int, size: int) -> Any:
        """The bytes as a writable buffer of our own: what is written there is seen by nobody else.

        Not by the mmap module: its objects keep a descriptor each, and a caller may keep thousands of results.
        """
        region = self._map(offset, size, mmap.MAP_PRIVATE)
        self._regions.append(weakref.ref(region))
        return memoryview(region)

    def extend(self, size: int) -> None:
        os.ftruncate(self.descriptor, size)
        self.size = size

    def map_pages(self) -> None:
        """Have them at hand, for writing: half the price of a `pwrite` when they are there, more when they are not."""
        if self._pages is None:
            self._pages = memoryview(self._map(0, self.size, mmap.MAP_SHARED)).cast("B")

    def _map(self, offset: int, size: int, flags: int) -> Any:
        address = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, self.descriptor, offset)
        if address == _FAILED:
            raise OSError(ctypes.get_errno(), "shared memory could not be mapped")
        region = (ctypes.c_ubyte * size).from_address(address)
        _hide_from_collector(region)
        weakref.finalize(region, _unmap, address, size, self._loan).atexit = False
        return region

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
            return new_segment(self)

    def give(self, descriptor: int, size: int) -> bool:
        """False: too many, or too large; the caller has to close it."""
        if len(self._free) >= self._count or size > self._max_bytes:
            return False
        self._free.append(descriptor)
        return True

    def __del__(self, close: Any = os.close) -> None:
        while self._free:
            close(self._free.pop())


def new_segment(pool: SegmentPool | None = None) -> Segment:
    return Segment(os.memfd_create("ulak-data"), pool)


def _unmap(address: int, size: int, _loan: Loan | None) -> None:
    """The loan ends with the mapping, not before."""
    _libc().munmap(address, size)


def _hide_from_collector(region: Any) -> None:
    """It goes with the last reference only.

    The collector clears the weak references to a cycle before it calls `__del__` there, which would find the memory
    unmapped.
    """
    ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(region))


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc
