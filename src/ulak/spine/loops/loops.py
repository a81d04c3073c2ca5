"""Starts, guards and stops the loops of a store: worker, timers, heartbeat, cron, expiry, pruner, upkeep."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ulak.clock import Clock, SteadyClock
from ulak.errors import Error
from ulak.log import get_logger
from ulak.spine import probe
from ulak.spine.breaker import Breakers, hasten_all, load_breakers
from ulak.spine.handler import Handlers
from ulak.spine.job import JobEvent
from ulak.spine.lane import Lane
from ulak.spine.loops.alarm import Alarm
from ulak.spine.loops.gate import Gate
from ulak.spine.loops.rescuer import Rescuer
from ulak.spine.loops.steering import Steering
from ulak.spine.loops.tail import Tail
from ulak.spine.loops.worker import StopReport, Worker
from ulak.spine.store import AfterCommit, Store, Tx
from ulak.spine.telemetry import Telemetry
from ulak.spine.units import expire
from ulak.spine.units.controls import load_controls
from ulak.spine.units.cron import FIRE_DUE, CronEntry, Tick
from ulak.spine.units.followers import find_backlogs
from ulak.spine.units.prune import PAUSE_SECONDS, PRUNE, SLICE, Ages
from ulak.spine.units.slots import PROMOTE_STRANDED

log = get_logger("ulak.loop")

MAX_SLEEP_SECONDS = 1.0
UPKEEP_SECONDS = 0.5
BREAKERS_SECONDS = 2.0
STEERING_SECONDS = 1.0
CLAIM_SECONDS = 5.0  # a claim that takes longer is the store's trouble, and no reason to keep a person waiting
CLOCK_STEP_MILLIS = 1000


class Loops:
    """Everything that runs in the background of one open Ulak. It listens to the store's commits."""

    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        clock: Clock,
        telemetry: Telemetry,
        lanes: dict[str, Lane],
        *,
        concurrency: int,
        threads: int,
        processes: int,
        lease_seconds: float,
        poison_deaths: int,
        ages: Ages,
        crons: list[CronEntry],
        prunes: Mapping[str, Callable[[Tx], int]],
        served: Sequence[str] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        telemetry.expect(handler.kind for handler in handlers)
        self.breakers = Breakers()
        self.tail = Tail(store, self.watching)
        self.gate = Gate(store, clock, handlers, telemetry, self.breakers)
        self.steering = Steering(served)
        self.worker = Worker(
            store, handlers, self.steering, clock, telemetry, self.breakers, lanes, concurrency, threads, processes
        )
        self.alarm = Alarm(store, clock, self.worker)
        self._rescuer = Rescuer(store, telemetry, lease_seconds, poison_deaths)
        self._ages = ages
        self._crons = tuple(crons)
        self._prunes = prunes
        self._behind = asyncio.Event()
        self._never = asyncio.Event()
        self._loading = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._watchers: list[asyncio.Event] = []
        self.changed = asyncio.Event()
        self.failure: Exception | None = None
        self.failed = asyncio.Event()

    # The store's listener

    def committed(self, buffers: AfterCommit, freed: list[str]) -> None:
        for (word, kind), number in buffers.counts.items():
            if word == JobEvent.ACCEPTED:
                self._telemetry.count("jobs_accepted", kind, number=number)
            else:
                self.gate.drain.note(word, kind, number)
        if buffers.ready:
            self.worker.claimer.note_ready(buffers.ready)
        if buffers.due_at is not None:
            self.alarm.set(buffers.due_at)
        if buffers.cancelled:
            self.worker.cancel(buffers.cancelled)
        if buffers.behind:
            self._behind.set()
        if freed:
            self.gate.announce(freed)
        if buffers.events and self._watchers:
            self.tail.note(buffers.block)
            for watcher in self._watchers:
                watcher.set()
        self.changed.set()

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        """An event that is set by every commit with news."""
        watcher = asyncio.Event()
        self._watchers.append(watcher)
        try:
            yield watcher
        finally:
            self._watchers.remove(watcher)

    def lost(self, reason: Exception) -> None:
        self.failure = reason
        self.failed.set()
        log.critical("store_lost", error=str(reason))

    # Life

    async def start(self, *, work: bool) -> None:
        if work:
            self.breakers.load(await self._store.read(load_breakers))
            await self.load_controls()
            self.worker.cancel(await self._rescuer.beat())
            self._spawn("worker", self.worker.claimer.run)
            self._spawn("watch", self._run_watch)
            self._spawn("timers", self.alarm.run)
            self._spawn("behind", self._run_behind)
            self._spawn("expiry", self._run_expiry)
            self._spawn("pruner", self._run_pruner)
            if self._crons:
                self._spawn("cron", self._run_cron)
            if self._store.multi_process:
                self._spawn("breakers", self._run_breakers)
                self._spawn("steering", self._run_steering)
        if work or self._store.multi_process:
            self._spawn("heartbeat", self._run_heartbeat)
        self._spawn("upkeep", self._run_upkeep)

    def _spawn(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(self._guard(name, run), name=f"ulak-{name}"))

    async def _guard(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a loop, and start it again after a pause if it fails."""
        while True:
            try:
                return await run()
            except Error as error:
                log.warning("loop_failed", loop=name, error=str(error))
            except Exception:
                log.exception("loop_failed", loop=name)
            await self._clock.wait(self._never, MAX_SLEEP_SECONDS)

    async def stop(self, grace_seconds: float, cancel_seconds: float) -> StopReport:
        report = await self.worker.stop(grace_seconds, cancel_seconds)
        self.gate.close()  # only now: running handlers may have more to enqueue
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.tail.close()
        for watcher in self._watchers:
            watcher.set()
        return report

    # The loops

    async def _run_behind(self) -> None:
        """Give away slots that nobody holds. Only callers' own transactions leave such keys."""
        while True:
            after: str | None = ""
            while after is not None and self._store.multi_process:
                after = await self._store.submit(PROMOTE_STRANDED, after)
            self._behind.clear()
            await self._clock.wait(self._behind, MAX_SLEEP_SECONDS * 5)

    async def _run_heartbeat(self) -> None:
        """It beats first: one that failed is made up for after the guard's pause, which is short, and not its own."""
        while True:
            probe.reach("rescuer.before_rescue")
            self.worker.cancel(await self._rescuer.beat())
            probe.reach("rescuer.rescued")
            await self._clock.wait(self._never, self._rescuer.pause_seconds)

    async def _run_cron(self) -> None:
        """Until claiming stops. Times that pass then are left to other processes, or to the next start."""
        tick = Tick(self._crons)
        while not self.worker.claimer.stopping:
            probe.reach("cron.before_fire")
            following, fired = await self._store.submit(FIRE_DUE, tick)
            tick = Tick(self._crons, opens=False)
            for name in fired:
                self._telemetry.count("cron_fired", name)
            pause = max(following - self._clock.now(), 0) / 1000
            await self._clock.wait(self._never, min(pause, MAX_SLEEP_SECONDS))

    async def _run_expiry(self) -> None:
        while True:
            await self.expire()
            await self._clock.wait(self._never, expire.PAUSE_SECONDS)

    async def expire(self) -> None:
        """Expire jobs that are too old, also those that no claim would find."""
        while await self._store.submit(expire.EXPIRE, None) == expire.PAGE:
            pass

    async def _run_pruner(self) -> None:
        while True:
            pruned = await self._store.submit(PRUNE, self._ages)
            for table, prune in self._prunes.items():
                pruned[table] = await self._store.write(prune)
            for table, number in pruned.items():
                self._telemetry.count("events_pruned", "", table, number)
            if max(pruned.values()) < SLICE:
                await self._tell_backlogs()
                await self._clock.wait(self._never, PAUSE_SECONDS)

    async def _tell_backlogs(self) -> None:
        """Log the followers for which old events are kept, and those that have lost some because they were too slow."""
        before = self._clock.now() - self._ages.events
        for one in await self._store.read(find_backlogs, before):
            log.warning("follower_behind", follower=one.follower, lag=one.lag, lost=one.lost)

    async def _run_breakers(self) -> None:
        """Note breakers that another process has closed; callers that they stopped here may go."""
        while True:
            await self._clock.wait(self._never, BREAKERS_SECONDS)
            if self.breakers.stopping():
                for breaker in self.breakers.compare(await self._store.read(load_breakers)):
                    log.info("breaker_closed_elsewhere", destination=breaker.destination)
                    await hasten_all(self._store, breaker.destination, breaker.left_millis(self._clock.now()))

    async def _run_steering(self) -> None:
        """Take over what people have set for kinds in another process."""
        while True:
            await self._clock.wait(self._never, STEERING_SECONDS)
            await self.load_controls()

    async def load_controls(self) -> None:
        """A claim that waits with the store is made anew: it may be for a kind that is paused now."""
        async with self._loading:  # or an older reading could be taken over after a newer one
            if self.steering.load(await self._store.read(load_controls)):
                self.worker.claimer.claim_anew()

    async def controls_hold(self) -> None:
        """Take over the controls, and wait for a claim on its way that was made with older ones."""
        await self.load_controls()
        self.worker.claimer.claim_anew()
        await self.worker.claimer.claims_ended(CLAIM_SECONDS)

    async def _run_watch(self) -> None:
        """End late attempts. This asks nothing of the store, so a store that does not answer can't hold it up."""
        while True:
            await self._clock.wait(self._never, UPKEEP_SECONDS)
            self.worker.watch()

    async def _run_upkeep(self) -> None:
        """The store's own upkeep, and steps of the wall clock."""
        skew = self._skew()
        while True:
            await self._clock.wait(self._never, UPKEEP_SECONDS)
            await self._store.maintain()
            self.gate.look()
            await self.gate.look_at_full()
            seen = self._skew()
            if abs(seen - skew) > CLOCK_STEP_MILLIS:
                self._telemetry.count("clock_steps", "", "forward" if seen > skew else "back")
                log.warning("clock_stepped", by_seconds=round((seen - skew) / 1000, 3))
                self.alarm.look()
            skew = seen

    def _skew(self) -> float:
        """The wall against the time that has passed; it changes when somebody sets the clock."""
        wall = self._clock.wall() if isinstance(self._clock, SteadyClock) else self._clock.now()
        return wall - self._clock.monotonic() * 1000
