"""The kinds of which a door takes jobs. Each costs memory, metrics and rows that stay, so there is a bound."""

from __future__ import annotations

from collections.abc import Iterable

from ulak.app import Ulak
from ulak.errors import Invalid

MAX_KINDS = 1000


class KnownKinds:
    """Those that a handler here declares are always taken; of all others, those that the store has seen, and some."""

    def __init__(self, ulak: Ulak) -> None:
        self._ulak = ulak
        self._seen: set[str] | None = None

    async def check(self, field: str, kind: str) -> None:
        if self._seen is None:
            self._seen = set(await self._ulak.jobs.tally())
        if kind not in self._seen and len(self._seen) >= MAX_KINDS and self._ulak.handlers.get(kind) is None:
            text = (
                f"must be one of the {MAX_KINDS:,} kinds that the store has had so far, or one that a handler here has"
            )
            raise Invalid(
                f"{kind!r:.50} would be one kind too many; is it made up anew for each job?", fields=[(field, text)]
            )

    def note(self, kinds: Iterable[str]) -> None:
        """Jobs of these kinds were accepted."""
        if self._seen is not None:
            self._seen.update(kinds)
