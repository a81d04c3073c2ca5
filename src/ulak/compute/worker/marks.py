"""The numbers of the tasks that a worker runs right now, on a page that it shares with the parent alone.

A SIGKILL leaves no time for a message, so the number of the running task must already be where the parent can read it.
One writer per slot and no lock: nothing here can be left locked by the dead.
"""

from __future__ import annotations

import mmap
import os
import struct

_SLOT = struct.Struct("<Qd")  # task number (0: none), monotonic second of its start
_PAGE = mmap.PAGESIZE
SLOTS = _PAGE // _SLOT.size


def page_file() -> int:
    """A file without a name, one page long; the descriptor is the caller's."""
    descriptor = os.memfd_create("ulak-marks")
    os.ftruncate(descriptor, _PAGE)
    return descriptor


class Marks:
    __slots__ = ("_page",)

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, _PAGE)

    def start(self, slot: int, number: int, monotonic: float) -> None:
        _SLOT.pack_into(self._page, slot * _SLOT.size, number, monotonic)

    def clear(self, slot: int) -> None:
        _SLOT.pack_into(self._page, slot * _SLOT.size, 0, 0.0)

    def running(self) -> dict[int, float]:
        """The numbers of the tasks that run now, each with the monotonic second of its start."""
        return {number: since for number, since in _SLOT.iter_unpack(self._page[: SLOTS * _SLOT.size]) if number}

    def close(self) -> None:
        self._page.close()
