"""Puts back what a script may change and the next must not notice: directory, environment, paths, streams."""

from __future__ import annotations

import os
import sys
from typing import Any

from ulak.compute.worker.capture import Capture
from ulak.compute.worker.streams import OwnStreams, SharedStreams, Streams


class Isolation:
    """One worker's. With several threads, streams are each thread's own; the rest belongs to all of them."""

    def __init__(self, limit: int, *, alone: bool) -> None:
        self._limit = limit
        self._directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        self._environment = os.environ.copy()
        # Comparing the table behind os.environ costs a microsecond, decoding a copy of it fifty.
        self._table: dict[Any, Any] = getattr(os.environ, "_data", {})
        self._encoded = dict(self._table)
        self._path, self._argv = list(sys.path), list(sys.argv)
        self._places = (1, 2) if alone else (None, None)
        self._streams: Streams = OwnStreams() if alone else SharedStreams()

    def enter(self) -> tuple[Capture, Capture]:
        out, err = Capture(self._limit, self._places[0]), Capture(self._limit, self._places[1])
        self._streams.enter(out, err)
        return out, err

    def leave(self) -> None:
        self._streams.leave()
        os.fchdir(self._directory)
        if self._table != self._encoded:
            self._restore_environment()
        if sys.path != self._path:
            sys.path[:] = self._path
        if sys.argv != self._argv:
            sys.argv[:] = self._argv

    def give_back(self) -> None:
        self._streams.give_back()

    def import_from(self, directory: str) -> None:
        """Let scripts import the modules that lie beside them."""
        if directory not in self._path:
            self._path.append(directory)
            sys.path.append(directory)

    def _restore_environment(self) -> None:
        for name in set(os.environ) - set(self._environment):
            del os.environ[name]
        os.environ.update(self._environment)
