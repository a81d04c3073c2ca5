"""The verbs with which an application declares its part before a Ulak is opened: handlers, cron entries, lanes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, Unpack, overload

from ulak.backoff import Backoff
from ulak.clock import Clock
from ulak.errors import Conflict, Invalid
from ulak.settings import Settings
from ulak.spine.breaker import BreakerPolicy
from ulak.spine.handler import Declares, Handler, HandlerOptions, Handlers, LaneName, Policy
from ulak.spine.lane import Lane
from ulak.spine.loops.steering import check_patterns
from ulak.spine.units.cron import CronEntry

T = TypeVar("T")


class Declarer(ABC):
    """Declarations that `Ulak` inherits; all of them are made before it is opened."""

    settings: Settings
    clock: Clock

    def __init__(self, work: bool | Sequence[str]) -> None:
        self.handlers = Handlers()
        self.works = bool(work)
        self._served = None if isinstance(work, bool) else check_patterns(work)
        self._crons: list[CronEntry] = []
        self._own_lanes: dict[str, Lane] = {}

    @property
    @abstractmethod
    def _is_open(self) -> bool: ...

    @overload
    def handles(self, kind: str, *, payload: type[T], **limits: Unpack[HandlerOptions]) -> Declares[T]: ...

    @overload
    def handles(self, kind: str, *, payload: None = None, **limits: Unpack[HandlerOptions]) -> Declares[Any]: ...

    def handles(
        self,
        kind: str,
        *,
        payload: Any = None,
        lane: LaneName = "async",
        concurrency: int = 100,
        max_attempts: int | None = None,
        timeout_seconds: float = 300.0,
        backoff: Backoff | None = None,
        rate_per_second: float | None = None,
        capacity: int | None = None,
        admission: Policy = "block",
        wait_seconds: float = 5.0,
        breaker: BreakerPolicy | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the function that runs a job kind. With `payload=Order` it gets a `Job[Order]`.

        The payload is then decoded and checked when a job is enqueued here, and again before the handler runs.
        """
        if not isinstance(kind, str):
            raise Invalid(f'{kind!r:.50} is not a job kind; write @ulak.handles("room.verb")')
        spine = self.settings.spine
        usual = Backoff(spine.retry_first_seconds, spine.retry_factor, spine.retry_cap_seconds, spine.retry_jitter)

        def register(call: Callable[..., Any]) -> Callable[..., Any]:
            self._not_open("a handler")
            self.handlers.add(
                Handler(
                    kind,
                    call,
                    lane,
                    concurrency,
                    spine.max_attempts if max_attempts is None else max_attempts,
                    timeout_seconds,
                    backoff or usual,
                    rate_per_second,
                    capacity,
                    admission,
                    wait_seconds,
                    breaker,
                    payload=payload,
                )
            )
            return call

        return register

    def cron(self, name: str, expression: str, kind: str, payload: Any = None, *, time_zone: str = "UTC") -> None:
        """Enqueue a job at the times of a cron expression, once per time across all instances."""
        self._not_open("a cron entry")
        entry = CronEntry(name, expression, kind, payload, time_zone)
        entry.check(self.clock.now())  # a mistake is told now, not at the first firing
        self._add_cron(entry)

    def _add_cron(self, entry: CronEntry) -> None:
        if any(known.name == entry.name for known in self._crons):
            raise Conflict(f"there is a cron entry {entry.name} already; names are unique")
        self._crons.append(entry)

    @property
    def cron_entries(self) -> tuple[CronEntry, ...]:
        return tuple(self._crons)

    def use_lane(self, name: LaneName, lane: Lane) -> None:
        """Run the handlers of a lane elsewhere. It is closed with this Ulak, and used again if that is opened again."""
        self._not_open("a lane")
        if name not in {"thread", "process"}:
            raise Invalid(f"no lane {name!r:.50} can be filled; there are: thread, process")
        self._own_lanes[name] = lane

    def serve_only(self, patterns: Sequence[str]) -> None:
        """Serve the kinds that fit a pattern (`notify.*`) and no others."""
        self._not_open("the kinds that are served")
        self.works, self._served = True, check_patterns(patterns)

    def _not_open(self, what: str) -> None:
        if self._is_open:
            raise Conflict(f"{what} must be declared before this Ulak is opened")
