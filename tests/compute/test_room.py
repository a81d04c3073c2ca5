"""Durable tasks on every store: each ends as it should, and its answer can be asked for twice."""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compute.conftest import is_alive
from tests.compute.rooms import build, die_the_first_time, never_returns, task, where, write_scripts
from tests.flow.stores import address_of
from ulak import ids
from ulak.compute import Expired, Result, TaskStatus, records
from ulak.compute.endings import cause_of, read_cause
from ulak.compute.jobs import KINDS, MAX_RESULT_BYTES
from ulak.errors import IllegalTransition, Invalid, NotFound
from ulak.spine.units.dead_letters import Filter
from ulak.testing import drain

WAIT = 60


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request, tmp_path):
    yield from address_of(request.param, tmp_path)


@pytest.fixture
def room_root(tmp_path):
    return write_scripts(tmp_path / "scripts")


async def run(ulak, *arguments, **options):
    return await ulak.compute.result(await ulak.compute.submit(task(*arguments, **options)), WAIT)


async def waited(gate):
    return await asyncio.to_thread(gate.wait)


def held(gate):
    return {"started": gate.started, "gate": gate.path}


async def test_every_end_is_a_different_answer_and_asking_twice_gives_the_same(address, room_root):
    async with build(address, room_root) as ulak:
        double = await ulak.compute.submit(task("double.py", {"value": 21}, cpu=True))
        done = await ulak.compute.result(double, WAIT)
        assert (done.status, done.data) == (TaskStatus.SUCCESS, {"value": 42, "id": str(double)})
        assert (done.task_id, done.stdout, done.attempts) == (str(double), "doubling\n", 1)
        assert done.started_at <= done.completed_at
        failed = await run(ulak, "fail.py", {"text": "CRASHED and TIMED_OUT"})
        assert (failed.status, failed.stderr) == (TaskStatus.FAILED, "went wrong\n")
        assert failed.error == "ValueError: CRASHED and TIMED_OUT"
        assert (failed.stdout, failed.worker_id) == ("before\n", "io-0")
        assert "fail.py" in failed.traceback
        assert "raise ValueError(" in failed.traceback  # the script's own line
        crashed = await run(ulak, "crash.py", cpu=True)
        assert crashed.status is TaskStatus.CRASHED
        assert "SIGKILL" in crashed.error
        for result in (done, failed, crashed):
            assert await ulak.compute.result(result.task_id) == result
        with pytest.raises(NotFound) as unknown:
            await ulak.compute.result(ids.to_uuid(ulak.store.ids.take(ulak.clock.now())))
        assert not isinstance(unknown.value, Expired)
        for unknown_id in (uuid.uuid4(), "a\0b", "x" * 300):
            with pytest.raises(NotFound):
                await ulak.compute.result(unknown_id)
        with pytest.raises(Expired, match="history_days"):
            await ulak.compute.result(ids.to_uuid(ids.Ids().take(ulak.clock.now() - 90 * 86_400_000)))


async def test_a_task_that_prints_what_no_store_takes_succeeds(address, room_root):
    """As the name of a file may be, on a system that has not always written UTF-8."""
    Path(room_root, "names.py").write_text(r"print('\udce9t\u00e9 \0'); result = 1" + "\n")
    async with build(address, room_root) as ulak:
        done = await run(ulak, "names.py")
    assert (done.status, done.data, done.stdout) == (TaskStatus.SUCCESS, 1, "\\udce9t\u00e9 \0\n")


async def test_a_failing_task_is_tried_as_often_as_it_says(address, room_root):
    async with build(address, room_root) as ulak:
        luck = await run(ulak, "attempt.py", {"failures": 2}, retries=2)
        assert (luck.status, luck.data, luck.attempts) == (TaskStatus.SUCCESS, 3, 3)
        none = await run(ulak, "attempt.py", {"failures": 2}, retries=1)
        assert (none.status, none.attempts) == (TaskStatus.FAILED, 2)
        assert "not yet" in none.error
        metrics = ulak.compute.stats()["metrics"]
        assert metrics["process_pool"]["total_retried"] == 2 + 1
        assert metrics["output_queue"]["in_memory"] == 0  # the store keeps them, not the engine


async def test_a_run_that_takes_too_long_is_ended_and_tried_again(address, room_root, gates):
    gate = gates("held")
    async with build(address, room_root) as ulak:
        late = await run(ulak, "hold.py", held(gate), cpu=True, retries=1, timeout_seconds=0.05)
        assert (late.status, late.attempts) == (TaskStatus.TIMED_OUT, 2)


async def test_a_waiting_task_is_cancelled_at_once(address, room_root):
    async with build(address, room_root, work=False) as ulak:
        waiting = await ulak.compute.submit(task("double.py", {"value": 1}))
        assert await ulak.compute.status(waiting) is TaskStatus.PENDING
        assert await ulak.compute.result(waiting) is None
        assert await ulak.compute.cancel(waiting) == "CANCELLED"
        result = await ulak.compute.result(waiting)
        assert (result.status, result.error) == (TaskStatus.CANCELLED, "cancelled before it ran")
        with pytest.raises(IllegalTransition, match="over already"):
            await ulak.compute.cancel(waiting)


@pytest.mark.parametrize("cpu", [True, False], ids=["cpu", "io"])
async def test_a_running_task_is_cancelled_and_its_worker_ended(address, room_root, gates, cpu):
    gate = gates("held")
    async with build(address, room_root) as ulak:
        running = await ulak.compute.submit(task("hold.py", held(gate), cpu=cpu))
        pid = await waited(gate)
        assert await ulak.compute.status(running) is TaskStatus.RUNNING
        assert await ulak.compute.cancel(running) == "CANCELLING"
        result = await ulak.compute.result(running, WAIT)
        assert result.status is TaskStatus.CANCELLED
    assert not is_alive(pid)


async def test_results_that_cannot_be_kept_fail_by_name(address, room_root):
    async with build(address, room_root) as ulak:
        odd = await run(ulak, "odd.py", retries=5)
        assert (odd.status, odd.attempts) == (TaskStatus.FAILED, 1)
        assert "JSON" in odd.error or "pickled" in odd.error
        large = await run(ulak, "large.py", {"size": MAX_RESULT_BYTES}, retries=5)
        assert (large.status, large.attempts) == (TaskStatus.FAILED, 1)
        assert "at most 1024 are kept" in large.error
        fitting = await run(ulak, "large.py", {"size": MAX_RESULT_BYTES // 2})
        assert len(fitting.data) == MAX_RESULT_BYTES // 2


async def test_a_batch_is_accepted_whole_or_not_at_all(address, room_root):
    async with build(address, room_root) as ulak:
        with pytest.raises(Invalid, match=r"'none.py' is not in script_root"):
            await ulak.compute.submit_many([task("double.py", {"value": 1}), task("none.py")])
        assert await ulak.jobs.counts() == {}
        accepted = await ulak.compute.submit_many([task("double.py", {"value": n}, cpu=n % 2 == 0) for n in range(20)])
        results = [await ulak.compute.result(identifier, WAIT) for identifier in accepted]
        assert [result.data["value"] for result in results] == [n * 2 for n in range(20)]


async def test_io_does_not_wait_behind_cpu(room_root, gates):
    gate = gates("held")
    async with build("memory:", room_root) as ulak:
        stuck = await ulak.compute.submit_many([task("hold.py", held(gate), cpu=True) for _ in range(10)])
        await waited(gate)
        assert (await run(ulak, "double.py", {"value": 1})).is_success
        for identifier in stuck:
            await ulak.compute.cancel(identifier)


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "link.py"])
async def test_a_script_outside_the_root_is_refused(room_root, tmp_path, path):
    (tmp_path / "outside.py").write_text("result = 1")
    Path(room_root, "link.py").symlink_to(tmp_path / "outside.py")
    async with build("memory:", room_root) as ulak:
        with pytest.raises(Invalid, match="outside"):
            await ulak.compute.submit(task(path))


async def test_what_makes_no_sense_is_refused(room_root):
    async with build("memory:", room_root) as ulak:
        with pytest.raises(Invalid, match="at most 100"):
            await ulak.compute.submit(task("double.py", retries=101))
        with pytest.raises(Invalid, match="priority 9"):
            await ulak.compute.submit(task("double.py", priority=9))
        assert await ulak.compute.submit_many([]) == []
        assert ulak.compute.stats() == {}


async def test_a_job_of_another_kind_is_no_task(room_root):
    async with build("memory:", room_root) as ulak:
        other = ids.to_uuid(await ulak.enqueue("something.else"))
        with pytest.raises(NotFound):
            await ulak.compute.result(other)


def test_the_cause_of_a_death_is_read_only_from_its_beginning():
    assert read_cause("Permanent: TIMED_OUT after 2 attempt(s): x").status is TaskStatus.TIMED_OUT
    assert read_cause("Permanent: FAILED after 1 attempt(s): CRASHED after 3 attempts").status is TaskStatus.FAILED
    assert read_cause("poison: the process died 3 times while this job was running").status is TaskStatus.CRASHED


def test_a_cause_is_read_back_as_it_was_written():
    result = Result(
        "id", TaskStatus.FAILED, None, "E: e", stdout="o\n" * 500, stderr="x", worker_id="cpu-3", traceback="T"
    )
    cause = cause_of(result, 2)
    assert len(cause) < 2000
    ending = read_cause(cause)
    assert (ending.status, ending.traceback, ending.stderr, ending.worker) == (TaskStatus.FAILED, "T", "x", "cpu-3")
    assert ending.stdout.endswith("o\no\n")
    assert ending.error == "E: e"


async def test_any_kind_may_run_on_a_process(address, room_root):
    ulak = build(address, room_root)
    ulak.handles("heavy.think", lane="process")(where)
    async with ulak:
        job = await ulak.enqueue("heavy.think", {"n": 1})
        await drain(ulak)
        detail = (await ulak.jobs.get(job)).detail
    assert detail["pid"] != os.getpid()
    assert (detail["payload"], detail["attempt"]) == ({"n": 1}, 1)


async def test_the_death_of_a_worker_is_a_failed_attempt_of_the_job(room_root):
    ulak = build("memory:", room_root)
    ulak.handles("heavy.die", lane="process", max_attempts=2)(die_the_first_time)
    async with ulak:
        job = await ulak.enqueue("heavy.die")
        while (record := await ulak.jobs.get(job)).settled_at is None:
            ulak.loops.changed.clear()
            await asyncio.wait_for(ulak.loops.changed.wait(), WAIT)
    assert (record.status, record.detail, record.attempt) == ("done", [2, True], 2)  # the second knew of the first
    assert [entry.word for entry in record.timeline][2:4] == ["uncertain", "retried"]


@pytest.mark.parametrize(
    ("handler", "seconds", "cause"), [(die_the_first_time, WAIT, "CutOff"), (never_returns, 1, "1(.0)? s")]
)
async def test_what_must_not_run_twice_waits_for_a_person_when_its_worker_ended(
    room_root, gate, handler, seconds, cause
):
    """Killed by somebody, or by us because its time was over: nobody knows what it had done."""
    ulak = build("memory:", room_root)
    ulak.handles("heavy.pay", lane="process", timeout_seconds=seconds)(handler)
    async with ulak:
        job = await ulak.enqueue("heavy.pay", held(gate), on_uncertain="hold")
        while (record := await ulak.jobs.get(job)).settled_at is None:
            ulak.loops.changed.clear()
            await asyncio.wait_for(ulak.loops.changed.wait(), WAIT)
        (dead,) = await ulak.jobs.find_dead(Filter(error_class="uncertain"))
    assert (record.status, record.attempt, dead) == ("dead", 1, job)
    assert re.search(cause, str(record.detail))


async def test_a_handler_that_cannot_be_sent_is_named_at_once(room_root):
    ulak = build("memory:", room_root)

    @ulak.handles("heavy.nested", lane="process")
    def nested(job): ...

    async with ulak:
        job = await ulak.enqueue("heavy.nested")
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert record.status == "dead"
    assert "top level" in str(record.detail)


async def test_cancelling_a_job_ends_its_process(room_root, gate):
    ulak = build("memory:", room_root)
    ulak.handles("heavy.hold", lane="process")(never_returns)
    async with ulak:
        job = await ulak.enqueue("heavy.hold", held(gate))
        await waited(gate)
        await ulak.jobs.cancel(job)
        await drain(ulak)
        assert (await ulak.jobs.get(job)).status == "cancelled"


async def test_what_runs_at_a_stop_comes_back(tmp_path, room_root, gate):
    address = f"sqlite:///{tmp_path}/ulak.db"
    limits = {"stop_grace_seconds": 0, "stop_cancel_seconds": 5}
    async with build(address, room_root, worker=limits) as ulak:
        held_one = await ulak.compute.submit(task("hold.py", held(gate), cpu=True, retries=1))
        pid = await waited(gate)
    assert not is_alive(pid)
    Path(gate.path).unlink()
    Path(gate.path).write_text("came back")
    async with build(address, room_root) as ulak:
        assert (await ulak.compute.result(held_one, WAIT)).data == "came back"


async def test_a_task_without_retries_waits_for_a_person_when_its_process_is_cut_off(tmp_path, room_root, gate):
    address = f"sqlite:///{tmp_path}/ulak.db"
    limits = {"stop_grace_seconds": 0, "stop_cancel_seconds": 5}
    async with build(address, room_root, worker=limits) as ulak:
        once = await ulak.compute.submit(task("hold.py", held(gate), cpu=True, retries=0))
        await waited(gate)
    Path(gate.path).unlink()
    Path(gate.path).write_text("came back")
    Path(gate.started).unlink()
    async with build(address, room_root) as ulak:
        result = await ulak.compute.result(once, WAIT)
        (dead,) = await ulak.jobs.find_dead(Filter(error_class="uncertain"))
        assert (await ulak.compute.result(ulak.store.ids.to_uuid(dead))).task_id == once  # found by the job's id, too
        assert not Path(gate.started).exists()  # it did not run again
        await ulak.jobs.redrive([dead])  # a person decides
        assert (await ulak.compute.result(once, WAIT)).data == "came back"
    assert result.status is TaskStatus.CRASHED


async def test_a_path_that_no_system_can_have_is_refused(room_root):
    with pytest.raises(Invalid, match="is not a path") as refused:
        task("a\0b.py")
    assert [field for field, _ in refused.value.fields] == ["script_path"]


async def test_each_class_has_its_own_bound(room_root):
    options = {"capacity": 2}
    async with build("memory:", room_root, work=False, compute=options) as ulak:
        await ulak.compute.submit_many([task("double.py", cpu=cpu) for cpu in (True, True, False, False)])
        assert {kind: ulak.store.capacity.free(kind) for kind in KINDS.values()} == dict.fromkeys(KINDS.values(), 0)


async def test_a_durable_task_is_known_by_its_own_id(address, room_root):
    async with build(address, room_root) as ulak:
        mine = replace(task("double.py", {"value": 21}), id="order 4711")
        assert await ulak.compute.submit(mine) == mine.id
        done = await ulak.compute.result(mine.id, WAIT)
        assert (done.task_id, done.data["value"], await ulak.compute.status(mine.id)) == (
            mine.id,
            42,
            TaskStatus.SUCCESS,
        )


async def test_a_task_that_is_known_is_not_accepted_again(address, room_root):
    async with build(address, room_root, work=False) as ulak:
        one, other = task("double.py"), task("double.py")
        assert await ulak.compute.submit_many([one, other, one]) == [one.id, other.id, one.id]
        assert await asyncio.gather(*(ulak.compute.submit(one) for _ in range(5))) == [one.id] * 5
        assert (await ulak.jobs.counts())["compute.run.io"]["ready"] == 2


async def test_of_two_tasks_with_one_id_in_a_batch_the_first_is_accepted(address, room_root):
    async with build(address, room_root, work=False) as ulak:
        first, second = (replace(task(name), id="same") for name in ("double.py", "fail.py"))
        assert await ulak.compute.submit_many([first, second]) == ["same", "same"]
        assert [one.script_path for one in (await ulak.compute.list())[0]] == ["double.py"]


async def test_a_task_that_found_no_place_is_not_known(address, room_root):
    async with build(address, room_root, work=False, compute={"capacity": 1}) as ulak:
        await ulak.compute.submit(task("double.py"))
        late = task("double.py")
        waiting = [asyncio.create_task(ulak.compute.submit(late)) for _ in range(3)]
        while not ulak.loops.gate._waiting:
            await asyncio.sleep(0.001)
        with pytest.raises(NotFound):
            await ulak.compute.status(late.id)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


@pytest.mark.parametrize("identifier", ["", "a/b", "a\nb", "x" * 201, 7, ".", ".."])
async def test_an_id_that_nobody_could_ask_for_is_refused(room_root, identifier):
    async with build("memory:", room_root, work=False) as ulak:
        with pytest.raises(Invalid, match="task_id"):
            await ulak.compute.submit(replace(task("double.py"), id=identifier))


async def test_ids_are_forgotten_with_the_history(room_root):
    async with build("memory:", room_root, work=False) as ulak:
        known = task("double.py")
        await ulak.compute.submit(known)
        (job,) = await ulak.store.read(lambda tx: [job for _, job in tx.rows(records.sql.find_tasks, ids=[known.id])])
        assert await ulak.store.write(records.prune, 60_000) == 0
        assert await ulak.store.write(records.prune, -60_000) == 1
        assert await ulak.compute.status(ulak.store.ids.to_uuid(job)) is TaskStatus.PENDING
