"""Where sys.stdout and sys.stderr go while a script runs, and how they come back."""

from __future__ import annotations

import sys
from typing import Protocol

from ulak.compute.worker.capture import Capture, Router
from ulak.compute.worker.descriptors import Descriptors


class Streams(Protocol):
    def enter(self, out: Capture, err: Capture) -> None: ...

    def leave(self) -> None: ...

    def give_back(self) -> None:
        """Let the process have back what is only lent from script to script."""


class OwnStreams:
    """A CPU worker's: one script at a time, so the streams are simply exchanged, and the descriptors with them."""

    def __init__(self) -> None:
        self._before = sys.stdout, sys.stderr
        self._descriptors = Descriptors()

    def enter(self, out: Capture, err: Capture) -> None:
        sys.stdout, sys.stderr = out, err
        self._descriptors.enter(out, err)

    def leave(self) -> None:
        sys.stdout, sys.stderr = self._before
        self._descriptors.leave()

    def give_back(self) -> None:
        self._descriptors.give_back()


class SharedStreams:
    """An IO worker's: every thread prints into its own capture."""

    def __init__(self) -> None:
        self._out, self._err = Router(sys.stdout), Router(sys.stderr)
        sys.stdout, sys.stderr = self._out, self._err

    def enter(self, out: Capture, err: Capture) -> None:
        self._out.aim(out)
        self._err.aim(err)

    def leave(self) -> None:
        self._out.aim(None)
        self._err.aim(None)
        if sys.stdout is not self._out or sys.stderr is not self._err:
            sys.stdout, sys.stderr = self._out, self._err

    def give_back(self) -> None:
        """Nothing is lent: the routers stay."""
