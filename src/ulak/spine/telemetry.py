"""The worker's counts and times, cheap enough for the hot path, and how Prometheus reads them. One per Ulak."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ulak.spine.trace import Tracer

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)


_bucket = partial(bisect_left, BUCKETS)


class Histogram:
    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[_bucket(seconds)] += 1
        self.total += seconds

    def observe_all(self, many: list[float]) -> None:
        for bucket, number in Counter(map(_bucket, many)).items():
            self.counts[bucket] += number
        self.total += sum(many)

    def cumulative(self) -> list[tuple[str, float]]:
        running, pairs = 0, []
        for bound, number in zip([*map(str, BUCKETS), "+Inf"], self.counts, strict=True):
            running += number
            pairs.append((bound, float(running)))
        return pairs


# (name, kind, further labels…)
Histograms = defaultdict[tuple[str, ...], Histogram]


class Times:
    """One kind's histograms, looked up once by code that observes often."""

    __slots__ = ("lateness", "run", "wait")

    def __init__(self, histograms: Histograms, kind: str) -> None:
        self.wait = histograms[("job_wait_seconds", kind)]
        self.run = histograms[("job_run_seconds", kind)]
        self.lateness = histograms[("timer_lateness_seconds", kind)]


class GaugePoint(NamedTuple):
    """One number for Prometheus under its whole name: a counter if that ends in `_total`, else a gauge."""

    name: str
    help: str
    labels: dict[str, str]
    value: float


Gauges = Callable[[], Iterable[GaugePoint]]


class Telemetry(Collector):
    """Counters by (name, kind, label or labels) and histograms by (name, kind, labels…)."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self.tracer = tracer or Tracer()
        self.counters: defaultdict[tuple[str, str, str | tuple[str, ...]], float] = defaultdict(float)
        self.histograms: Histograms = defaultdict(Histogram)
        self._times: dict[str, Times] = {}
        self._gauges: list[Gauges] = []

    def count(self, name: str, kind: str, label: str | tuple[str, ...] = "", number: float = 1) -> None:
        self.counters[(name, kind, label)] += number

    def expect(self, kinds: Iterable[str]) -> None:
        """Begin at 0 with what should stay there: an alarm on a growth does not see a series whose first value is 1."""
        for kind in kinds:
            for name in ("jobs_uncertain", "duplicate_runs", "leases_lost"):
                self.count(name, kind, number=0)
            for reason in ("full", "share", "disk"):
                self.count("jobs_refused", kind, reason, 0)

    def observe(self, name: str, kind: str, label: str, seconds: float) -> None:
        self.histograms[(name, kind, label)].observe(seconds)

    def times(self, kind: str) -> Times:
        found = self._times.get(kind)
        if found is None:
            found = self._times[kind] = Times(self.histograms, kind)
        return found

    def gauges(self, source: Gauges) -> None:
        """Add a source of points, asked at each scrape."""
        self._gauges.append(source)

    def collect(self) -> Iterable[Metric]:
        yield from self._collect_counters()
        yield from self._collect_histograms()
        yield from self._collect_gauges()

    def _collect_counters(self) -> Iterable[Metric]:
        families: dict[str, CounterMetricFamily] = {}
        for (name, kind, label), value in sorted(self.counters.items()):
            text, *further = COUNTERS[name]
            family = families.setdefault(name, CounterMetricFamily(f"ulak_{name}", text, labels=["kind", *further]))
            labels = label if isinstance(label, tuple) else (label,)
            family.add_metric([kind, *labels[: len(further)]], value)
        yield from families.values()

    def _collect_histograms(self) -> Iterable[Metric]:
        families: dict[str, HistogramMetricFamily] = {}
        for (name, *labels), histogram in sorted(self.histograms.items(), key=lambda pair: pair[0]):
            text, *further = HISTOGRAMS[name]
            family = families.setdefault(name, HistogramMetricFamily(f"ulak_{name}", text, labels=["kind", *further]))
            family.add_metric(labels, histogram.cumulative(), histogram.total)
        yield from families.values()

    def _collect_gauges(self) -> Iterable[Metric]:
        yield from families_of(point for source in self._gauges for point in source())


def families_of(points: Iterable[GaugePoint]) -> Iterable[Metric]:
    """Points of one name as one metric, as Prometheus wants them."""
    families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
    for name, text, labels, value in points:
        if name not in families:
            family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            families[name] = family(name, text, labels=list(labels))
        families[name].add_metric(list(labels.values()), value)
    return families.values()


# name: (help, further labels…); the first label is always the kind
COUNTERS: dict[str, tuple[str, ...]] = {
    "jobs_accepted": ("Jobs accepted by this process.",),
    "jobs_refused": ("Jobs refused at a bound, by reason.", "reason"),
    "jobs_settled": ("Attempts ended in this process, by outcome.", "outcome"),
    "claims": ("Claims that took at least one job: with the jobs that started it tells how large a batch is.",),
    "job_failures": ("Failed attempts, by error class.", "error_class"),
    "leases_lost": ("Results that came after the lease was lost; they were not kept.",),
    "jobs_uncertain": ("Attempts of which nobody knows whether they had their effect.",),
    "duplicate_runs": ("Jobs that ran again after an attempt marked uncertain.",),
    "jobs_timed_out": ("Attempts that took longer than their kind allows.",),
    "breaker_stops": ("Jobs put off because their destination's breaker was open.",),
    "clock_steps": ("Steps of the wall clock that were noticed, by direction.", "direction"),
    "events_pruned": ("Rows of history removed by age, by table.", "table"),
    "notify_failures": ("Failed deliveries, by channel and error class.", "handler", "error_class"),
    "notify_errors": ("Failed deliveries, by channel and code, like SMTP_TIMEOUT.", "handler", "code"),
    "cron_fired": ("Cron entries fired by this process.",),
}
HISTOGRAMS: dict[str, tuple[str, ...]] = {
    "job_wait_seconds": ("From acceptance (or the due time) to the start of an attempt.",),
    "job_run_seconds": ("From the start of an attempt to its outcome.",),
    "timer_lateness_seconds": ("From a deferred job's due time to its start.",),
    "notify_delivery_seconds": ("From acceptance to delivery, all attempts included.", "handler"),
    "notify_handle_seconds": ("How long a channel took for one message, delivered or not.", "handler"),
}
