"""The interpreter's switch interval, in processes that are Ulak's own. A library must not set it for its host."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager

# The store's writer needs the interpreter lock at every statement, and would wait Python's usual 5 ms for it each time.
SWITCH_SECONDS = 0.0005


class Haste(AbstractContextManager[None]):
    """While handlers are on threads, a thread that waits for the interpreter lock gets it soon. Else that costs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._usual_seconds = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._running:
                self._usual_seconds = sys.getswitchinterval()
                sys.setswitchinterval(SWITCH_SECONDS)
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                sys.setswitchinterval(self._usual_seconds)
