"""PostgreSQL: two processes share the work, and what one leaves behind the other takes; a held xmin stops neither."""

from __future__ import annotations

import os
import signal

import psycopg
import pytest

from tests.crash.child import SETTINGS
from tests.crash.killer import FROZEN_SECONDS
from tests.crash.wire import Began, Life
from ulak import Ulak
from ulak.settings import load
from ulak.spine.units.rescue import RESCUE, Lost

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.parametrize("address", ["postgres"], indirect=True)]


def lives(killer, number, **options):
    return killer.nursery.start_ready(Life(killer.address, number, **options))


def test_two_processes_share_the_work_and_the_death_of_one_is_noticed_by_the_other(killer):
    stuck = {}

    def hear(record):
        killer.ledger.hear(record)
        if isinstance(record, Began) and record.kind == "stuck":
            stuck.setdefault(record.id, []).append((record.pid, record.crashes))

    with killer.nursery.heard_by(hear):
        both = [lives(killer, 101, producers=2), lives(killer, 102, producers=2, jobs=(("stuck", 30),))]
        pids = {child.pid for child in both}
        killer.nursery.listen(lambda: len(stuck) == 30 and all(killer.ledger.pids[pid] > 50 for pid in pids))
        victim = max(both, key=lambda child: sum(runs[0][0] == child.pid for runs in stuck.values()))
        (survivor,) = pids - {victim.pid}
        owed = [identifier for identifier, runs in stuck.items() if runs[0][0] == victim.pid]
        killer.nursery.kill(victim)
        killer.nursery.listen(lambda: all((survivor, 1) in stuck[identifier] for identifier in owed))
        assert len(owed) > 0
        killer.nursery.kill_all()
        assert killer.drain().violations == {}


def test_a_process_that_was_frozen_beyond_its_lease_settles_nothing_that_is_no_longer_its_own(killer):
    first, second = lives(killer, 101, producers=2), lives(killer, 102, producers=2)
    killer.nursery.listen(lambda: all(killer.ledger.pids[child.pid] > 50 for child in (first, second)))
    killer.nursery.signal(first, signal.SIGSTOP)
    killer.nursery.listen(seconds=FROZEN_SECONDS)
    seen = killer.ledger.pids[first.pid]
    killer.nursery.signal(first, signal.SIGCONT)
    killer.nursery.listen(lambda: killer.ledger.pids[first.pid] > seen + 200)
    killer.nursery.kill_all()
    assert killer.drain().violations == {}


async def test_a_process_that_was_taken_for_dead_shares_its_node_with_nobody(address):
    """It lives on for some seconds before it learns of its death, and two makers of ids on one node make the same."""
    settings = load(env={}, overrides={"store": address, **SETTINGS}).settings
    async with Ulak(settings=settings, work=False) as taken_for_dead:
        owner = taken_for_dead.store.owner
        async with Ulak(settings=settings, work=False) as rescuer:
            with psycopg.connect(address) as connection:
                connection.execute("UPDATE owner SET lease_at = 0 WHERE id = %s", (owner,))
            await rescuer.store.submit(RESCUE, Lost(owner, 5))
        async with Ulak(settings=settings, work=False) as newcomer:
            now = newcomer.clock.now() + 5_000
            assert taken_for_dead.store.ids.take(now) != newcomer.store.ids.take(now)


def test_a_held_xmin_does_not_stop_the_claims(killer):
    with psycopg.connect(killer.address) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM job")
        lives(killer, 101, producers=3)
        killer.nursery.listen(lambda: len(killer.ledger.ended) > 3000)
        killer.nursery.kill_all()
        last = killer.nursery.start(Life(killer.address, 103, until="drained"))
        status = killer.nursery.finish(last)
        assert os.waitstatus_to_exitcode(status) == 0
        holder.execute("SELECT count(*) FROM job")  # it was held all the time
    assert killer.drain().violations == {}
