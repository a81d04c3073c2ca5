"""The seam between Ulak and a message bus: messages go out, batches come in. The adapters are in `ulak.buses`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol


class BusMessage(NamedTuple):
    """One message on its way out. Messages with the same key keep their order."""

    topic: str
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


class BusRecord(NamedTuple):
    """One message that came in, and where it stood."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


class Undelivered(NamedTuple):
    """A message that its topic did not take, and why."""

    message: BusMessage
    cause: str


Take = Callable[[Sequence[BusRecord]], Awaitable[None]]
"""Takes a batch, and returns when it is durable. It may be given the same records again."""


class MessageBus(Protocol):
    """Both directions are at least once: a crash in between repeats, and loses nothing."""

    name: str

    async def produce(self, messages: Sequence[BusMessage]) -> list[Undelivered]:
        """Return when all are safe with the bus, but for those of a topic that takes no more: from the first that it
        did not take on, in their order. Unavailable when the bus is out of reach.
        """

    async def resend(self, messages: Sequence[BusMessage]) -> list[Undelivered]:
        """The same for messages that were not taken; `produce` does not wait for it."""

    async def consume(self, takes: Mapping[str, Take]) -> None:
        """Hand over each topic's batches one by one until `close`; a batch that fails is handed over again."""

    async def close(self) -> None: ...
