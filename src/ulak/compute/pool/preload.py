"""Functions that have run well on CPU workers: spares load their modules before they are needed."""

from __future__ import annotations

from collections.abc import Iterable

from ulak.compute.pool.worker_handle import WorkerHandle

_MAX_PRELOADS = 32
_MAX_NAME_BYTES = 512  # a function's name is shorter; a pickled object may be anything


class Preload:
    """Imports may take longer than all else that a replacement needs.

    Not with an initializer, which may have to come first; and never again when a spare has died of it.
    """

    def __init__(self, *, is_on: bool) -> None:
        self._is_on = is_on
        self._names: dict[bytes, None] = {}
        self.has_begun = False

    def add(self, name: bytes, spares: Iterable[WorkerHandle]) -> None:
        """Have the spares, those to come too, load a function by its pickled name."""
        if not self._is_on or len(name) > _MAX_NAME_BYTES or len(self._names) >= _MAX_PRELOADS or name in self._names:
            return
        self._names[name] = None
        self.has_begun = True
        for spare in spares:
            spare.write([name])

    def send_all(self, spare: WorkerHandle) -> None:
        if self._names:
            spare.write(list(self._names))

    def stop(self) -> None:
        self._is_on = False
        self._names.clear()
