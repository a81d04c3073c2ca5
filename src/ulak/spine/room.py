"""A room is a value: what `<room>/room.py` returns, and the `Host` that it is made from.

The app opens and closes rooms, and the doors find their routes and commands by name; nothing else knows a room.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from ulak.clock import Clock
from ulak.settings import Settings
from ulak.spine.handler import Handler
from ulak.spine.lane import Lane
from ulak.spine.loops.loops import Loops
from ulak.spine.store import Store, Tx
from ulak.spine.telemetry import GaugePoint, Telemetry
from ulak.spine.units.cron import CronEntry
from ulak.spine.units.sample import Sample

S = TypeVar("S")

Prune = Callable[[Tx], int]


def _nothing() -> tuple[()]:
    return ()


async def _at_rest() -> None:
    return


@dataclass(frozen=True, slots=True)
class Room(Generic[S]):
    """`name` is also that of its settings section, table prefix, scope, routes, commands and page of the docs.

    `ports` are for other rooms, through their host. `prunes` remove a slice of rows that are too old, by table.
    `gauges` are asked at each scrape of /metrics; `reasons` say at /readyz what is wrong though it takes work.
    `start` runs when the store is open and nothing has been claimed yet. `tables` are the names that a document
    gives, beside `<room>_*`.
    """

    name: str
    service: S
    handlers: tuple[Handler, ...] = ()
    lanes: Mapping[str, Lane] = field(default_factory=dict)
    ports: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    crons: tuple[CronEntry, ...] = ()
    prunes: Mapping[str, Prune] = field(default_factory=dict)
    gauges: Callable[[], Iterable[GaugePoint]] = _nothing
    reasons: Callable[[], Iterable[str]] = _nothing
    start: Callable[[], Awaitable[None]] = _at_rest
    close: Callable[[], Awaitable[None]] = _at_rest
    tables: tuple[str, ...] = ()


class Host(Protocol):
    """The host of a room. Rooms are made before the store is open: keep the host, and ask it when a verb runs."""

    @property
    def settings(self) -> Settings: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def telemetry(self) -> Telemetry: ...

    @property
    def works(self) -> bool:
        """Whether this process runs jobs. A command that only looks does not, and starts nothing in the background."""

    @property
    def store(self) -> Store:
        """Raises Unavailable while this Ulak is not open; so do `loops` and `channels`."""

    @property
    def loops(self) -> Loops: ...

    @property
    def channels(self) -> Any:
        """The one `channels.registry.Registry`: connections, secrets, breakers. The spine knows no channel."""

    @property
    def sample(self) -> Sample:
        """Counts of the whole store, of one moment, for gauges."""

    def post(self, tx: Tx, messages: Sequence[Any]) -> list[int]:
        """Notify's port: `channels.message.NewMessage`s in the caller's transaction; a bound does not refuse them."""

    def check_message(self, message: Any) -> None:
        """Notify's port: raises Invalid for a `NewMessage` that `post` would not take, before a transaction owes it."""

    async def run(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Compute's port: run a function that can be imported on one of the engine's processes."""
