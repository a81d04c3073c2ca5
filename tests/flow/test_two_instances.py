"""Two Ulaks on one database, both at work: every job once, every time once, and what one says the other hears."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.flow.conftest import build
from tests.flow.stores import POSTGRES, address_of
from ulak import BreakerPolicy, NewJob, Transient, Ulak
from ulak.clock import SystemClock
from ulak.http.app import build_app
from ulak.spine.breaker import load_breakers, save_breakers
from ulak.spine.loops.loops import BREAKERS_SECONDS

pytestmark = pytest.mark.postgres


@pytest.fixture
def database(tmp_path):
    if not POSTGRES:
        pytest.skip("there is no PostgreSQL server to test with")
    with contextlib.contextmanager(address_of)("postgres", tmp_path) as found:
        yield found


@pytest.fixture
def pair(database, clock):
    """Two Ulaks that are not open yet, on one clock."""
    return [build(database, clock) for _ in range(2)]


@contextlib.asynccontextmanager
async def both_open(pair):
    async with pair[0], pair[1]:
        yield


async def done(ulak, kind, number):
    """Wait until so many jobs of the kind are done; a job's end is counted a moment after its commit."""
    while (await ulak.jobs.tally()).get(kind, {}).get("done", 0) < number:
        await asyncio.sleep(0.005)


async def test_they_share_the_work_and_nothing_runs_twice(pair):
    ran, at_work = [], [asyncio.Event(), asyncio.Event()]
    for number, ulak in enumerate(pair):

        @ulak.handles("mail.send", concurrency=5)
        async def send(job, number=number):
            ran.append((number, job.payload))
            at_work[number].set()
            await at_work[1 - number].wait()  # neither has taken all before the other has looked

    async with both_open(pair):
        await pair[0].enqueue_many([NewJob("mail.send", n) for n in range(300)])
        await done(pair[0], "mail.send", 300)
    assert sorted(payload for _, payload in ran) == list(range(300))
    assert {number for number, _ in ran} == {0, 1}


async def test_a_key_keeps_its_order_and_its_limit_across_both(pair, clock):
    """The order is that of ids: across instances it is as fine as the millisecond."""
    order, running, most = [], 0, 0
    for ulak in pair:

        @ulak.handles("mail.send", concurrency=20)
        async def send(job):
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            order.append(job.payload)
            running -= 1

    async with both_open(pair):
        for number in range(40):
            clock.advance(0.001)
            await pair[number % 2].enqueue("mail.send", number, key="ada")
        await done(pair[0], "mail.send", 40)
    assert order == sorted(order)
    assert most == 1


async def test_a_cron_time_fires_once_for_both(pair, clock):
    fired = []
    clock.step(-(clock.now() % 60_000) / 1000)
    for ulak in pair:
        ulak.cron("minutely", "* * * * *", "report.make")

        @ulak.handles("report.make")
        async def make(job):
            fired.append(job.payload["due_at"])

    async with both_open(pair):
        for minute in range(1, 6):
            clock.advance(60)
            await done(pair[0], "report.make", minute)
            clock.advance(0)
            await asyncio.sleep(0.02)
    assert len(fired) == len(set(fired)) == 5


async def test_a_unique_key_is_unique_for_both(pair):
    async with both_open(pair):
        ids = await asyncio.gather(*(pair[n % 2].enqueue("mail.other", n, unique_key="order-1") for n in range(50)))
    assert len(set(ids)) == 1


async def test_a_job_that_runs_there_is_cancelled_from_here(pair):
    started = asyncio.Event()

    @pair[0].handles("mail.send")
    async def send(_):
        started.set()
        await asyncio.Event().wait()

    async with both_open(pair):
        job = await pair[1].enqueue("mail.send")
        await started.wait()
        assert await pair[1].jobs.cancel(job) == "cancelling"
        while (await pair[1].jobs.get(job)).status != "cancelled":
            await asyncio.sleep(0.005)


async def test_an_orderly_stop_of_one_hands_its_work_to_the_other(pair, clock):
    """What was cancelled at the stop runs there at once; nothing waits for a lease."""
    ran = []
    held = asyncio.Event()

    @pair[0].handles("mail.send")
    async def hang(_):
        held.set()
        await asyncio.Event().wait()

    await pair[0].open()
    job = await pair[0].enqueue("mail.send")
    await held.wait()

    @pair[1].handles("mail.send")
    async def send(job):
        ran.append((job.id, job.crashes))

    async with pair[1]:
        stopping = asyncio.create_task(pair[0].close())
        while not stopping.done():
            clock.advance(1)
            await asyncio.sleep(0.005)
        clock.advance(1)
        await done(pair[1], "mail.send", 1)
    assert ran == [(job, 0)]


async def test_a_breaker_that_one_resets_is_closed_in_the_other(pair, clock):
    policy = BreakerPolicy(failures=1, open_seconds=3600)
    for ulak in pair:
        ulak.handles("hook.send", breaker=policy)(fails)
    async with both_open(pair):
        for ulak in pair:
            ulak.loops.breakers.failed("shop", policy, clock.now())
            ulak.loops.breakers.failed("bank", policy, clock.now())
            await ulak.store.write(save_breakers, ulak.loops.breakers.changed)
        door = build_app(pair[0])
        status, _ = await asked(door, "/api/breakers/reset", b'{"destination": "shop"}')
        assert status == 200
        while len(pair[1].loops.breakers.stopping()) > 1:
            clock.advance(BREAKERS_SECONDS)
            await asyncio.sleep(0.005)
        assert [[one.destination for one in ulak.loops.breakers.stopping()] for ulak in pair] == [["bank"]] * 2


async def test_a_job_that_the_other_puts_off_before_it_hears_of_a_reset_does_not_sleep_on(pair, clock):
    policy, sent = BreakerPolicy(failures=1, open_seconds=3600, cap_seconds=3600), asyncio.Event()

    @pair[1].handles("hook.send", breaker=policy)
    async def send(job):
        sent.set()

    async with both_open(pair):
        pair[1].loops.breakers.failed("shop", policy, clock.now())
        await pair[0].enqueue("hook.send", key="shop")
        while not await pair[0].store.read(load_breakers) or await put_off(pair[0]) < 1:
            await asyncio.sleep(0.005)
        await asked(build_app(pair[0]), "/api/breakers/reset", b'{"all": true}')
        while await put_off(pair[0]) < 2:
            await asyncio.sleep(0.005)
        while not sent.is_set():
            assert clock.monotonic() < 1800
            clock.advance(BREAKERS_SECONDS)
            await asyncio.sleep(0.005)


async def put_off(ulak):
    return (await ulak.jobs.tally())["hook.send"].get("snoozed", 0)


async def fails(job):
    raise Transient("down")


async def asked(door, path, body):
    """One request to the application, without a socket."""
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": head}
    sent = []

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        sent.append(message)

    await door(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


async def test_two_machines_whose_clocks_differ_by_minutes_agree_on_the_time(database):
    class HeldJobs(SystemClock):
        def now(self):
            return super().now() + 300_000

    async with Ulak(database, clock=HeldJobs(), work=False) as ahead, Ulak(database, work=False) as right:
        assert abs(ahead.store.clock.now() - right.store.clock.now()) < 60_000
        assert abs((await ahead.store.write(lambda tx: tx.now)) - (await right.store.write(lambda tx: tx.now))) < 60_000
