"""PostgreSQL: every statement that was planned on empty tables reads few rows when the tables are full.

Beside this file is a module for each package that has statements: rows for its tables, and parameters.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import pytest

from tests.plans.measure import Cost, Parameters, Prepared, fill, packages, statements, vacuum_by_hand
from tests.plans.walks import BY_STATISTICS, WALKS
from tests.postgres_server import server
from ulak.spine.query import Query
from ulak.stores.postgres.reader import READER_SETTINGS
from ulak.stores.postgres.session import _SETTINGS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

MAX_ROWS, MAX_BLOCKS = 20, 40  # per row that a statement is about: its rows and entries; index pages and both places
_SIDES = {
    "writer": _SETTINGS.encode(),
    "reader": READER_SETTINGS,
    "keeper": READER_SETTINGS + b"; SET plan_cache_mode = force_generic_plan",  # as keep_plan does
}
_KEPT = {"ulak.dispatch.list_asked", "ulak.dispatch.search_circle"}
_CHANGES = re.compile(r"\b(INSERT INTO|UPDATE|DELETE FROM|FOR SHARE|pg_notify|set_config)\b")
_IDLE = {"ulak.channels.keep_key", "ulak.stores.postgres.keep_mark"}  # they keep the first that came


class Run(NamedTuple):
    side: str
    name: str
    query: Query
    parameters: Parameters


def _plans(package: str) -> Any:
    return import_module("tests.plans." + package.removeprefix("ulak.").replace(".", "_"))


def _sides(name: str, query: Query, reads: set[str]) -> Iterator[str]:
    """A unit of work reads, too: only those in `reads` are never asked by one."""
    if query.name not in reads:
        yield "writer"
    if not _CHANGES.search(query.postgres):
        yield "reader"
    if name in _KEPT:
        yield "keeper"


def _runs() -> list[Run]:
    return [
        Run(side, name, query, plans.STATEMENTS[query.name])
        for package in packages()
        if (plans := _plans(package))
        for query in statements(package)
        if (name := f"{package}.{query.name}")
        for side in _sides(name, query, getattr(plans, "READS", set()))
    ]


def test_every_statement_has_parameters():
    lacking = {
        package: sorted({query.name for query in statements(package)} ^ set(_plans(package).STATEMENTS))
        for package in packages()
    }
    assert {package: names for package, names in lacking.items() if names} == {}


@pytest.mark.parametrize("analyzed", ["never", "when empty"])
def test_plans_made_on_empty_tables_are_cheap_on_full_ones(analyzed: str):
    """With the statistics of empty tables or none, and then with those of the full ones."""
    runs = _runs()
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(server().new_database())
        vacuum_by_hand(address)
        sides = {
            side: stack.enter_context(contextlib.closing(Prepared(address, settings)))
            for side, settings in _SIDES.items()
        }
        if analyzed == "when empty":
            fill(address, ["VACUUM ANALYZE"])
        for run in runs:
            sides[run.side].prepare(run.query, run.parameters)
        fill(address, [statement for package in packages() for statement in _plans(package).FILL])
        before = [sides[run.side].run(run.query, run.parameters) for run in runs]
        fill(address, ["VACUUM ANALYZE"])  # without rows that were rolled back: a planner walks over them
        after = [sides[run.side].run(run.query, run.parameters) for run in runs]
    assert [run.name for run, cost in zip(runs, after, strict=True) if not cost.found and run.name not in _IDLE] == []
    assert _dear(runs, before, BY_STATISTICS) == {}
    assert _dear(runs, after, set()) == {}


def _dear(runs: list[Run], costs: list[Cost], late: set[str]) -> dict[str, Cost]:
    return {
        f"{run.name} ({run.side})": cost
        for run, cost in zip(runs, costs, strict=True)
        if run.name not in WALKS and run.name not in late
        if cost.rows > MAX_ROWS * cost.about or cost.blocks > MAX_BLOCKS * cost.about
    }
