"""The verbs with which people look at the audit log: list and verify."""

from __future__ import annotations

from ulak.spine.store import Store
from ulak.spine.units.audit import AuditLine, ChainState, follow_chain, read_lines

PAGE = 1000
MAX_SEQ = (1 << 63) - 1


class AuditLog:
    """`ulak.audit`: who did what to which object, and when."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(
        self,
        before: int | None = None,
        limit: int = 100,
        *,
        who: str | None = None,
        verb: str | None = None,
        object: str | None = None,  # noqa: A002 - the log's own word
    ) -> list[AuditLine]:
        """Newest first."""
        below = MAX_SEQ if before is None else before
        return await self._store.read(read_lines, below, limit, who=who, verb=verb, object=object)

    async def verify(self) -> ChainState:
        """Follow the whole chain. Lines cut off at its end leave no trace: compare the last hash with one you kept."""
        state, number = ChainState(), PAGE
        while number == PAGE and state.broken_at is None:
            state, number = await self._store.read(follow_chain, state, PAGE)
        return state
