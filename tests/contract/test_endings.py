"""Cancelling, rescuing and dead letters on every store."""

from __future__ import annotations

import pytest

from tests.contract.bench import Bench, ids_of
from ulak import codec
from ulak.clock import to_datetime
from ulak.errors import NotFound
from ulak.spine.job import SUSPECT_LEVEL
from ulak.spine.loops.rescuer import BEAT, Beat
from ulak.spine.outcome import Dead, Release, Retry
from ulak.spine.units import dead_letters
from ulak.spine.units.cancel import CANCEL
from ulak.spine.units.dead_letters import Filter
from ulak.spine.units.rescue import RESCUE, Lost


async def test_a_waiting_job_is_cancelled_at_once(bench: Bench):
    identifier = await bench.add()
    assert await bench.store.submit(CANCEL, identifier) == "cancelled"
    assert await bench.claim() == []
    assert (await bench.tally())["cancelled"] == 1
    assert await bench.store.submit(CANCEL, identifier) == "finished"


async def test_a_running_job_is_marked_and_its_worker_is_told(bench: Bench):
    identifier = await bench.add()
    leases = await bench.claim()
    assert await bench.store.submit(CANCEL, identifier) == "cancelling"
    assert bench.ears.cancelled == [identifier]
    await bench.settle(leases, Retry(), resume_at=bench.clock.now())
    past = await bench.record(identifier, "past")
    assert past is not None
    assert past[2] == "cancelled"


async def test_a_heartbeat_tells_of_cancelled_jobs_to_their_own_worker_only(bench: Bench):
    identifier = await bench.add()
    await bench.claim()
    await bench.store.submit(CANCEL, identifier)
    for owner, told in ((bench.store.owner, [identifier]), (4711, [])):
        pulse = await bench.store.submit(BEAT, Beat(owner, 10_000, bench.store.multi_process))
        assert pulse.cancelled == told


async def test_work_of_a_dead_owner_comes_back_as_suspect(bench: Bench):
    identifier = await bench.add()
    (lease,) = await bench.claim()
    bench.ears.ready.clear()
    assert (await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))).total() == 1
    assert bench.ears.ready == {("mail", SUSPECT_LEVEL)}
    assert (await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))).total() == 0
    assert await bench.claim() == []
    (again,) = await bench.claim_suspects()
    assert (again.id, again.epoch, again.crashes) == (identifier, 2, 1)
    assert await bench.settle([lease]) == set()
    assert await bench.settle([again]) == {(identifier, 2)}


async def test_a_job_that_saw_two_deaths_runs_alone(bench: Bench):
    await bench.add()
    await bench.claim()
    for crashes, alone in ((1, False), (2, True)):
        await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
        assert await bench.claim_suspects(alone=not alone) == []
        (again,) = await bench.claim_suspects(alone=alone)
        assert again.crashes == crashes


async def test_a_job_that_kills_its_process_again_and_again_is_poison(bench: Bench):
    identifier = await bench.add()
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 2))
    assert len(await bench.claim_suspects()) == 1
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 2))
    dead = await bench.record(identifier, "dead")
    assert dead is not None
    assert "poison" in dead[14]


async def test_an_uncertain_job_that_must_not_be_repeated_is_held(bench: Bench):
    identifier = await bench.add(hold=1)
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    dead = await bench.record(identifier, "dead")
    assert dead is not None
    assert "waits for a decision" in dead[14]


async def test_a_job_that_must_not_be_repeated_is_tried_again_when_its_attempt_has_plainly_failed(bench: Bench):
    identifier = await bench.add(hold=1)
    await bench.settle(await bench.claim(), Retry(), resume_at=bench.clock.now())
    await bench.promote_due()
    assert [(one.id, one.attempt) for one in await bench.claim()] == [(identifier, 2)]


async def test_a_suspect_that_is_released_is_a_suspect_still_and_is_announced_as_one(bench: Bench):
    identifier = await bench.add()
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    leases = await bench.claim_suspects()
    bench.ears.ready.clear()
    await bench.settle(leases, Release())
    assert bench.ears.ready == {("mail", SUSPECT_LEVEL)}
    assert await bench.claim() == []
    assert ids_of(await bench.claim_suspects()) == [identifier]


async def test_a_job_cancelled_before_its_process_died_is_cancelled(bench: Bench):
    identifier = await bench.add(key="k")
    second = await bench.add(key="k")
    await bench.claim()
    await bench.store.submit(CANCEL, identifier)
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    assert ids_of(await bench.claim()) == [second]


async def test_dead_letters_are_found_by_what_they_died_of(bench: Bench):
    await bench.add()
    await bench.add("sms")
    (mail,), (sms,) = await bench.claim(), await bench.claim("sms")
    await bench.settle([mail], Dead("No such ADDRESS", "permanent"))
    await bench.settle([sms], Dead("timeout", "transient"))

    async def find(**wanted):
        return await bench.store.read(dead_letters.find_ids, Filter(**wanted), 0, 10)

    assert await find() == [mail.id, sms.id]
    assert await find(kind="sms") == [sms.id]
    assert await find(error_class="permanent") == [mail.id]
    assert await find(contains="such address") == [mail.id]
    assert await find(died_before=to_datetime(bench.clock.now())) == []
    assert await find(died_after=to_datetime(bench.clock.now())) == [mail.id, sms.id]


async def test_a_redriven_letter_starts_afresh_under_its_old_id(bench: Bench):
    identifier = await bench.add(payload={"to": "x"}, key="k")
    (lease,) = await bench.claim()
    await bench.settle([lease], Dead("no"))
    await bench.store.write(dead_letters.edit, identifier, codec.encode({"to": "y"}))
    assert await bench.store.write(dead_letters.redrive, [identifier, 1]) == [identifier]
    (again,) = await bench.claim()
    assert (again.id, again.attempt, codec.decode(again.payload)) == (identifier, 1, {"to": "y"})
    assert again.epoch > lease.epoch
    assert await bench.settle([lease]) == set()
    assert (await bench.tally())["accepted"] == 1


@pytest.mark.parametrize(("hold", "key"), [(1, None), (1, "k"), (0, None)], ids=["held", "held with a key", "poison"])
async def test_a_redriven_letter_that_may_have_had_its_effect_stays_uncertain(bench: Bench, hold: int, key: str | None):
    identifier = await bench.add(hold=hold, key=key)
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 1))
    bench.ears.ready.clear()
    assert await bench.store.write(dead_letters.redrive, [identifier]) == [identifier]
    assert ("mail", SUSPECT_LEVEL) in bench.ears.ready
    (again,) = await bench.claim_suspects()
    assert (again.id, again.attempt, again.crashes) == (identifier, 1, 1)


async def test_a_redriven_letter_whose_handler_could_not_tell_stays_uncertain(bench: Bench):
    identifier = await bench.add()
    await bench.settle(await bench.claim(), Dead("the line broke", "uncertain"))
    await bench.store.write(dead_letters.redrive, [identifier])
    assert [(lease.id, lease.crashes) for lease in await bench.claim_suspects()] == [(identifier, 1)]


async def test_the_deaths_before_a_redrive_no_longer_make_it_run_alone(bench: Bench):
    identifier = await bench.add()
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    await bench.claim_suspects()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 2))
    await bench.store.write(dead_letters.redrive, [identifier])
    assert [lease.crashes for lease in await bench.claim_suspects()] == [1]


async def test_a_redriven_letter_that_waits_behind_its_key_stays_uncertain(bench: Bench):
    identifier = await bench.add(hold=1, key="k")
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    await bench.add(key="k")
    holder = await bench.claim()
    await bench.store.write(dead_letters.redrive, [identifier])
    assert await bench.claim_suspects() == []
    bench.ears.ready.clear()
    await bench.settle(holder)
    assert bench.ears.ready == {("mail", SUSPECT_LEVEL)}
    assert [(lease.id, lease.crashes) for lease in await bench.claim_suspects()] == [(identifier, 1)]


async def test_a_letter_whose_unique_key_is_taken_meanwhile_stays_dead(bench: Bench):
    identifier = await bench.add(unique_key="u")
    await bench.settle(await bench.claim(), Dead("no"))
    await bench.add(unique_key="u")
    assert await bench.store.write(dead_letters.redrive, [identifier]) == []
    assert await bench.record(identifier, "dead") is not None


async def test_a_dropped_letter_is_gone(bench: Bench):
    identifier = await bench.add()
    await bench.settle(await bench.claim(), Dead("no"))
    await bench.store.write(dead_letters.drop, identifier)
    with pytest.raises(NotFound):
        await bench.store.write(dead_letters.drop, identifier)


async def test_suspects_keep_to_the_rate_of_their_kind(bench: Bench):
    await bench.offer(*[bench.row() for _ in range(6)])
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    assert len(await bench.claim_suspects(rate=2.0)) == 2
    assert await bench.claim_suspects(rate=2.0) == []
    bench.clock.advance(0.5)
    assert len(await bench.claim_suspects(rate=2.0)) == 1
