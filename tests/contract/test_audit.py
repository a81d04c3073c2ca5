"""The audit log on every store: in the verb's own commit, chained, only ever added to."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.bench import Bench
from ulak.errors import Conflict, Error, Invalid
from ulak.spine.audit import AuditLog
from ulak.spine.query import Query
from ulak.spine.store import Tx
from ulak.spine.units import audit


async def test_lines_are_listed_newest_first_and_by_who_verb_and_object(bench: Bench):
    for who, verb, thing in (
        ("ada", "kinds.pause", "mail"),
        ("bob", "kinds.resume", "mail"),
        ("ada", "keys.revoke", "7"),
    ):
        await bench.store.write(audit.record, who, verb, thing, {"was": None})
    log = AuditLog(bench.store)
    found = await log.list()
    assert [(line.seq, line.who, line.verb, line.object, line.detail) for line in found] == [
        (3, "ada", "keys.revoke", "7", '{"was":null}'),
        (2, "bob", "kinds.resume", "mail", '{"was":null}'),
        (1, "ada", "kinds.pause", "mail", '{"was":null}'),
    ]
    assert [line.seq for line in await log.list(before=3, limit=1)] == [2]
    assert [line.seq for line in await log.list(who="ada")] == [3, 1]
    assert [line.seq for line in await log.list(verb="kinds")] == [2, 1]
    assert [line.seq for line in await log.list(verb="kinds.pause")] == [1]
    assert [line.seq for line in await log.list(object="mail", who="bob")] == [2]


async def test_a_line_stands_or_falls_with_its_verb(bench: Bench):
    def fail(tx: Tx) -> None:
        audit.record(tx, "ada", "kinds.pause", "mail")
        raise Conflict("after all not")

    with pytest.raises(Conflict):
        await bench.store.write(fail)
    assert await AuditLog(bench.store).list() == []


async def test_many_writers_make_one_chain(opened, address):
    async with opened(address) as bench:
        if bench.store.multi_process:
            async with opened(address) as other:
                await fill(bench, other)
        else:
            await fill(bench)
        state = await AuditLog(bench.store).verify()
    assert (state.seq, state.broken_at) == (60, None)


async def fill(*benches: Bench) -> None:
    units = []
    for number in range(60):
        bench = benches[number % len(benches)]

        def unit(tx: Tx, number: int = number) -> None:
            tx.emit("test.done", number, "test")
            audit.record(tx, f"writer {number}", "test.write", str(number))

        units.append(bench.store.write(unit))
    await asyncio.gather(*units)


async def test_lines_can_be_neither_changed_nor_removed(bench: Bench):
    await bench.store.write(audit.record, "ada", "kinds.pause", "mail")
    for statement in ("UPDATE audit SET who = 'eve'", "DELETE FROM audit"):
        with pytest.raises(Error, match="only added to"):
            await bench.store.write(lambda tx, text=statement: tx.execute(Query("odd", text, text, ())))
    assert [line.who for line in await AuditLog(bench.store).list()] == ["ada"]


FORGE = {
    "changed": "UPDATE audit SET who = 'eve' WHERE seq = 2",
    "removed": "DELETE FROM audit WHERE seq = 2",
    "hashed anew": "UPDATE audit SET hash = 'abc' WHERE seq = 2",
}
ALLOW = {
    "sqlite": ["DROP TRIGGER audit_no_update", "DROP TRIGGER audit_no_delete"],
    "postgres": ["SET LOCAL session_replication_role = replica"],
}


@pytest.mark.parametrize("how", FORGE)
async def test_a_forged_line_is_found(bench: Bench, how: str):
    for number in range(3):
        await bench.store.write(audit.record, "ada", "kinds.pause", str(number))
    whole = await AuditLog(bench.store).verify()
    assert (whole.seq, whole.broken_at) == (3, None)

    def forge(tx: Tx) -> None:
        for statement in ALLOW["postgres" if bench.store.multi_process else "sqlite"]:
            tx.execute(Query("allow", statement, statement, ()))
        tx.execute(Query("forge", FORGE[how], FORGE[how], ()))

    await bench.store.write(forge)
    state = await AuditLog(bench.store).verify()
    assert (state.seq, state.broken_at) == (1, 3 if how == "removed" else 2)


async def test_a_detail_that_is_too_large_is_refused(bench: Bench):
    with pytest.raises(Invalid, match="larger"):
        await bench.store.write(audit.record, "ada", "kinds.pause", "mail", "x" * 20_000)
