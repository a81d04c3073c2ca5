"""Units that share a commit: whoever fails, fails alone, and what the others leave behind is applied once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.postgres_server import fresh_database
from tests.property.driver import Driver, active, opened, query
from ulak.spine.query import Query
from ulak.spine.store import Tx, Verb, WriterQueue

INSERT = Query(
    "keep",
    "INSERT INTO meta (name, value) VALUES (:name, :value)",
    "INSERT INTO meta (name, value) VALUES (%(name)s, %(value)s)",
    ("name", "value"),
)
KEPT = query("SELECT name FROM meta")

FAILURES = ("raise", "stop", "exit", "twice", "syntax", "event")
LINES = (WriterQueue.ENQUEUE, WriterQueue.UNIT)
plans = st.lists(
    st.tuples(st.sampled_from(LINES), st.sampled_from(["keep"] * len(FAILURES) + list(FAILURES))),
    min_size=1,
    max_size=12,
)

Item = tuple[int, str, str]  # its number, what it does, the example's tag


def act(tx: Tx, item: Item) -> int:
    """Change everything that a unit can change, then end as it is told."""
    number, how, tag = item
    tx.execute(INSERT, name=f"unit{tag}{number}", value=how)
    tx.emit("unit.ran", number, tag, object() if how == "event" else number)
    tx.count("ran", f"unit{tag}")
    tx.leave(f"mail{tag}", -1)
    tx.after_commit.cancelled.append(number)
    tx.wake(f"mail{tag}", 2, number)
    if how == "twice":
        tx.execute(INSERT, name=f"unit{tag}{number}", value=how)
    elif how == "syntax":
        tx.execute(query("SELEKT 1"))
    elif how in ("raise", "stop", "exit"):
        raise {"raise": ValueError, "stop": StopIteration, "exit": SystemExit}[how](number)
    return number


VERBS = {line: Verb(line, lambda tx, items: [act(tx, item) for item in items]) for line in LINES}


@pytest.fixture(scope="module", params=["memory", pytest.param("postgres", marks=pytest.mark.postgres)])
def driver(request) -> Iterator[Driver]:
    if request.param == "memory":
        with opened("memory:") as found:
            yield found
    else:
        with fresh_database() as address, opened(address) as found:
            yield found


_tags = count()


async def submit_in_one_commit(driver: Driver, items: list[tuple[WriterQueue, Item]]) -> list[object]:
    """The writer is held by a first unit until all are there."""
    all_there = threading.Event()
    first = driver.store.submit(Verb(WriterQueue.UNIT, lambda tx, items: [all_there.wait(10)]), None)
    waiting = [driver.store.submit(VERBS[line], item) for line, item in items]
    all_there.set()
    assert await first
    return await asyncio.gather(*waiting, return_exceptions=True)


@settings(max_examples=40)
@given(planned=plans)
def test_a_failing_unit_fails_alone_and_the_others_are_kept_once(driver: Driver, planned):
    tag = f".{next(_tags)}."
    items = [(line, (number, how, tag)) for number, (line, how) in enumerate(planned)]
    good = [number for number, (_, how) in enumerate(planned) if how == "keep"]
    cursor = driver.last_seq()
    driver.ears.cancelled.clear()
    driver.ears.ready.clear()

    answers = driver.run(submit_in_one_commit(driver, items))

    assert [number for number, answer in enumerate(answers) if answer == number] == good
    assert all(isinstance(answer, Exception) for number, answer in enumerate(answers) if number not in good)
    kept = driver.run(driver.store.read(lambda tx: tx.rows(KEPT)))
    assert {name for (name,) in kept if tag in name} == {f"unit{tag}{number}" for number in good}
    assert driver.snapshot(tag).tally == ({("ran", f"unit{tag}"): len(good)} if good else {})
    assert driver.free(f"mail{tag}") == active("mail") - len(good)
    assert sorted(driver.ears.cancelled) == good
    assert driver.ears.ready == ({(f"mail{tag}", 2)} if good else set())
    events = driver.events(cursor, len(good))
    assert sorted(event.job for event in events) == good
    assert [event.seq for event in events] == [cursor + 1 + number for number in range(len(good))]
