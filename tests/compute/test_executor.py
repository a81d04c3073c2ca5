"""The Executor face: what the stdlib promises, and what asyncio, Dask and joblib do with it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from concurrent.futures.process import BrokenProcessPool

import pytest

from tests.compute import jobs
from tests.compute.conftest import eventually
from ulak.compute import Executor, Future


@pytest.fixture(scope="module")
def executor():
    with Executor(max_workers=2) as executor:
        yield executor


def test_is_an_executor_with_real_futures(executor):
    assert isinstance(executor, concurrent.futures.Executor)
    future = executor.submit(jobs.add, 1, right=2)
    assert isinstance(future, concurrent.futures.Future)
    assert future.result(30) == 3
    assert future.done()
    assert not future.running()
    assert not future.cancel()
    assert future.exception() is None


def test_wait_and_as_completed(executor):
    futures = [executor.submit(jobs.echo, number) for number in range(50)]
    done, pending = concurrent.futures.wait(futures, timeout=30)
    assert (len(done), len(pending)) == (50, 0)
    futures = [executor.submit(jobs.echo, number) for number in range(50)]
    assert sorted(future.result() for future in concurrent.futures.as_completed(futures, 30)) == list(range(50))
    mixed = [executor.submit(jobs.echo), executor.submit(jobs.fail)]
    done, _ = concurrent.futures.wait(mixed, timeout=30, return_when=concurrent.futures.FIRST_EXCEPTION)
    assert mixed[1] in done


def test_wait_reports_what_is_not_over(executor, gate):
    held = executor.submit(jobs.hold, gate.started, gate.path)
    gate.wait()
    done, pending = concurrent.futures.wait([held], timeout=0)
    assert (done, pending) == (set(), {held})
    assert held.running()
    with pytest.raises(TimeoutError):
        held.result(0)
    with pytest.raises(TimeoutError):
        held.exception(0)
    gate.open()
    assert held.result(30) is None


def test_many_threads_can_wait_for_one_future(executor, gate):
    held = executor.submit(jobs.hold, gate.started, gate.path, 7)
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(held.result, 30) for _ in range(8)]
        gate.wait()
        gate.open()
        assert [one.result(30) for one in waiting] == [7] * 8


def test_callbacks_are_called_whenever_they_are_added(executor, gate):
    called, both = [], threading.Event()
    held = executor.submit(jobs.hold, gate.started, gate.path)
    held.add_done_callback(called.append)
    gate.wait()
    gate.open()
    held.result(30)
    held.add_done_callback(lambda future: both.set())
    assert both.wait(30)
    eventually(lambda: called == [held])


def test_a_failing_callback_does_no_harm(executor, caplog):
    future = executor.submit(jobs.echo, 1)
    future.add_done_callback(jobs.fail)
    assert future.result(30) == 1
    assert executor.submit(jobs.echo, 2).result(30) == 2


def test_a_callback_may_submit(executor):
    chained, done = [], threading.Event()

    def more(future):
        chained.append(executor.submit(jobs.echo, future.result() + 1))
        done.set()

    executor.submit(jobs.echo, 1).add_done_callback(more)
    assert done.wait(30)
    assert chained[0].result(30) == 2


@pytest.mark.parametrize("chunksize", [1, 3, 100])
def test_map(executor, chunksize):
    assert list(executor.map(jobs.add, range(20), range(20), chunksize=chunksize)) == [2 * n for n in range(20)]
    values = executor.map(jobs.add, [1, "two", 3], chunksize=chunksize)
    assert next(values) == 1
    with pytest.raises(TypeError):
        next(values)


def test_map_times_out(gate):
    with Executor(1) as executor:
        values = executor.map(jobs.hold, [gate.started], [gate.path], timeout=0.05, chunksize=2)
        with pytest.raises(TimeoutError):
            next(values)
        gate.wait()
        gate.open()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="max_workers"):
        Executor(0)
    with pytest.raises(TypeError, match="initializer"):
        Executor(1, initializer=3)


def test_initializer_runs_in_every_worker():
    with Executor(2, initializer=jobs.prepare, initargs=("ULAK_TEST", "ready"), max_tasks_per_child=2) as executor:
        assert list(executor.map(jobs.environment, ["ULAK_TEST"] * 12)) == ["ready"] * 12


def test_failing_initializer_breaks_the_pool():
    with Executor(1, initializer=jobs.fail) as executor:
        future = executor.submit(jobs.echo)
        assert isinstance(future.exception(30), BrokenProcessPool)
        with pytest.raises(BrokenProcessPool):
            eventually(lambda: executor.submit(jobs.echo) and None)


def test_worker_is_replaced_after_max_tasks_per_child():
    with Executor(1, max_tasks_per_child=2) as executor:
        futures = [executor.submit(jobs.pid) for _ in range(10)]
        assert len({future.result(30) for future in futures}) > 1


def test_shutdown_waits_and_refuses():
    executor = Executor(2)
    futures = [executor.submit(jobs.echo, number) for number in range(100)]
    executor.shutdown()
    assert [future.result(0) for future in futures] == list(range(100))
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(jobs.echo)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.map(jobs.echo, [1], chunksize=2)
    executor.shutdown()


def test_shutdown_without_waiting_still_finishes(gate):
    executor = Executor(1)
    held, later = executor.submit(jobs.hold, gate.started, gate.path, 1), executor.submit(jobs.echo, 2)
    executor.shutdown(wait=False)
    gate.wait()
    gate.open()
    assert (held.result(30), later.result(30)) == (1, 2)
    executor.shutdown()


def test_shutdown_can_cancel_what_waits(gate):
    executor = Executor(1)
    held, later = executor.submit(jobs.hold, gate.started, gate.path, 1), executor.submit(jobs.echo, 2)
    gate.wait()
    executor.shutdown(wait=False, cancel_futures=True)
    assert later.cancelled()
    gate.open()
    assert held.result(30) == 1
    executor.shutdown()


def test_death_of_a_worker_is_not_the_end_of_the_pool(tmp_path):
    with Executor(1) as executor:
        first = executor.submit(jobs.crash_once, str(tmp_path / "marker"))
        others = [executor.submit(jobs.echo, number) for number in range(40)]
        assert first.result(30) == "second time"
        assert [future.result(30) for future in others] == list(range(40))


async def test_asyncio_uses_it(executor):
    loop = asyncio.get_running_loop()
    values = await asyncio.gather(*(loop.run_in_executor(executor, jobs.echo, number) for number in range(20)))
    assert values == list(range(20))
    assert await loop.run_in_executor(executor, os.getpid) != os.getpid()


def test_dask_uses_it(executor):
    local = pytest.importorskip("dask.local", reason="Dask is not installed")
    graph = {"a": 1, "b": (jobs.add, "a", 10), "c": (jobs.add, "b", 100)}
    assert local.get_async(executor.submit, executor._max_workers, graph, "c") == 111


def test_joblib_uses_it(executor):
    joblib = pytest.importorskip("joblib")
    from ulak.compute.engine.joblib_backend import register

    register()
    with joblib.parallel_config(backend="ulak", n_jobs=2, executor=executor):
        assert joblib.Parallel()(joblib.delayed(jobs.add)(n, 1) for n in range(100)) == list(range(1, 101))
        with pytest.raises(ValueError, match="no"):
            joblib.Parallel()(joblib.delayed(jobs.fail)() for _ in range(3))


def test_future_settled_before_anybody_looked_needs_no_condition():
    future = Future()
    future.settle(5)
    assert "_parked" not in vars(future)
    assert (future.result(), future.exception(), future.done()) == (5, None, True)
    assert concurrent.futures.wait([future], 0).done == {future}


def test_future_settled_with_an_error_raises_it_every_time():
    future = Future()
    future.settle(None, ValueError("no"))
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            future.result()
