"""Plain callables: submit, map, run, options, cancelling, bounds."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import os
import threading
import weakref

import pytest

from tests.compute import jobs
from tests.compute.conftest import eventually, is_alive
from ulak.compute import Engine, TaskType, TimedOut
from ulak.compute.engine.mapping import Pace, Paces
from ulak.compute.pool.worker_handle import WorkerHandle
from ulak.compute.worker.runner import Role
from ulak.errors import Refused, Unavailable


def test_call_runs_in_another_process_and_returns(engine):
    assert engine.submit(jobs.add, 2, right=3).result() == 5
    assert engine.submit(jobs.pid).result() != os.getpid()


def test_exception_arrives_with_the_workers_traceback(engine):
    error = engine.submit(jobs.fail, "wrong").exception()
    assert isinstance(error, ValueError)
    assert error.args == ("wrong",)
    assert "jobs.py" in str(error.__cause__)


def test_any_picklable_callable_will_do(engine):
    assert engine.submit(functools.partial(jobs.add, 1), 2).result() == 3
    assert engine.submit("a,b".split, ",").result() == ["a", "b"]
    assert engine.submit(len, "abc").result() == 3


def test_argument_that_cannot_be_pickled_fails_its_future_alone(engine):
    assert engine.submit(jobs.echo, jobs.a_lock()).exception() is not None
    assert engine.submit(jobs.a_lock().acquire).exception() is not None
    assert engine.submit(jobs.echo, 1).result() == 1


def test_large_arguments_and_results_pass(engine):
    blob = os.urandom(5_000_000)
    assert engine.submit(jobs.echo, blob).result() == blob


def test_many_calls_one_by_one_keep_their_results_apart(engine):
    futures = [engine.submit(jobs.echo, number) for number in range(3000)]
    assert [future.result() for future in futures] == list(range(3000))


def test_io_calls_run_side_by_side_in_one_worker(engine, tmp_path):
    io = engine.using(task_type=TaskType.IO_BOUND)
    futures = [io.submit(jobs.meet, str(tmp_path), number, 4) for number in range(4)]
    assert sorted(future.result() for future in futures) == [0, 1, 2, 3]
    assert len({io.submit(jobs.pid).result() for _ in range(4)}) == 1


def test_io_does_not_wait_behind_cpu(engine, gates):
    held = [gates("a"), gates("b")]
    futures = [engine.submit(jobs.hold, gate.started, gate.path) for gate in held]
    assert engine.using(task_type=TaskType.IO_BOUND).submit(jobs.echo, 1).result() == 1
    for gate in held:
        gate.wait()
        gate.open()
    assert [future.result() for future in futures] == [None, None]


def test_a_short_task_is_not_stuck_behind_a_long_one_sent_before_it(engine, gate):
    for _ in range(300):
        engine.submit(jobs.echo).result()  # the engine learns that tasks are tiny and sends them ahead
    long = engine.submit(jobs.hold, gate.started, gate.path)
    short = [engine.submit(jobs.echo, number) for number in range(200)]
    assert [future.result() for future in short] == list(range(200))
    assert not long.done()
    gate.wait()
    gate.open()
    long.result()


def test_a_task_sent_ahead_does_not_wait_for_a_long_one_while_a_colleague_is_idle(engine, gate):
    for future in [engine.submit(jobs.linger, 0.004) for _ in range(20)]:
        future.result()  # the engine learns that one is to be sent ahead
    long = engine.submit(jobs.hold, gate.started, gate.path)
    assert [future.result() for future in [engine.submit(jobs.linger, 0.004) for _ in range(20)]] == [0.004] * 20
    assert not long.done()
    gate.wait()
    gate.open()
    long.result()


def test_cpu_workers_use_one_thread_in_numeric_libraries(engine):
    assert engine.submit(jobs.environment, "OMP_NUM_THREADS").result() == "1"
    assert engine.submit(jobs.environment, "OPENBLAS_NUM_THREADS").result() == "1"


def test_map_gives_results_in_order(engine):
    assert list(engine.map(jobs.add, range(5000), range(5000))) == [2 * number for number in range(5000)]
    assert list(engine.map(jobs.echo, iter("abc"), chunk_size=2)) == ["a", "b", "c"]
    assert list(engine.map(jobs.echo, [])) == []


def test_map_gives_what_came_before_an_error_and_then_raises(engine):
    values = engine.map(jobs.add, [1, 2, "three", 4], chunk_size=4)
    assert [next(values), next(values)] == [1, 2]
    with pytest.raises(TypeError):
        next(values)


def test_closing_a_map_cancels_what_is_on_its_way(engine, gate):
    values = engine.map(jobs.hold_at, [None, (gate.started, gate.path)], chunk_size=1)
    assert next(values) is None
    worker = gate.wait()
    values.close()
    eventually(lambda: not is_alive(worker))
    assert list(values) == []


def test_a_closed_map_gives_no_more(engine):
    values = engine.map(jobs.echo, range(4), chunk_size=4)
    assert next(values) == 0
    values.close()
    assert list(values) == []


def test_a_map_that_is_let_go_of_cancels_what_is_on_its_way(engine, gate):
    values = engine.map(jobs.hold_at, [None, (gate.started, gate.path)], chunk_size=1)
    assert next(values) is None
    worker = gate.wait()
    del values
    eventually(lambda: not is_alive(worker))


def test_a_slow_call_of_a_map_holds_up_only_its_own_worker(engine, gate, tmp_path):
    """Also when the function was quick in the last map: the chunks are at most an eighth of the calls, and shrink."""
    list(engine.map(jobs.hold_at, [None] * 5000))
    notes = tmp_path / "notes"
    calls = [(gate.started, gate.path), *[None] * 15]
    held = iter(engine.map(jobs.hold_at, calls, [str(notes)] * 16))
    collected = threading.Thread(target=lambda: list(held))
    collected.start()
    gate.wait()
    eventually(lambda: notes.exists() and len(notes.read_text().split()) == 10)  # all that is on its way besides
    gate.open()
    collected.join(30)
    assert len(notes.read_text().split()) == 15


def test_chunks_begin_where_the_last_map_of_the_function_ended_and_follow_its_pace():
    paces, pace = Paces(), Pace(None, 1, 80_000, 2)
    for expected in (64, 4096, 10_000):  # at most a quarter of a worker's share
        pace.learn(pace.size, 0.0)
        assert pace.size == expected
    paces.remember(jobs.echo, pace)
    assert Pace(None, paces.of(jobs.echo), 1000, 2).size == 125
    assert Pace(None, paces.of(jobs.echo), None, 2).size == 1  # an unknown number of calls, perhaps few
    slow = Pace(None, paces.of(jobs.echo), 1000, 2)
    slow.learn(125, 125.0)
    assert slow.size == 1
    paces.remember(jobs.echo, slow)
    assert paces.of(jobs.echo) == paces.of(jobs.add) == paces.of(functools.partial(jobs.add, 1)) == 1


def test_the_pace_of_a_function_is_forgotten_with_it():
    paces = Paces()

    def function():
        pass

    paces.remember(function, Pace(None, 5, None, 2))
    alive = weakref.ref(function)
    del function
    assert alive() is None


def test_map_shows_a_progress_bar(engine, capsys):
    assert list(engine.map(jobs.echo, range(10), progress=True, label="counting")) == list(range(10))
    assert "counting" in capsys.readouterr().out


async def test_run_is_awaited(engine):
    assert await engine.run(jobs.add, 1, 2) == 3
    with pytest.raises(ValueError, match="no"):
        await engine.run(jobs.fail)
    assert await asyncio.gather(*(engine.run(jobs.echo, number) for number in range(50))) == list(range(50))


async def test_cancelling_the_awaiting_ends_the_work(engine, gate):
    waiting = asyncio.create_task(engine.run(jobs.hold, gate.started, gate.path))
    await asyncio.to_thread(gate.wait)
    pid = gate.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.to_thread(eventually, lambda: not is_alive(pid))


def test_timeout_ends_the_worker_and_its_children(engine, gate):
    future = engine.using(timeout_seconds=1.0).submit(jobs.hold_with_child, gate.started, gate.path)
    child = gate.wait()
    with pytest.raises(TimedOut, match="longer than 1 s"):
        future.result()
    eventually(lambda: not is_alive(child))
    assert engine.submit(jobs.echo, 1).result() == 1


def test_a_task_deaf_to_sigterm_is_killed(engine, gate):
    future = engine.using(timeout_seconds=0.3).submit(jobs.hold_deaf, gate.started, gate.path)
    pid = gate.wait()
    assert isinstance(future.exception(), TimedOut)
    eventually(lambda: not is_alive(pid))


def test_timeout_of_an_io_task_is_told_and_its_neighbours_finish(make_engine, gates):
    engine, stuck, fine = make_engine(io_threads=4), gates("stuck"), gates("fine")
    io = engine.using(task_type=TaskType.IO_BOUND)
    neighbour = io.submit(jobs.hold, fine.started, fine.path, "fine")
    fine.wait()
    late = engine.using(task_type=TaskType.IO_BOUND, timeout_seconds=0.2).submit(jobs.hold, stuck.started, stuck.path)
    assert isinstance(late.exception(), TimedOut)
    old = fine.wait()
    assert io.submit(jobs.pid).result() != old  # the replacement came first
    fine.open()
    assert neighbour.result() == "fine"
    eventually(lambda: not is_alive(old))


def test_cancelling_a_running_call_ends_it(engine, gate):
    future = engine.submit(jobs.hold, gate.started, gate.path)
    pid = gate.wait()
    assert engine.cancel(future)
    assert future.cancelled()
    eventually(lambda: not is_alive(pid))
    assert not engine.cancel(future)


class UnheardForkserver:
    def fork(self, token, descriptors):
        """Nobody is born."""


@pytest.fixture
def worker():
    made = WorkerHandle(1, UnheardForkserver(), 0.0)
    made.assume(TaskType.CPU_BOUND, Role("cpu-0", 0, None, 0))
    yield made
    made.hang_up()


def test_a_worker_that_may_still_start_a_cancelled_call_is_given_nothing(worker):
    """It is ended if it does; a short call behind that would come back after long ones have taken every worker."""
    assert worker.free == 1
    worker.pulled.add(7)
    assert worker.free == 0


def test_a_call_that_is_over_is_not_counted_as_active(worker):
    """A worker takes its mark away after the outcome has been sent."""
    worker.marks.start(0, 7, 0.0)
    assert worker.active_count == 0
    worker.inflight[7] = None
    assert worker.active_count == 1
    worker.inflight.clear()
    worker.pulled.add(7)  # cancelled, and still running
    assert worker.active_count == 1


def test_a_waiting_call_is_cancelled_by_its_future(make_engine, gate, tmp_path):
    engine = make_engine()
    running = engine.submit(jobs.hold, gate.started, gate.path)
    waiting = engine.submit(jobs.touch, str(tmp_path / "ran"))
    gate.wait()
    assert not running.cancel()
    assert waiting.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        waiting.result()
    gate.open()
    running.result()
    assert engine.submit(jobs.echo, 1).result() == 1
    assert not (tmp_path / "ran").exists()


def test_urgent_work_overtakes(make_engine, gate, tmp_path):
    engine, log = make_engine(), str(tmp_path / "log")
    held = engine.submit(jobs.hold, gate.started, gate.path)
    gate.wait()
    futures = [engine.using(priority=level).submit(jobs.append_line, log, level) for level in (3, 2, 1, 0)]
    gate.open()
    assert held.result() is None
    concurrent.futures.wait(futures)
    assert (tmp_path / "log").read_text().split() == ["0", "1", "2", "3"]


def test_full_input_refuses_waits_or_blocks(make_engine, gate):
    engine = make_engine(input_capacity=2, when_full="reject")
    held = engine.submit(jobs.hold, gate.started, gate.path)
    gate.wait()
    kept = [engine.submit(jobs.echo, number) for number in range(2)]
    with pytest.raises(Refused, match="wait already"):
        engine.submit(jobs.echo)
    assert engine.metrics()["input_queue"]["total_dropped"] == 1
    assert engine.status()["input_queue"] == "full"
    gate.open()
    assert [held.result(), *(future.result() for future in kept)] == [None, 0, 1]


def test_blocked_submit_goes_on_when_there_is_capacity(make_engine, gate):
    engine = make_engine(input_capacity=1)
    held = engine.submit(jobs.hold, gate.started, gate.path)
    gate.wait()
    first = engine.submit(jobs.echo, 1)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        second = threads.submit(engine.submit, jobs.echo, 2)
        eventually(lambda: engine.waiting_submitters)
        assert not second.done()
        gate.open()
        assert second.result().result() == 2
    assert [held.result(), first.result()] == [None, 1]


async def test_full_input_does_not_block_the_event_loop(make_engine, gate):
    engine = make_engine(input_capacity=1)
    held = asyncio.create_task(engine.run(jobs.hold, gate.started, gate.path))
    await asyncio.to_thread(gate.wait)
    others = [asyncio.create_task(engine.run(jobs.echo, number)) for number in range(5)]
    await asyncio.to_thread(eventually, lambda: engine.waiting_submitters)
    gate.open()
    assert await asyncio.gather(held, *others) == [None, 0, 1, 2, 3, 4]


def test_a_closed_engine_takes_nothing():
    engine = Engine(cpu_workers=1)
    assert engine.close().drained
    with pytest.raises(Unavailable):
        engine.submit(jobs.echo)
    assert engine.close().drained
