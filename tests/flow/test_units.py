"""Units of work share commits, and fail alone."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ulak import Conflict, Invalid, NewJob, Unavailable
from ulak.spine import probe
from ulak.spine.query import Query
from ulak.spine.store import WriterQueue
from ulak.spine.units.enqueue import enqueue_rows
from ulak.spine.validate import to_rows
from ulak.stores.writer.writer import Writer


def note(tx, number):
    tx.emit("unit.done", number, "test")
    tx.count("unit", "test")
    return number


@pytest.fixture
def probes():
    yield probe.listen
    probe.clear()


class Odd(BaseException):
    """Not even an Exception."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("mine"), ValueError),
        (Conflict("mine"), Conflict),
        (StopIteration("mine"), RuntimeError),
        (SystemExit("mine"), RuntimeError),
        (Odd("mine"), RuntimeError),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_unit_that_raises_fails_alone_and_leaves_nothing(make, error, expected):
    ulak = make(work=False)

    def fail(tx):
        tx.emit("unit.failed", 0, "test")
        tx.count("unit", "test", 1000)
        enqueue_rows(tx, to_rows([NewJob("mail.send")], tx.ids, tx.now))
        raise error

    async with ulak:
        units = [ulak.write(fail) if n % 10 == 5 else ulak.write(note, n) for n in range(100)]
        answers = await asyncio.gather(*units, ulak.enqueue("sms.send"), return_exceptions=True)
        for n, answer in enumerate(answers[:100]):
            assert isinstance(answer, expected) if n % 10 == 5 else answer == n
        assert isinstance(answers[100], int)
        counts = await ulak.jobs.counts()
        assert set(counts) == {"sms.send"}
        assert (await ulak.jobs.tally())["test"] == {"unit": 90}
        assert ulak.store.capacity.free("mail.send") >= ulak.store.capacity.free("other.kind")


async def test_an_event_that_cannot_be_written_fails_its_unit_alone(make):
    ulak = make(work=False)

    def emit_nonsense(tx):
        tx.emit("unit.odd", 1, "test", object())

    async with ulak:
        answers = await asyncio.gather(
            ulak.write(note, 1), ulak.write(emit_nonsense), ulak.write(note, 2), return_exceptions=True
        )
        assert (answers[0], answers[2]) == (1, 2)
        assert isinstance(answers[1], TypeError)
        assert await ulak.write(note, 3) == 3


async def test_a_statement_that_the_database_refuses_is_the_callers_mistake(make):
    ulak = make(work=False)
    nonsense = Query("nonsense", "SELECT * FROM nowhere", "SELECT * FROM nowhere", ())
    async with ulak:
        answers = await asyncio.gather(
            ulak.write(lambda tx: tx.rows(nonsense)), ulak.write(note, 2), return_exceptions=True
        )
        assert isinstance(answers[0], Invalid)
        assert answers[1] == 2


async def test_many_failing_units_do_not_hold_up_good_ones(make):
    ulak = make(work=False)

    def fail(_):
        raise ValueError

    async with ulak:
        for _ in range(10):
            answers = await asyncio.gather(
                *(ulak.write(fail if n % 2 else note, *([] if n % 2 else [n])) for n in range(20)),
                return_exceptions=True,
            )
            assert [answer for answer in answers if isinstance(answer, int)] == list(range(0, 20, 2))


async def test_jobs_enqueued_in_a_users_unit_are_atomic_with_it(make):
    ulak = make(work=False)

    def order(tx, fail):
        ids = enqueue_rows(tx, to_rows([NewJob("mail.send")] * 2, tx.ids, tx.now))
        if fail:
            raise ValueError("changed my mind")
        return ids

    async with ulak:
        with pytest.raises(ValueError, match="changed my mind"):
            await ulak.write(order, fail=True)
        assert await ulak.jobs.counts() == {}
        assert len(await ulak.write(order, fail=False)) == 2
        assert (await ulak.jobs.counts())["mail.send"]["ready"] == 2


async def test_a_caller_that_gives_up_leaves_the_others_of_its_commit_alone(make):
    ulak = make(work=False)
    async with ulak:
        tasks = [asyncio.ensure_future(ulak.enqueue("mail.send", n)) for n in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        kept = await asyncio.gather(*tasks[1::2])
        present = {record.id for record in await ulak.jobs.list(kind="mail.send", limit=1000)}
        assert set(kept) <= present


async def test_what_comes_in_during_a_commit_shares_the_next_one_with_what_that_commit_sets_off(make):
    ulak, begun, go_on = make(work=False), threading.Event(), threading.Event()
    served = []

    def hold(tx):
        begun.set()
        assert go_on.wait(10)

    async def follow():
        await ulak.write(hold)
        await ulak.write(served.append)

    async with ulak:
        following = asyncio.create_task(follow())
        await asyncio.to_thread(begun.wait, 10)
        meanwhile = asyncio.create_task(ulak.write(served.append))
        for _ in range(20):  # many turns: time enough to call the thread, which is busy
            await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(following, meanwhile)
        first, second = served
        assert first is second  # one transaction


@pytest.fixture
def told(monkeypatch):
    """Counts what the writers have told the event loop, whether it has heard it or not."""
    tell, told = Writer._tell, threading.Semaphore(0)

    def count(writer, *args):
        tell(writer, *args)
        told.release()

    monkeypatch.setattr(Writer, "_tell", count)
    return told


@pytest.fixture
def lines_of_batch(monkeypatch):
    """Returns a function that names the lines of the batch which the calling writer's thread serves."""
    serve, thread = Writer._serve, threading.local()

    def remember(writer, batch):
        thread.lines = {item.verb.line for item in batch}
        serve(writer, batch)

    monkeypatch.setattr(Writer, "_serve", remember)
    return lambda: thread.lines


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 20])
async def test_that_holds_too_for_a_commit_that_follows_one_that_only_accepts(
    make, probes, told, lines_of_batch, turns
):
    ulak, served = make(work=False), []
    accepting, accept, begun, go_on = (threading.Event() for _ in range(4))

    def commit():
        if lines_of_batch() == {WriterQueue.ENQUEUE}:  # the store's own upkeep commits too, at any moment
            accepting.set()
            assert accept.wait(10)

    def hold(tx):
        begun.set()
        assert go_on.wait(10)

    async def follow():
        await ulak.write(hold)
        await ulak.write(served.append)

    async with ulak:
        probes("writer.before_commit", commit)
        accepted = asyncio.create_task(ulak.enqueue("mail.send"))
        await asyncio.to_thread(accepting.wait, 10)
        following = asyncio.create_task(follow())
        await asyncio.sleep(0)
        accept.set()
        await accepted
        await asyncio.to_thread(begun.wait, 10)
        meanwhile = asyncio.create_task(ulak.write(served.append))
        for _ in range(turns):
            await asyncio.sleep(0)
        while told.acquire(blocking=False):
            pass
        go_on.set()
        assert told.acquire(timeout=10)  # the loop stands here, with a call of the thread under way
        await asyncio.gather(following, meanwhile)
        first, second = served
        assert first is second  # one transaction


async def test_a_close_serves_everything_that_waits_however_many_commits_that_takes(make):
    ulak = make(work=False)
    async with ulak:
        written = [asyncio.ensure_future(ulak.write(note, number)) for number in range(500)]
        await asyncio.sleep(0)
    assert await asyncio.gather(*written) == list(range(500))
    with pytest.raises(Unavailable):
        await ulak.write(note, 500)


async def test_a_unit_that_is_async_is_refused_since_nobody_would_run_it(make):
    async def unit(tx):
        """Would be made and never awaited."""

    async with make() as ulak:
        with pytest.raises(Invalid, match="plain function"):
            await ulak.write(unit)


async def test_an_open_ulak_is_not_opened_again(make):
    async with make() as ulak:
        store = ulak.store
        with pytest.raises(Conflict, match="open already"):
            await ulak.open()
        assert ulak.store is store


async def test_putting_nothing_is_nothing(make):
    async with make() as ulak:
        assert await ulak.put() == []


@pytest.mark.parametrize("seconds", [-1, float("nan"), "1"])
async def test_an_offer_waits_for_a_time_or_is_refused(make, seconds):
    async with make() as ulak:
        with pytest.raises(Invalid, match="timeout_seconds"):
            await ulak.offer("mail.send", timeout_seconds=seconds)


def test_a_decorator_without_its_kind_is_told_at_once(make):
    with pytest.raises(Invalid, match=r"write @ulak\.handles"):

        @make().handles
        async def handle(job):
            """Would not be registered."""
