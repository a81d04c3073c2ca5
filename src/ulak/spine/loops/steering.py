"""Steering: which kinds this process serves, and how many jobs of each at once; set at the start and by people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ulak.errors import Invalid
from ulak.spine.handler import Handler
from ulak.spine.units.controls import Control
from ulak.spine.validate import is_text

_AS_DECLARED = Control()


def check_patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    """Patterns of kinds as a caller gives them; a single text is a mistake, because it is a sequence, too."""
    if isinstance(patterns, str) or not all(is_text(pattern) for pattern in patterns):
        raise Invalid(f"{patterns!r:.80} is not a list of kinds; give patterns like ['notify.*', 'mail.send']")
    return tuple(patterns)


class Steering:
    """`served` are patterns of kinds (`notify.*`); None serves every kind that has a handler here."""

    def __init__(self, served: Sequence[str] | None = None) -> None:
        self._served = None if served is None else tuple(served)
        self.controls: Mapping[str, Control] = {}
        self.changes = 0

    def serves(self, kind: str) -> bool:
        return self._served is None or any(fnmatchcase(kind, pattern) for pattern in self._served)

    def limit(self, handler: Handler) -> int:
        """How many jobs of a kind may run here at once; 0 when it is paused, or not served by this process."""
        control = self.controls.get(handler.kind, _AS_DECLARED) if self.controls else _AS_DECLARED
        if control.paused or not self.serves(handler.kind):
            return 0
        return handler.concurrency if control.concurrency is None else control.concurrency

    def load(self, controls: Mapping[str, Control]) -> bool:
        """Take over the store's controls; return whether they have changed."""
        changed = controls != self.controls
        self.controls = controls
        self.changes += changed
        return changed
