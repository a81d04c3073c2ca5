"""How `ulak dispatch simulate` gets its town and shows what became of it: table, plot, PNG, JSON."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from ulak.clock import given_millis
from ulak.dispatch.policy import Policy
from ulak.dispatch.simulate import Call, Neighbour, PolicyOutcome, first_of_month, simulate, town
from ulak.errors import Misconfigured
from ulak.settings import Settings

Town = tuple[list[Neighbour], list[Call]]

MAX_RECORDED = 10_000
_WIDTH = 48


def run(helpers: int, requests: int, silent: float, seed: int, known: Town | None) -> list[PolicyOutcome]:
    people, calls = known or town(helpers, requests, silent, seed, first_of_month())
    return simulate(people, calls, seed, Policy())


async def recorded(settings: Settings) -> Town:
    """The helpers as they are, and the tasks as they came."""
    from ulak.cli.api_client import open_api

    async with open_api(settings, may_make=False) as api:
        helpers, tasks = await _pages(api, "/helpers"), await _pages(api, "/tasks")
    people = [
        Neighbour(one["id"], one["latitude"], one["longitude"], one["status"] == "PAUSED", tuple(one["skills"]))
        for one in helpers
        if one["latitude"] is not None
    ]
    return people, [_call(one) for one in reversed(tasks)]


async def _pages(api: Any, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = None
    while len(found) < MAX_RECORDED:
        page = await api.ask("GET", path, {"after": after, "limit": 500})
        found += page["items"]
        after = page["next"]
        if after is None:
            break
    return found


def _call(task: dict[str, Any]) -> Call:
    instants = {name: _millis(task[name]) for name in ("createdAt", "assignedAt", "endedAt")}
    busy = 0.0
    if task["status"] == "COMPLETED":
        busy = (instants["endedAt"] - instants["assignedAt"]) / 1000
    return Call(
        instants["createdAt"], task["latitude"], task["longitude"], task["radiusMeters"], task["deadlineSeconds"], busy,
        tuple(task["skills"]),
    )  # fmt: skip


def _millis(text: str | None) -> int:
    return 0 if text is None else given_millis("at", datetime.fromisoformat(text))


def as_json(outcomes: list[PolicyOutcome]) -> str:
    policies = [
        {"policy": one.policy, "medianSeconds": one.median_seconds, "p95Seconds": one.p95_seconds, "gini": one.gini}
        for one in outcomes
    ]
    return msgspec.json.format(msgspec.json.encode({"policies": policies})).decode()


def print_table(outcomes: list[PolicyOutcome]) -> None:
    drawn = Table("policy", "median", "p95", "gini", "assigned", "not assigned", box=None, pad_edge=False)
    for one in outcomes:
        times = (_minutes(one.median_seconds), _minutes(one.p95_seconds))
        drawn.add_row(one.policy, *times, f"{one.gini:.3f}", str(one.assigned), str(one.unassigned))
    Console().print(drawn, markup=False)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 90 else f"{seconds:.0f} s"


def print_plot(outcomes: list[PolicyOutcome]) -> None:
    """The share of tasks that were assigned within a time, drawn as bars."""
    limits = (30, 60, 120, 300, 600, 1800, 3600, 7200)
    console = Console()
    for one in outcomes:
        console.print(f"\n{one.policy}: assigned within", markup=False)
        for limit in limits:
            share = sum(wait <= limit for wait in one.seconds) / max(len(one.seconds) + one.unassigned, 1)
            console.print(f"{_minutes(limit):>9}  {'█' * round(share * _WIDTH):<{_WIDTH}} {share:4.0%}", markup=False)


def draw_png(outcomes: list[PolicyOutcome], path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise Misconfigured("a PNG needs matplotlib; install it: pip install 'ulak[plot]'") from None
    figure = Figure(figsize=(8, 5))
    axes = figure.subplots()
    for one in outcomes:
        number = max(len(one.seconds), 1)
        axes.step([wait / 60 for wait in one.seconds], [(at + 1) / number for at in range(number)], label=one.policy)
    axes.set(xscale="log", xlabel="minutes to assign", ylabel="share of tasks")
    axes.legend()
    figure.savefig(path)
