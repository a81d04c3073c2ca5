"""The door's own counts and times: requests by route and status, and how many are in progress."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ulak.spine.telemetry import Histogram

METRICS = {
    "ulak_http_requests_total": "Requests answered, by method, route and status; 499 when the client went away.",
    "ulak_http_request_seconds": "From the head of a request to the end of its answer, by route.",
    "ulak_http_requests_in_progress": "Requests that are being answered now.",
}
_METHODS = frozenset({"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"})


class Meter(Collector):
    def __init__(self) -> None:
        self.in_flight = 0
        self._requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self._times: defaultdict[str, Histogram] = defaultdict(Histogram)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[(method if method in _METHODS else "other", route, status)] += 1
        self._times[route].observe(seconds)

    def collect(self) -> Iterable[Metric]:
        requests = CounterMetricFamily(
            "ulak_http_requests", METRICS["ulak_http_requests_total"], labels=["method", "route", "status"]
        )
        for (method, route, status), number in sorted(self._requests.items()):
            requests.add_metric([method, route, str(status)], number)
        yield requests
        times = HistogramMetricFamily(
            "ulak_http_request_seconds", METRICS["ulak_http_request_seconds"], labels=["route"]
        )
        for route, histogram in sorted(self._times.items()):
            times.add_metric([route], histogram.cumulative(), histogram.total)
        yield times
        name = "ulak_http_requests_in_progress"
        yield GaugeMetricFamily(name, METRICS[name], value=self.in_flight)
