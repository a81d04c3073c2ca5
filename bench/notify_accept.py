"""Durable accepts over HTTP, beside a no-op route of the same server (same decode, same key) and bare FastAPI."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import uvloop

from bench import report
from bench.child import measure
from bench.figure import Bench, Row, alternate, compared
from bench.http_load import CONNECTIONS, NOTIFICATION, flood, post
from bench.notify_server import NOOP, fastapi_server, serving, ulak_server
from bench.place import in_database, in_file

ACCEPT = "/api/notifications"
PROMISED = {"SQLite": 0.5, "PostgreSQL": 0.4}
PROMISED_TO_FASTAPI = 1.5


def rows(bench: Bench) -> Iterator[Row]:
    seconds = bench.scaled(1.5, 1)
    places: dict[str, Callable[..., float]] = {"SQLite": in_file, "PostgreSQL": partial(in_database, bench.server)}
    for name, place in places.items():
        sides = {
            "Ulak": partial(place, ulak, ACCEPT, seconds),
            "no-op route": partial(place, ulak, NOOP, seconds),
            "bare FastAPI": partial(measure, fastapi, seconds),
        }
        promised = {"no-op route": PROMISED[name], "bare FastAPI": PROMISED_TO_FASTAPI}
        figure = f"{name}: durable accepts over HTTP, {CONNECTIONS} connections"
        yield from compared(figure, "/s", alternate(bench.rounds, sides), promised)


def ulak(place: str, path: str, seconds: float) -> float:
    store = place if "://" in place else f"sqlite:///{place}"
    with serving(ulak_server, store, False, {}) as (port, token):
        return uvloop.run(flood(port, post(path, NOTIFICATION, token), 202, seconds))


def fastapi(seconds: float) -> float:
    with serving(fastapi_server) as (port, _):
        return uvloop.run(flood(port, post(NOOP, NOTIFICATION), 202, seconds))


if __name__ == "__main__":
    report.alone("notify_accept", rows)
