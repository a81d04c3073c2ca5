"""The end of an engine is bounded and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.compute import jobs
from tests.compute.conftest import eventually, is_alive
from tests.compute.test_deaths import descendants
from ulak.compute import Engine, Task, TaskStatus


def test_leaving_waits_for_what_is_unfinished():
    with Engine(cpu_workers=2) as engine:
        futures = [engine.submit(jobs.echo, number) for number in range(500)]
    assert [future.result(0) for future in futures] == list(range(500))
    assert not descendants(os.getpid())


def test_an_engine_tells_that_it_is_closed():
    engine = Engine(cpu_workers=1)
    assert engine.submit(jobs.add, 1, 2).result(30) == 3
    engine.close()
    status = engine.status()
    assert (status["input_queue"], status["process_pool"]) == ("closed", "closed")


def test_what_does_not_end_in_time_is_cancelled(gate):
    engine = Engine(cpu_workers=1)
    running = engine.submit(jobs.hold, gate.started, gate.path)
    waiting = [engine.submit(jobs.echo) for _ in range(5)]
    pid = gate.wait()
    report = engine.close(0)
    assert (report.drained, report.cancelled, report.terminated) == (False, 5, 1)
    assert running.cancelled()
    assert all(future.cancelled() for future in waiting)
    assert not is_alive(pid)


def test_even_a_deaf_task_is_ended(gate):
    engine = Engine(cpu_workers=1, kill_grace_seconds=60)
    engine.submit(jobs.hold_deaf, gate.started, gate.path)
    pid = gate.wait()
    assert engine.close(0).killed >= 1
    eventually(lambda: not is_alive(pid))


def test_a_stopped_worker_does_not_hold_up_the_end(gate):
    engine = Engine(cpu_workers=1)
    engine.submit(jobs.hold, gate.started, gate.path)
    pid = gate.wait()
    os.kill(pid, signal.SIGSTOP)
    engine.close(0)
    eventually(lambda: not is_alive(pid))


def test_waiting_for_a_result_ends_with_the_engine(make_engine, script, gate):
    engine = make_engine()
    name = script("held.py", "from tests.compute import jobs\nresult = jobs.hold(params['started'], params['gate'])\n")
    task_id = engine.submit_task(Task.create(name, {"started": gate.started, "gate": gate.path}))
    gate.wait()
    engine.close(0)
    assert engine.get_result(task_id, 30).status is TaskStatus.CANCELLED


@pytest.mark.parametrize("ending", ["pass", "engine.submit(jobs.echo)", "del engine"])
def test_a_forgotten_engine_leaves_nothing_behind(ending):
    code = (
        "import os\nfrom ulak.compute import Engine\nfrom tests.compute import jobs\nengine = Engine(cpu_workers=1)\n"
        f"print(engine.submit(jobs.pid).result())\n{ending}\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    eventually(lambda: not is_alive(int(done.stdout)))


def test_a_dropped_engine_finishes_its_work_and_leaves():
    engine = Engine(cpu_workers=1)
    pid, future = engine.submit(jobs.pid).result(30), engine.submit(jobs.echo, 5)
    del engine
    assert future.result(30) == 5
    eventually(lambda: not is_alive(pid))


def test_main_module_functions_work_and_unguarded_engines_are_refused(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    text = (
        "from ulak.compute import Engine\ndef double(x):\n    return x * 2\n"
        "{guard}engine = Engine(cpu_workers=1)\n{rest}"
    )
    program = tmp_path / "program.py"
    for guard, indent, expected in (("if __name__ == '__main__':\n    ", "    ", "14"), ("", "", "__main__")):
        rest = "".join(
            f"{indent}{line}\n"
            for line in ("future = engine.submit(double, 7)", "print(future.exception() or future.result())")
        )
        program.write_text(text.format(guard=guard, rest=rest))
        done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)
        assert expected in done.stdout
