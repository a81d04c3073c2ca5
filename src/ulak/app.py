"""The composition root: one Ulak, its store, its loops, and the namespaces of its rooms. It decides nothing."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import structlog

from ulak.backoff import Backoff
from ulak.clock import Clock, SystemClock
from ulak.compute.cpus import usable_cpus
from ulak.compute.service import Compute
from ulak.errors import Conflict, Error, Invalid, Unavailable
from ulak.notify.service import Notify
from ulak.rooms import ComputeRoom, NotifyRoom, compute_room, notify_room
from ulak.settings import Settings, load
from ulak.spine.breaker import BreakerPolicy
from ulak.spine.cron import CronEntry
from ulak.spine.enqueue import ENQUEUE_ONE, Full
from ulak.spine.form import is_number, to_row, to_rows
from ulak.spine.handler import Handler, Handlers, LaneName, Policy
from ulak.spine.job import NewJob, OnUncertain, Priority
from ulak.spine.jobs import Jobs
from ulak.spine.lane import Lane, ThreadLane
from ulak.spine.loop import Loops
from ulak.spine.pruner import Ages
from ulak.spine.store import Store, Tx, closing_seconds
from ulak.spine.telemetry import Telemetry
from ulak.spine.worker import StopReport
from ulak.stores.open import make_store

log = structlog.get_logger("ulak")

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def _millis(days: float) -> int:
    return round(days * 86_400_000)


class Ulak:
    """A courier. Use it inside `async with`; two of them can live in one process."""

    def __init__(
        self,
        store: str | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        work: bool = True,
    ) -> None:
        self.settings = settings or load(overrides={} if store is None else {"store": store}).settings
        self.clock = clock or SystemClock()
        self.handlers = Handlers()
        self.telemetry = Telemetry()
        self.address = store or self.settings.store
        self._work = work
        self._crons: list[CronEntry] = []
        self._own_lanes: dict[str, Lane] = {}
        self._lanes: dict[str, Lane] = {}
        self._store: Store | None = None
        self._loops: Loops | None = None
        self._room: NotifyRoom | None = None
        self._compute: ComputeRoom | None = None
        self.stop_report: StopReport | None = None

    # Declaring

    def handles(
        self,
        kind: str,
        *,
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
        pool: str | None = None,
    ) -> Callable[[F], F]:
        """Register the function that runs a job kind."""
        if not isinstance(kind, str):
            raise Invalid(f'{kind!r:.50} is no job kind; write @ulak.handles("room.verb")')
        spine = self.settings.spine
        usual = Backoff(spine.retry_first_seconds, spine.retry_factor, spine.retry_cap_seconds, spine.retry_jitter)

        def register(call: F) -> F:
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
                    pool,
                )
            )
            return call

        return register

    def cron(self, name: str, expression: str, kind: str, payload: Any = None, *, time_zone: str = "UTC") -> None:
        """Enqueue a job at the times of a cron expression, once per time across all instances."""
        self._not_open("a cron entry")
        entry = CronEntry(name, expression, kind, payload, time_zone)
        entry.check(self.clock.now())  # a mistake is told now, not at the first firing
        if any(known.name == name for known in self._crons):
            raise Conflict(f"there is a cron entry {name} already; names are unique")
        self._crons.append(entry)

    def use_lane(self, name: LaneName, lane: Lane) -> None:
        """Run the handlers of a lane elsewhere. It is closed with this Ulak, and used again if that is opened again."""
        self._not_open("a lane")
        if name not in {"thread", "process"}:
            raise Invalid(f"no lane {name!r:.50} can be filled; there are: thread, process")
        self._own_lanes[name] = lane

    def _not_open(self, what: str) -> None:
        if self._store is not None:
            raise Conflict(f"{what} must be declared before this Ulak is opened")

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
        if self._room is None or self._compute is None:
            self._room, self._compute = notify_room(self), compute_room(self)
        spine, worker = self.settings.spine, self.settings.worker
        capacity = partial(self.handlers.capacity_of, usual=spine.capacity)
        store = make_store(self.address, self.clock, capacity, spine, self.handlers.pool_of, works=self._work)
        self._lanes = {"thread": ThreadLane(worker.threads), "process": self._compute.lane, **self._own_lanes}
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
            prunes=self._room.prunes,
            ages=Ages(*map(_millis, (spine.history_days, spine.events_days, spine.dead_days))),
        )
        await store.open(loops)
        self._store, self._loops = store, loops
        try:
            await loops.start(work=self._work)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> StopReport | None:
        """Stop gracefully: within stop_grace_seconds and stop_cancel_seconds, whatever is running."""
        if self._store is None or self._loops is None:
            return None
        worker, began = self.settings.worker, self.clock.monotonic()
        report = await self._loops.stop(worker.stop_grace_seconds, worker.stop_cancel_seconds)
        for lane in self._lanes.values():
            lane.close()
        if self._room is not None:
            await self._room.registry.close()
        await self._say_what_is_lost()
        left = began + worker.stop_grace_seconds + worker.stop_cancel_seconds - self.clock.monotonic()
        if not await self._store.close(closing_seconds(self._store, left)):
            log.error("store_stuck", note="it did not answer in time; what was under way there has an unknown outcome")
            report = replace(report, stuck=True)
        self._store = self._loops = None
        self.stop_report = report
        log.info(
            "stopped",
            finished=report.finished,
            released=report.released,
            cancelled=report.cancelled,
            left=len(report.left),
        )
        return report

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
        if self._store is None:
            raise Unavailable("this Ulak is not open; use it inside `async with`")
        return self._store

    @property
    def loops(self) -> Loops:
        if self._loops is None:
            raise Unavailable("this Ulak is not open; use it inside `async with`")
        return self._loops

    @property
    def jobs(self) -> Jobs:
        return Jobs(self.store, self.store.clock)

    @property
    def notify(self) -> Notify:
        if self._room is None:
            raise Unavailable("this Ulak is not open; use it inside `async with`")
        return self._room.service

    @property
    def compute(self) -> Compute:
        if self._compute is None:
            raise Unavailable("this Ulak is not open; use it inside `async with`")
        return self._compute.service

    # Enqueuing

    async def enqueue(
        self,
        kind: str,
        payload: Any = None,
        *,
        priority: Priority = Priority.NORMAL,
        key: str | None = None,
        slots: int = 1,
        delay_seconds: float | None = None,
        due_at: datetime | None = None,
        expires_at: datetime | None = None,
        unique_key: str | None = None,
        continuation: str | None = None,
        on_uncertain: OnUncertain = "resend",
        connection: Any = None,
    ) -> int:
        """Accept a job durably and answer its id. At the kind's bound: wait or refuse, by its policy.

        With `connection` (PostgreSQL), the job joins the caller's open transaction and exists when that commits.
        """
        job = NewJob(
            kind,
            payload,
            priority,
            key,
            slots,
            delay_seconds,
            due_at,
            expires_at,
            unique_key,
            continuation,
            on_uncertain,
        )
        if connection is not None:
            return (await self.enqueue_many([job], connection=connection))[0]
        store, gate = self.store, self.loops.gate
        now = store.clock.now()
        row = to_row(job, store.ids.take(now), now)
        # Without a coroutine in between, as most jobs come this way.
        verdict = await gate.at_once(kind, ENQUEUE_ONE, row)
        return await gate.in_line(kind, ENQUEUE_ONE, row, 1) if isinstance(verdict, Full) else verdict

    async def enqueue_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[int]:
        """Accept all jobs in one transaction, or none. A job whose unique key is taken answers the holder's id."""
        rows = to_rows(jobs, self.store.ids, self.store.clock.now())
        if not rows:
            return []
        if connection is not None:
            return await self.store.enqueue_in(connection, rows)
        return await self.loops.gate.enqueue(rows)

    async def put(self, *jobs: NewJob) -> list[int]:
        """Accept jobs; at the bound wait for room, whatever the kind's policy."""
        rows = to_rows(jobs, self.store.ids, self.store.clock.now())
        return await self.loops.gate.put(rows) if rows else []

    async def offer(
        self, kind: str, payload: Any = None, *, timeout_seconds: float = 0.0, **options: Any
    ) -> int | None:
        """Accept a job if there is room, or comes to be within the time; None when not."""
        if not is_number(timeout_seconds):
            raise Invalid(f"timeout_seconds must be a number of at least 0, not {timeout_seconds!r:.50}")
        rows = to_rows([NewJob(kind, payload, **options)], self.store.ids, self.store.clock.now())
        ids = await self.loops.gate.offer(rows, timeout_seconds)
        return None if ids is None else ids[0]

    async def write(self, unit: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function in a transaction of Ulak's store: atomic, database only, and re-runnable."""
        if inspect.iscoroutinefunction(unit):
            raise Invalid(f"a unit of work is a plain function, unit(tx, …), not {unit!r:.50}; nothing of it was run")
        return await self.store.write(unit, *args, **kwargs)
