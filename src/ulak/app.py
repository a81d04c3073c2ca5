"""The composition root: one Ulak, its store, its loops, and the namespaces of its rooms. It decides nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from ulak.buses.runner import BusRunner
from ulak.channels.channel import Channel
from ulak.channels.message import NewMessage
from ulak.channels.registry import Registry, make_registry, tell_simulated
from ulak.clock import Clock, SystemClock
from ulak.compute.pool.cpus import usable_cpus
from ulak.declarer import Declarer
from ulak.enqueuer import Enqueuer
from ulak.errors import Conflict, Error, Misconfigured, Unavailable
from ulak.log import get_logger
from ulak.rooms import LINES, Namespaces, Rooms
from ulak.settings import Settings, load
from ulak.spine.audit import AuditLog
from ulak.spine.jobs import Jobs
from ulak.spine.kinds import Kinds
from ulak.spine.lane import Lane
from ulak.spine.loops.loops import Loops
from ulak.spine.loops.runners import ThreadLane
from ulak.spine.loops.sampler import Sampler
from ulak.spine.loops.worker import StopReport
from ulak.spine.redriver import Redriver
from ulak.spine.room import Room
from ulak.spine.store import Store, Tx, closing_seconds
from ulak.spine.telemetry import Telemetry
from ulak.spine.trace import Tracer
from ulak.spine.units.dead_letters import Filter, find_ids, redrive_by
from ulak.spine.units.prune import Ages
from ulak.spine.units.sample import Sample
from ulak.stores.open import make_store

log = get_logger("ulak")

R = TypeVar("R")
T = TypeVar("T")


def _open(part: R | None) -> R:
    if part is None:
        raise Unavailable("this Ulak is not open; use it inside `async with`")
    return part


def _make_tracer(settings: Settings) -> Tracer:
    if not settings.telemetry.traces:
        return Tracer()
    try:
        from ulak.otel import OtelTracer
    except ModuleNotFoundError as error:
        raise Misconfigured(
            "telemetry.traces is on, but OpenTelemetry is not installed; pip install 'ulak[otel]', or set it to false"
        ) from error
    return OtelTracer()


class Ulak(Namespaces, Declarer, Enqueuer):
    """A courier. Use it inside `async with`; two of them can live in one process.

    `work` says which kinds this process serves: all that have a handler, none, or those that fit `["notify.*"]`.
    """

    def __init__(
        self,
        store: str | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        work: bool | Sequence[str] = True,
        channels: Sequence[Channel] = (),
    ) -> None:
        super().__init__(work)
        self.settings = settings or load(overrides={} if store is None else {"store": store}).settings
        self.clock = clock or SystemClock()
        self.telemetry = Telemetry(_make_tracer(self.settings))
        self.bus = BusRunner(self)
        self.telemetry.gauges(self.bus.gauges)
        self.address = store or self.settings.store
        self.thread_context: AbstractContextManager[None] = contextlib.nullcontext()  # around each handler on a thread
        self._own_channels = tuple(channels)
        self._lanes: dict[str, Lane] = {}
        self._store: Store | None = None
        self._loops: Loops | None = None
        self._sampler: Sampler | None = None
        self._redriver: Redriver[Filter] | None = None
        self._channels: Registry | None = None
        self._rooms: Rooms | None = None
        self.stop_report: StopReport | None = None

    @property
    def _is_open(self) -> bool:
        return self._store is not None

    # Life

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        if self._store is not None:
            raise Conflict("this Ulak is open already; open it once, or make another one")
        rooms = self.rooms
        spine, worker = self.settings.spine, self.settings.worker
        capacity = partial(self.handlers.capacity_of, usual=spine.capacity)
        store = make_store(self.address, self.clock, capacity, spine, lines=LINES)
        lanes = {name: lane for room in rooms for name, lane in room.lanes.items()}
        self._lanes = {"thread": ThreadLane(worker.threads, self.thread_context), **lanes, **self._own_lanes}
        loops = Loops(
            store,
            self.handlers,
            store.clock,
            self.telemetry,
            self._lanes,
            concurrency=worker.concurrency,
            threads=worker.threads,
            processes=self.settings.compute.cpu_workers or usable_cpus(),
            lease_seconds=spine.lease_seconds,
            poison_deaths=spine.poison_deaths,
            crons=self._crons,
            prunes={name: prune for room in rooms for name, prune in room.prunes.items()},
            ages=Ages.of_days(spine.history_days, spine.events_days, spine.dead_days, spine.followed_days),
            served=self._served,
        )
        if self.works:
            tell_simulated(self.channels)
            if (crowding := self.handlers.crowding(worker.concurrency)) is not None:
                log.warning("kinds_crowded", note=crowding)
        await store.open(loops)
        self._store, self._loops, self._sampler = store, loops, Sampler(store)
        self._redriver = Redriver(store, find_ids, redrive_by)
        try:
            for room in rooms:
                await room.start()
            if self.works:
                await self.bus.start()
            await loops.start(work=self.works)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> StopReport | None:
        """Stop gracefully: within stop_grace_seconds and stop_cancel_seconds, whatever is running."""
        if self._store is None or self._loops is None:
            return None
        worker, began = self.settings.worker, self.clock.monotonic()
        self._loops.gate.refuse_requests()
        self.redriver.cancel()
        await self.bus.stop()
        report = await self._loops.stop(worker.stop_grace_seconds, worker.stop_cancel_seconds)
        for lane in self._lanes.values():
            lane.close()
        await self._close_rooms()
        await self.channels.close()
        await self._say_what_is_lost()
        left = began + worker.stop_grace_seconds + worker.stop_cancel_seconds - self.clock.monotonic()
        if not await self._store.close(closing_seconds(self._store, left)):
            log.error("store_stuck", note="it did not answer in time; what was under way there has an unknown outcome")
            report = replace(report, stuck=True)
        self._store = self._loops = self._sampler = self._redriver = None
        self.stop_report = report
        counts = {name: getattr(report, name) for name in ("finished", "released", "cancelled")}
        if self.works:  # a process that only enqueues has nothing to report
            log.info("stopped", **counts, left=len(report.left))
        return report

    async def _close_rooms(self) -> None:
        """One that fails must not keep the store from being closed."""
        for room in self.rooms:
            try:
                await room.close()
            except Exception:
                log.exception("room_not_closed", room=room.name)

    async def _say_what_is_lost(self) -> None:
        """A store in memory forgets what waits: say so, with a count."""
        if self.address != "memory:" or self.loops.failure is not None:  # a lost one has told already
            return
        with contextlib.suppress(Error):
            counts = (await self.jobs.counts()).values()
            waiting = sum(number for states in counts for number in states.values() if isinstance(number, int))
            if waiting:
                log.warning("discarded", jobs=waiting, note="memory: keeps nothing; what was waiting is lost")

    @property
    def store(self) -> Store:
        return _open(self._store)

    @property
    def loops(self) -> Loops:
        return _open(self._loops)

    @property
    def jobs(self) -> Jobs:
        return Jobs(self.store, self.store.clock)

    @property
    def kinds(self) -> Kinds:
        return Kinds(self.store, self.handlers, self.loops)

    @property
    def audit(self) -> AuditLog:
        return AuditLog(self.store)

    @property
    def redriver(self) -> Redriver[Filter]:
        return _open(self._redriver)

    @property
    def sampler(self) -> Sampler:
        return _open(self._sampler)

    @property
    def sample(self) -> Sample:
        return self.sampler.last

    @property
    def channels(self) -> Registry:
        if self._channels is None:
            self._channels = make_registry(self, self._own_channels)
        return self._channels

    # Rooms

    @property
    def rooms(self) -> Rooms:
        """Made when first asked for, at the opening as a rule, and used again if this Ulak is opened again."""
        if self._rooms is None:
            self._rooms = Rooms(self)
            for room in self._rooms:
                self._furnish(room)
        return self._rooms

    def _furnish(self, room: Room[Any]) -> None:
        for handler in room.handlers:
            self.handlers.add(handler)
        for entry in room.crons:
            self._add_cron(entry)
        self.telemetry.gauges(room.gauges)
        if "requests" in room.ports:
            self.bus.accept_from(*room.ports["requests"]())

    def post(self, tx: Tx, messages: Sequence[NewMessage]) -> list[int]:
        """Send notifications with the transaction of a unit of your own; a bound does not refuse them."""
        return cast("list[int]", self.rooms.port("post")(tx, messages))

    def check_message(self, message: NewMessage) -> None:
        """Raise Invalid, with the fields at fault, for a message that `post` would not take."""
        self.rooms.port("check_message")(message)

    async def run(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function that can be imported on one of the compute engine's processes."""
        return await self.rooms.port("run")(function, *args, **kwargs)
