"""How many jobs wait, by kind and state: right on every store, and on SQLite along the index of each state."""

from __future__ import annotations

from tests.contract.bench import Bench, sql


async def test_every_state_is_counted_with_its_oldest(bench: Bench):
    began = bench.clock.now()
    await bench.offer(*[bench.row() for _ in range(3)], bench.row(prio=0), bench.row("sms"))
    bench.clock.advance(1)
    await bench.offer(bench.row(prio=1), bench.row(due_at=began + 60_000))
    await bench.offer(bench.row("order", key="a"), bench.row("order", key="a"))
    await bench.claim(free=1, levels=[0])
    rows = await bench.store.read(lambda tx: tx.rows(sql.count_waiting))
    assert sorted(map(tuple, rows)) == [
        ("mail", 0, 4, began),
        ("mail", 1, 1, began + 60_000),
        ("mail", 2, 1, began),
        ("order", 0, 1, began + 1000),
        ("order", 3, 1, began + 1000),
        ("sms", 0, 1, began),
    ]


async def test_what_was_put_off_waits_from_its_due_time_on_whatever_its_state(bench: Bench):
    due_at = bench.clock.now() + 60_000
    await bench.offer(*[bench.row(kind, key=kind, due_at=due_at) for kind in ("mail", "sms", "order", "order")])
    bench.clock.advance(90)
    await bench.promote_due()
    await bench.claim("sms")
    rows = await bench.store.read(lambda tx: tx.rows(sql.count_waiting))
    assert sorted(map(tuple, rows)) == [
        ("mail", 0, 1, due_at), ("order", 0, 1, due_at), ("order", 3, 1, due_at), ("sms", 2, 1, due_at),
    ]  # fmt: skip


async def test_each_state_is_counted_along_its_own_index(opened):
    async with opened("memory:") as bench:
        plan = await bench.store.read(
            lambda tx: tx._connection.execute(f"EXPLAIN QUERY PLAN {sql.count_waiting.sqlite}").fetchall()
        )
    said = [row[3] for row in plan]
    assert "SCAN job USING INDEX job_ready" in said
    assert "SCAN job" not in said
