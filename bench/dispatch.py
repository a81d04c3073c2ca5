"""Dispatch: how fast the right helper is found among a million, offers are opened and accepted, and deadlines kept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from bench import dispatch_side, report
from bench.figure import Bench, Row, bounded, tails
from bench.load import percentile
from bench.place import in_database, in_file

FILL_TIMEOUT_SECONDS = 600
MIN_OPENS, MIN_ACCEPTS = 0.07, 0.1
MAX_LATE_MS = 50


def rows(bench: Bench) -> Iterator[Row]:
    inside = partial(in_database, bench.server, timeout_seconds=FILL_TIMEOUT_SECONDS)
    within = partial(in_file, timeout_seconds=FILL_TIMEOUT_SECONDS)
    for store, place in (("SQLite", within), ("PostgreSQL", inside)):
        yield from _searches(bench, store, place)
        yield from _verbs(bench, store, place)
    yield from _positions(bench, within)
    offers = bench.scaled(100_000, 2_000)
    late = within(dispatch_side.lateness, offers, 100, bench.scaled(20.0, 3.0))
    yield from tails(f"SQLite: an offer's end after its deadline, {offers:,} open", [late], MAX_LATE_MS)


def _searches(bench: Bench, store: str, place: partial[Any]) -> Iterator[Row]:
    helpers, asked = bench.scaled(1_000_000, 20_000), bench.scaled(2_000, 200)
    for kind, limit in (("uniform", 1.5), ("clustered", 4.0)):
        if store == "PostgreSQL":
            took, theirs = place(dispatch_side.searches_beside_gist, kind, helpers, asked)
        else:
            took, theirs = place(dispatch_side.searches, kind, helpers, asked), []
        name = f"{store}: top 20 within 1 km of {helpers:,} helpers, {kind}"
        yield bounded(f"{name}, p50", "ms", percentile(took, 50), limit)
        yield bounded(f"{name}, p99", "ms", percentile(took, 99), 10.0)
        if theirs:
            yield _beside_gist(name, percentile(took, 50), percentile(theirs, 50))


def _beside_gist(name: str, ours: float, theirs: float) -> Row:
    ratio = theirs / ours
    return Row(f"{name}, p50", "ms", ours, "GiST on points", theirs, ratio, ">= 1", met=ratio >= 1)


def _verbs(bench: Bench, store: str, place: partial[dict[str, float]]) -> Iterator[Row]:
    rates = place(dispatch_side.verbs, bench.scaled(5_000, 500), 200)
    for verb, least in (("open", MIN_OPENS), ("accept", MIN_ACCEPTS)):
        ratio = rates[verb] / rates["enqueue"]
        yield Row(
            f"{store}: {verb}s of tasks", "per second", rates[verb], "durable enqueues of the run", rates["enqueue"],
            ratio, f">= {least}", met=ratio >= least,
        )  # fmt: skip


def _positions(bench: Bench, place: partial[dict[str, float]]) -> Iterator[Row]:
    found = place(dispatch_side.positions, bench.scaled(200_000, 20_000), bench.scaled(10.0, 2.0))
    for name, figure, least in (("accepted", "taken", 50_000), ("written", "written", 5_000)):
        value = found[figure]
        yield Row(f"SQLite: bulk positions {name}", "per second", value, target=f">= {least:,}", met=value >= least)
    alone, beside = found["alone_ms"], found["beside_ms"]
    yield Row("SQLite: accept p99 beside bulk positions", "ms", beside, "without them", alone, beside / alone, "< 1.25",
              met=beside < 1.25 * alone)  # fmt: skip


if __name__ == "__main__":
    report.alone("dispatch", rows)
