"""Gauges of the whole store for /metrics, out of the last sample: never read on the accept path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from ulak.app import Ulak
from ulak.errors import Error
from ulak.log import get_logger
from ulak.masking import mask_text
from ulak.spine.capacity import live_pool
from ulak.spine.telemetry import GaugePoint, families_of
from ulak.spine.units.sample import Sample

log = get_logger("ulak.http")

Number = tuple[str, dict[str, str], float]

GAUGES = {
    "ulak_jobs": "Unfinished jobs, by kind and state.",
    "ulak_oldest_job_age_seconds": "Age of the oldest unfinished job; one that was put off counts from its due time.",
    "ulak_remaining_capacity": "What may still be accepted of a kind, by bound.",
    "ulak_capacity": "Most jobs of a kind: active ones (ready, running, suspect), or live ones (parked as well).",
    "ulak_utilisation": "Jobs of a kind as a part of its capacity, by bound; owed work may take it above 1.",
    "ulak_conservation_difference": "Accepted jobs that are neither unfinished nor finished; other than 0 is a defect.",
    "ulak_breaker_open": "1 for each destination whose breaker is open or half-open; more if they are masked alike.",
    "ulak_running": "Attempts that run in this process.",
    "ulak_store": "Facts of the store: sizes, commits, what waits for the writer.",
    "ulak_follower_lag_events": "Events that a follower has not read yet.",
    "ulak_follower_lost_events": "Events that were pruned before a follower had read them.",
    "ulak_sample_age_seconds": "Age of the sample that these gauges come from.",
}


class StoreGauges(Collector):
    def __init__(self, ulak: Ulak) -> None:
        self._ulak = ulak

    def collect(self) -> Iterable[Metric]:
        return families_of(GaugePoint(name, GAUGES[name], labels, value) for name, labels, value in self._numbers())

    def _numbers(self) -> Iterator[Number]:
        sample, age = self._ulak.sample, self._ulak.sampler.age_seconds
        for (kind, state), number in sorted(sample.live.items()):
            yield "ulak_jobs", {"kind": kind, "state": state}, number
        for kind in sample.kinds():
            yield from self._of_kind(sample, kind, age)
        # Two that look alike when they are masked are one series: Prometheus takes no scrape in which one comes twice.
        masked = Counter((mask_text(breaker.destination), breaker.state) for breaker in sample.breakers)
        for (destination, state), number in masked.items():
            yield "ulak_breaker_open", {"destination": destination, "state": state}, number
        for follower, lost in sample.followers:
            yield "ulak_follower_lag_events", {"follower": follower.name}, follower.lag
            yield "ulak_follower_lost_events", {"follower": follower.name}, lost
        yield "ulak_sample_age_seconds", {}, age
        yield from self._of_store(sample)

    def _of_kind(self, sample: Sample, kind: str, age: float) -> Iterator[Number]:
        """All instants are of the store's clock, and this machine's may differ: it tells only how much time passed."""
        label = {"kind": kind}
        if kind in sample.oldest_at:
            waited = (sample.taken_at - sample.oldest_at[kind]) / 1000 + age
            yield "ulak_oldest_job_age_seconds", label, max(waited, 0.0)
        yield "ulak_conservation_difference", label, sample.difference(kind)

    def _of_store(self, sample: Sample) -> Iterator[Number]:
        try:
            store, running = self._ulak.store, len(self._ulak.loops.worker.running)
        except Error:  # closed meanwhile
            return
        yield "ulak_running", {}, running
        for name, value in store.gauges().items():
            yield "ulak_store", {"fact": name}, value
        for kind in sorted({*sample.kinds(), *(handler.kind for handler in self._ulak.handlers)}):
            for name, pool, number in (
                ("active", kind, sample.active(kind)),
                ("live", live_pool(kind), sample.depth(kind)),
            ):
                bound = store.capacity.bound(pool)
                yield "ulak_capacity", {"kind": kind, "bound": name}, bound
                yield "ulak_remaining_capacity", {"kind": kind, "bound": name}, max(bound - number, 0)
                yield "ulak_utilisation", {"kind": kind, "bound": name}, number / bound
