"""Dispatch: how fast the right helper is found among a million, offers are opened and accepted, and deadlines kept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any

from bench import dispatch_deadlines, dispatch_side, report, system_postgres
from bench.figure import Bench, Row, bounded, tails
from bench.load import percentile
from bench.peers import redis_side
from bench.peers.near_side import Earthdistance, Gist, NearPeer, Postgis
from bench.place import in_database, in_file

FILL_TIMEOUT_SECONDS = 1_800
MIN_OPENS, MIN_ACCEPTS = 0.07, 0.1
MAX_LATE_MS = 50
MAX_RESTART_SECONDS = 2
# How many times as fast as the peer the median search is to be.
AHEAD = {Gist: 1.0, Earthdistance: 3.0, Postgis: 3.0}


def rows(bench: Bench) -> Iterator[Row]:
    inside = partial(in_database, bench.server, timeout_seconds=FILL_TIMEOUT_SECONDS)
    within = partial(in_file, timeout_seconds=FILL_TIMEOUT_SECONDS)
    with system_postgres.running() as address:
        peers = _peers(address)
        for store, place in (("SQLite", within), ("PostgreSQL", inside)):
            yield from _searches(bench, store, place, peers if place is inside else [])
            yield from _verbs(bench, store, place)
    yield from _positions(bench, within)
    yield from _deadlines(bench, within)


def _peers(address: str | None) -> list[tuple[type[NearPeer], str]]:
    """GiST on points is in every PostgreSQL; the others where they are installed."""
    found: list[tuple[type[NearPeer], str]] = [(Gist, "")]
    if address is not None:
        others = ((Earthdistance, "earthdistance"), (Postgis, "postgis"))
        found += [(peer, address) for peer, extension in others if system_postgres.has(address, extension)]
    return found


def _searches(bench: Bench, store: str, place: partial[Any], peers: list[tuple[type[NearPeer], str]]) -> Iterator[Row]:
    helpers, asked = bench.scaled(1_000_000, 20_000), bench.scaled(2_000, 200)
    for kind, limit in (("uniform", 1.5), ("clustered", 4.0)):
        found = place(dispatch_side.searches, kind, helpers, asked, peers)
        ours = found["ulak"]
        name = f"{store}: top 20 within 1 km of {helpers:,} helpers, {kind}"
        yield bounded(f"{name}, p50", "ms", percentile(ours, 50), limit)
        yield bounded(f"{name}, p99", "ms", percentile(ours, 99), 10.0)
        for peer, _ in peers:
            yield _beside(name, peer, percentile(ours, 50), percentile(found[peer.name], 50))


def _beside(name: str, peer: type[NearPeer], ours: float, theirs: float) -> Row:
    ratio, least = theirs / ours, AHEAD[peer]
    shown = "GiST on points" if peer is Gist else peer.__name__
    return Row(f"{name}, p50", "ms", ours, shown, theirs, ratio, f">= {least:g} ×", met=ratio >= least)


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


def _deadlines(bench: Bench, place: partial[Any]) -> Iterator[Row]:
    offers, seconds = bench.scaled(100_000, 2_000), bench.scaled(20.0, 3.0)
    late = place(dispatch_deadlines.lateness, offers, 100, seconds)
    name = f"SQLite: an offer's end after its deadline, {offers:,} open"
    yield from tails(name, [late], MAX_LATE_MS)
    if redis_side.is_installed():
        ours, theirs = percentile(late, 99), percentile(redis_side.lateness(offers, 100, seconds), 99)
        yield Row(f"{name}, p99", "ms", ours, "Redis expired events", theirs, theirs / ours)
    took = [place(dispatch_deadlines.restart, 500) for _ in range(bench.rounds)]
    yield bounded("SQLite: from a start to the next offer, 500 overdue", "s", median(took), MAX_RESTART_SECONDS)


if __name__ == "__main__":
    report.alone("dispatch", rows)
