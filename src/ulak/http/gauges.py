"""Gauges of the whole store for /metrics: sampled in one read, at most every few seconds, never on the accept path."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ulak.app import Ulak
from ulak.errors import Error
from ulak.masking import mask_text
from ulak.notify.ledger import balance
from ulak.spine.breaker import Breaker, load_breakers
from ulak.spine.job import State, Word
from ulak.spine.query import Queries
from ulak.spine.store import Tx

log = structlog.get_logger("ulak.http")
sql = Queries("ulak.spine")

PAUSE_SECONDS = 3.0

GAUGES = {
    "ulak_jobs": "Unfinished jobs, by kind and state.",
    "ulak_oldest_job_age_seconds": "Age of the oldest unfinished job; one that was put off counts from its due time.",
    "ulak_capacity": "Most unfinished jobs of a pool: a kind, or kinds that share a bound.",
    "ulak_utilisation": "Unfinished jobs of a pool as a part of its capacity, 0 to 1.",
    "ulak_conservation_difference": "Accepted jobs that are neither unfinished nor finished; other than 0 is a defect.",
    "ulak_notify_notifications": "Notifications since the store was made, by what became of them; `accepted` is all.",
    "ulak_notify_conservation_difference": "Accepted notifications that are nowhere; other than 0 is a defect.",
    "ulak_breaker_open": "1 for each destination whose breaker is open or half-open; more if they are masked alike.",
    "ulak_running": "Attempts that run in this process.",
    "ulak_store": "Facts of the store: sizes, commits, what waits for the writer.",
    "ulak_sample_age_seconds": "Age of the sample that these gauges come from.",
}
_STATES = {int(state): state.name.lower() for state in State} | {int(State.LEASED): "running"}
_ENDS = (Word.DONE, Word.CANCELLED, Word.EXPIRED, Word.DEAD)


@dataclass(frozen=True, slots=True)
class Sample:
    live: dict[tuple[str, str], int] = field(default_factory=dict)
    oldest_at: dict[str, int] = field(default_factory=dict)
    tally: dict[tuple[str, str], int] = field(default_factory=dict)
    breakers: tuple[Breaker, ...] = ()
    taken_at: int = 0

    def kinds(self) -> list[str]:
        return sorted({kind for kind, _ in self.live} | {kind for _, kind in self.tally})

    def depth(self, kind: str) -> int:
        return sum(number for (name, _), number in self.live.items() if name == kind)

    def difference(self, kind: str) -> int:
        """Accepted, less what has ended (a redriven death is no end), less what lives."""
        ended = sum(self.tally.get((word, kind), 0) for word in _ENDS) - self.tally.get((Word.REDRIVEN, kind), 0)
        return self.tally.get((Word.ACCEPTED, kind), 0) - ended - self.depth(kind)


def take_sample(tx: Tx) -> Sample:
    """One read, so that counts and tally are of the same moment."""
    live: Counter[tuple[str, str]] = Counter()
    oldest: dict[str, int] = {}
    for kind, state, number, oldest_at in tx.all(sql.count_waiting):
        live[(kind, _STATES[state])] += number
        oldest[kind] = min(oldest.get(kind, oldest_at), oldest_at)
    tally = {(word, kind): int(number) for word, kind, number in tx.all(sql.read_tally)}
    return Sample(dict(live), oldest, tally, tuple(load_breakers(tx)), tx.now)


Point = tuple[str, dict[str, str], float]


def _of_notify(sample: Sample) -> Iterator[Point]:
    """accepted = delivered + failed + dead + held + cancelled + expired + waiting, in one sample."""
    books = balance(sample.tally, sample.live)
    for status, number in asdict(books).items():
        yield "ulak_notify_notifications", {"status": status}, number
    yield "ulak_notify_conservation_difference", {}, books.difference


class Sampler(Collector):
    def __init__(self, ulak: Ulak) -> None:
        self._ulak = ulak
        self._sample = Sample()
        self._taken = self._not_before = float("-inf")
        self._lock = asyncio.Lock()

    async def refresh(self) -> None:
        """A new sample, unless the last is young. If the store does not answer, the old one stays and ages."""
        async with self._lock:
            if self._ulak.clock.monotonic() < self._not_before:
                return
            try:
                await self._take()
            except Error as error:
                log.warning("sample_failed", error=str(error))

    async def taken(self) -> Sample:
        """A sample of this very moment, for who asks by hand; raises when the store does not answer.

        An old sample would say that all is well when nobody knows.
        """
        async with self._lock:
            return await self._take()

    async def _take(self) -> Sample:
        try:
            self._sample = await self._ulak.store.read(take_sample)
            self._taken = self._ulak.clock.monotonic()
        finally:
            self._not_before = self._ulak.clock.monotonic() + PAUSE_SECONDS
        return self._sample

    def collect(self) -> Iterable[Metric]:
        families: dict[str, GaugeMetricFamily] = {}
        for name, labels, value in self._points():
            family = families.setdefault(name, GaugeMetricFamily(name, GAUGES[name], labels=list(labels)))
            family.add_metric(list(labels.values()), value)
        return families.values()

    def _points(self) -> Iterator[Point]:
        sample, age = self._sample, self._ulak.clock.monotonic() - self._taken
        for (kind, state), number in sorted(sample.live.items()):
            yield "ulak_jobs", {"kind": kind, "state": state}, number
        for kind in sample.kinds():
            yield from self._of_kind(sample, kind, age)
        yield from _of_notify(sample)
        # Two that look alike when they are masked are one series: Prometheus takes no scrape in which one comes twice.
        masked = Counter((mask_text(breaker.destination), breaker.state) for breaker in sample.breakers)
        for (destination, state), number in masked.items():
            yield "ulak_breaker_open", {"destination": destination, "state": state}, number
        yield "ulak_sample_age_seconds", {}, age
        yield from self._of_store(sample)

    def _of_kind(self, sample: Sample, kind: str, age: float) -> Iterator[Point]:
        """All instants are of the store's clock, and this machine's may differ: it tells only how much time passed."""
        label = {"kind": kind}
        if kind in sample.oldest_at:
            waited = (sample.taken_at - sample.oldest_at[kind]) / 1000 + age
            yield "ulak_oldest_job_age_seconds", label, max(waited, 0.0)
        yield "ulak_conservation_difference", label, sample.difference(kind)

    def _of_store(self, sample: Sample) -> Iterator[Point]:
        try:
            store, running = self._ulak.store, len(self._ulak.loops.worker.running)
        except Error:  # closed meanwhile
            return
        yield "ulak_running", {}, running
        for name, value in store.facts().items():
            yield "ulak_store", {"fact": name}, value
        depths: Counter[str] = Counter()
        for kind in sample.kinds():
            depths[store.ledger.pool_of(kind)] += sample.depth(kind)
        for pool, depth in depths.items():
            capacity = store.ledger.capacity(pool)
            yield "ulak_capacity", {"pool": pool}, capacity
            yield "ulak_utilisation", {"pool": pool}, depth / capacity
