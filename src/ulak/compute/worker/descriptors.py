"""Output of a script's C code and child processes, which goes to descriptors 1 and 2 and past Python's streams.

Each goes through a pipe. While a script runs a thread empties the pipes, so that a flood neither blocks the writer nor
fills memory; what is left at the end is read at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading

from ulak.compute.worker.capture import Capture

_READ_BYTES = 65536


class Descriptors:
    """For workers that run one script at a time: with several nobody could tell whose output it is."""

    def __init__(self) -> None:
        self._saved = os.dup(1), os.dup(2)
        pipes = os.pipe(), os.pipe()
        self._ends = tuple(read for read, _ in pipes)
        self._inlets = tuple(write for _, write in pipes)
        for end in self._ends:
            os.set_blocking(end, False)
        self._lock = threading.Lock()
        self._watch = _watching(self._ends)
        self._captures: tuple[Capture, ...] = ()
        self._are_ours = False  # 1 and 2 are our pipes
        threading.Thread(target=self._empty, name="output", daemon=True).start()

    def enter(self, *captures: Capture) -> None:
        """Also when the last script went through them too: it may have closed them or put others in their place."""
        self._captures = captures
        self._are_ours = True
        os.dup2(self._inlets[0], 1)
        os.dup2(self._inlets[1], 2)

    def leave(self) -> None:
        """The script is over; the descriptors stay as they are, since the next is probably a script too."""
        if self._watch.poll(0):
            for place in range(2):
                self._read(place)
        with self._lock:  # the thread may be in the middle of the last of it
            self._captures = ()

    def give_back(self) -> None:
        """Before anything else than a script runs, and before the worker sleeps."""
        if self._are_ours:
            self._are_ours = False
            os.dup2(self._saved[0], 1)
            os.dup2(self._saved[1], 2)

    def _empty(self) -> None:
        watch = _watching(self._ends)
        while True:
            for end, _ in watch.poll():
                self._read(self._ends.index(end))

    def _read(self, place: int) -> None:
        """Until the pipe is empty; what comes between scripts belongs to nobody."""
        with self._lock, contextlib.suppress(BlockingIOError):
            while data := os.read(self._ends[place], _READ_BYTES):
                if self._captures:
                    self._captures[place].keep(data)


def _watching(ends: tuple[int, ...]) -> select.poll:
    watch = select.poll()
    for end in ends:
        watch.register(end, select.POLLIN)
    return watch
