"""The promises of every backend: the same suite on our own workers and on a Ray cluster."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import sys
import threading

import numpy as np
import pytest

from tests.compute import jobs
from tests.compute.conftest import eventually
from ulak.compute import Crashed, Engine, EngineOptions, Task, TaskStatus, TaskType, TimedOut, UnpicklableResult
from ulak.compute.ray.backend import RayBackend
from ulak.errors import Duplicate, Misconfigured, NotFound, Refused, Unavailable

HAS_RAY = importlib.util.find_spec("ray") is not None
RAY = pytest.param(
    "ray",
    marks=[pytest.mark.slow, pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed: pip install ulak[ray]")],
)
WAIT = 60


def settings_for(root, **changes):
    return EngineOptions(**{"cpu_workers": 2, "script_root": str(root), "retry_seconds": 0.001, **changes})


def engine_on(backend, settings):
    if backend == "local":
        return Engine(settings)
    return Engine(settings, backend=RayBackend(settings))


@pytest.fixture(scope="module", params=["local", RAY])
def backend(request):
    if request.param == "ray":
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield request.param
        ray.shutdown()
    else:
        yield request.param


@pytest.fixture(scope="module")
def engine(backend, root):
    with engine_on(backend, settings_for(root)) as engine:
        yield engine


def test_a_call_answers_with_its_value(engine):
    assert engine.submit(jobs.add, 1, right=2).result(WAIT) == 3


@pytest.mark.parametrize("backend", [RAY], indirect=True)
def test_functions_of_the_main_module_go_to_a_cluster_whole(engine, monkeypatch):
    def triple(number):
        return 3 * number

    triple.__module__, triple.__qualname__ = "__main__", "triple"
    monkeypatch.setattr(sys.modules["__main__"], "triple", triple, raising=False)
    assert engine.submit(triple, 2).result(WAIT) == 6
    assert list(engine.map(triple, [1, 2])) == [3, 6]


@pytest.mark.parametrize("task_type", TaskType)
def test_scripts_of_both_classes_print_and_return(engine, script, task_type):
    name = script("chatty.py", "print('hello')\nprint(params['n'], flush=True)\nresult = params['n']\n")
    tasks = [Task.create(name, {"n": n}, task_type, 0) for n in range(50)]
    results = [engine.get_result(task_id, WAIT) for task_id in engine.submit_tasks(tasks)]
    assert [(result.data, result.stdout) for result in results] == [(n, f"hello\n{n}\n") for n in range(50)]


def test_a_failing_script_shows_its_own_lines(engine, script):
    name = script("boom.py", "def run(params):\n    helper()\n\ndef helper():\n    raise ValueError('boom')\n")
    result = engine.get_result(engine.submit_task(Task.create(name, max_retries=0)), WAIT)
    assert result.error == "ValueError: boom"
    assert "raise ValueError('boom')" in result.traceback
    assert "line 2, in run" in result.traceback
    assert "ulak" not in result.traceback.replace("__ulak_script__", "")


def test_a_script_that_does_not_compile_says_where(engine, script):
    result = engine.get_result(engine.submit_task(Task.create(script("bad.py", "x = (\n"), max_retries=0)), WAIT)
    assert "bad.py" in result.traceback


def test_large_arrays_come_and_go(engine):
    array = np.arange(200_000.0)
    assert np.array_equal(engine.submit(jobs.echo, array).result(WAIT), array)


def test_lambdas_run(engine):
    assert engine.submit(lambda x: x + 1, 1).result(WAIT) == 2


def test_an_exception_comes_back(engine):
    with pytest.raises(ValueError, match="dear me"):
        engine.submit(jobs.fail, "dear me").result(WAIT)


def test_a_result_that_cannot_be_sent_is_named(engine):
    with pytest.raises(UnpicklableResult):
        engine.submit(jobs.a_lock).result(WAIT)


def test_many_calls_come_back_each_once_and_in_order(engine):
    futures = [engine.submit(jobs.echo, number) for number in range(300)]
    assert [future.result(WAIT) for future in futures] == list(range(300))
    assert list(engine.map(jobs.echo, range(1000))) == list(range(1000))


def test_io_calls_run_side_by_side(engine, tmp_path):
    io = engine.using(task_type=TaskType.IO_BOUND)
    assert sorted(future.result(WAIT) for future in [io.submit(jobs.echo, n) for n in range(20)]) == list(range(20))


def test_a_script_has_a_result_with_its_output(engine, script):
    name = script("hello.py", "def main(params, context):\n    print('hi')\n    return context.attempt\n")
    task = Task.create(name, task_type=TaskType.CPU_BOUND)
    result = engine.get_result(engine.submit_task(task), WAIT)
    assert (result.status, result.data, result.stdout) == (TaskStatus.SUCCESS, 1, "hi\n")
    assert engine.get_result(task.id) == result
    with pytest.raises(Duplicate):
        engine.submit_task(task)
    with pytest.raises(NotFound):
        engine.get_result("nobody")


def test_a_failing_script_is_tried_as_often_as_it_says(engine, script):
    name = script(
        "late.py", "def main(p, c):\n    if c.attempt < 3:\n        raise ValueError('no')\n    return c.attempt\n"
    )
    luck = engine.get_result(engine.submit_task(Task.create(name, max_retries=2)), WAIT)
    assert (luck.data, luck.attempts) == (3, 3)
    none = engine.get_result(engine.submit_task(Task.create(name, max_retries=1)), WAIT)
    assert (none.status, none.attempts) == (TaskStatus.FAILED, 2)


def test_the_death_of_a_worker_is_an_attempt(engine, tmp_path):
    assert engine.submit(jobs.crash_once, str(tmp_path / "marker")).result(WAIT) == "second time"


def test_a_task_that_kills_its_workers_is_named_and_its_neighbours_are_not_blamed(engine):
    chosen = engine.using(max_retries=1)
    neighbours = [chosen.submit(jobs.echo, number) for number in range(20)]
    killer = chosen.submit(jobs.kill_self)
    neighbours += [chosen.submit(jobs.echo, number) for number in range(20, 40)]
    with pytest.raises(Crashed, match="ended its worker 2 times"):
        killer.result(WAIT)
    assert [future.result(WAIT) for future in neighbours] == list(range(40))


def test_a_task_that_runs_too_long_is_ended(engine, gate):
    late = engine.using(timeout_seconds=0.5).submit(jobs.hold, gate.started, gate.path)
    with pytest.raises(TimedOut):
        late.result(WAIT)
    assert engine.submit(jobs.echo, 1).result(WAIT) == 1


def test_a_running_task_is_cancelled(engine, gate):
    running = engine.submit(jobs.hold, gate.started, gate.path)
    gate.wait()
    assert engine.cancel(running)
    with pytest.raises(concurrent.futures.CancelledError):
        running.result(WAIT)
    assert not engine.cancel(running)
    assert engine.submit(jobs.echo, 1).result(WAIT) == 1


def test_what_waits_is_cancelled_and_never_runs(backend, root, tmp_path, gates):
    with engine_on(backend, settings_for(root)) as engine:
        holding = [gates(name) for name in ("one", "two")]
        held = [engine.submit(jobs.hold, gate.started, gate.path, n) for n, gate in enumerate(holding)]
        for gate in holding:
            gate.wait()
        waiting = engine.submit(jobs.touch, str(tmp_path / "touched"))
        assert waiting.cancel()
        for gate in holding:
            gate.open()
        assert [future.result(WAIT) for future in held] == [0, 1]
        assert engine.submit(jobs.echo, 1).result(WAIT) == 1
    assert not (tmp_path / "touched").exists()


def test_a_full_input_refuses_and_a_closed_one_too(backend, root, gates):
    engine = engine_on(backend, settings_for(root, input_capacity=1, when_full="reject"))
    holding = [gates(name) for name in ("one", "two")]
    for gate in holding:
        engine.submit(jobs.hold, gate.started, gate.path)
        gate.wait()
    waiting = engine.submit(jobs.echo, 1)
    with pytest.raises(Refused):
        engine.submit(jobs.echo, 2)
    assert engine.metrics()["input_queue"]["depth"]["cpu_bound"] == 1
    report = engine.close(0)
    assert (report.drained, report.cancelled, report.terminated) == (False, 1, 2)
    assert waiting.cancelled()
    with pytest.raises(Unavailable):
        engine.submit(jobs.echo, 3)


def test_the_books_balance(engine):
    engine.submit(jobs.echo, 1).result(WAIT)
    eventually(lambda: engine.metrics()["process_pool"]["unfinished"] == 0)
    metrics = engine.metrics()
    assert metrics["input_queue"]["total_put"] == metrics["process_pool"]["total_finished"]


@pytest.mark.skipif(HAS_RAY, reason="Ray is installed")
def test_without_ray_the_extra_is_named():
    with pytest.raises(Misconfigured, match=r"ulak\[ray\]"):
        RayBackend(EngineOptions())


def test_the_status_of_a_cluster_is_read_while_no_batch_comes_or_goes():
    backend = object.__new__(RayBackend)  # without a cluster

    class Batches(dict):
        def values(self):
            assert backend._lock._is_owned()
            return super().values()

    backend._lock, backend._batches, backend._queues = threading.Condition(), Batches(), {}
    backend._options, backend._slots, backend._closing, backend._over = EngineOptions(), 1, False, False
    assert backend.status()["thread_pool"] == "idle"
