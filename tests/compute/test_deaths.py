"""Workers die, stop, age and grow; the work goes on, and only what had started is charged."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.compute import jobs
from tests.compute.conftest import eventually, is_alive
from ulak.compute import Crashed, TaskType
from ulak.errors import Unavailable


def worker_pids(engine):
    return {name: worker["pid"] for name, worker in engine.metrics()["workers"].items()}


def test_work_of_a_killed_worker_runs_again(engine, tmp_path):
    assert engine.submit(jobs.crash_once, str(tmp_path / "marker")).result(30) == "second time"


def test_waiting_work_is_not_charged_and_runs_once(make_engine, tmp_path):
    engine, log = make_engine(), str(tmp_path / "log")
    killer = engine.using(max_retries=2).submit(jobs.note_then, log, "killer", jobs.kill_self)
    others = [engine.using(max_retries=0).submit(jobs.append_line, log, str(number)) for number in range(50)]
    assert [future.result(30) for future in others] == [str(number) for number in range(50)]
    assert isinstance(killer.exception(30), Crashed)
    runs = Counter((tmp_path / "log").read_text().split())
    assert runs.pop("killer") == 3
    assert set(runs.values()) == {1}


def test_neighbours_of_a_killer_in_one_io_worker_are_found_innocent(make_engine, gates):
    engine = make_engine(io_threads=4)
    io = engine.using(task_type=TaskType.IO_BOUND, max_retries=1)
    held = [gates(str(number)) for number in range(3)]
    innocent = [io.submit(jobs.crash_or_hold, None, gate.started, gate.path) for gate in held]
    first = {gate.wait() for gate in held}
    assert len(first) == 1
    killer = io.submit(jobs.crash_or_hold, jobs.kill_self, None, None)
    for gate in held:  # one after another: suspects run alone
        eventually(lambda gate=gate: gate.wait() not in first)
        gate.open()
    assert [future.result(30) for future in innocent] == ["innocent"] * 3
    assert isinstance(killer.exception(30), Crashed)


def test_idle_worker_that_dies_is_replaced(make_engine):
    engine = make_engine()
    old = engine.submit(jobs.pid).result(30)
    os.kill(old, signal.SIGKILL)
    eventually(lambda: worker_pids(engine).get("cpu-0") not in (old, None))
    assert engine.submit(jobs.pid).result(30) != old
    assert engine.metrics()["process_pool"]["restarts"] == 1


def test_stopped_worker_is_replaced_and_its_task_runs_elsewhere(make_engine, gate):
    engine = make_engine(stopped_seconds=0.05)
    future = engine.submit(jobs.hold, gate.started, gate.path, "done")
    old = gate.wait()
    os.kill(old, signal.SIGSTOP)
    eventually(lambda: gate.wait() != old)
    gate.open()
    assert future.result(30) == "done"
    assert not is_alive(old)


def test_stopped_worker_that_goes_on_in_time_is_kept(make_engine, gate):
    engine = make_engine(stopped_seconds=3600)
    future = engine.submit(jobs.hold, gate.started, gate.path, "done")
    pid = gate.wait()
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: engine.status()["cpu-0"] == "stopped")
    os.kill(pid, signal.SIGCONT)
    eventually(lambda: engine.status()["cpu-0"] == "busy")
    gate.open()
    assert future.result(30) == "done"
    assert engine.submit(jobs.pid).result(30) == pid


def test_engine_survives_the_death_of_its_forkserver(make_engine, gate):
    engine = make_engine()
    future = engine.submit(jobs.hold, gate.started, gate.path, "done")
    old = gate.wait()
    os.kill(int(Path(f"/proc/{old}/stat").read_text().rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
    eventually(lambda: gate.wait() != old)
    gate.open()
    assert future.result(30) == "done"


def test_nothing_outlives_a_killed_parent(tmp_path):
    os.mkfifo(tmp_path / "gate")
    code = f"from tests.compute import jobs; jobs.start_engine_and_hold({str(tmp_path)!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as parent:
        try:
            started = tmp_path / "started"
            eventually(lambda: started.exists() and started.stat().st_size)
            eventually(lambda: len(descendants(parent.pid)) >= 4)  # forkserver, workers, spare, the task's child
            family = descendants(parent.pid)
        finally:
            parent.kill()  # or whatever went wrong above would be waited for without end
    eventually(lambda: not any(is_alive(pid) for pid in family))


def descendants(pid):
    table: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            table.setdefault(parent, []).append(int(entry.name))
    found, look = [], [pid]
    while look:
        children = table.get(look.pop(), [])
        found += children
        look += children
    return found


def test_worker_is_recycled_after_its_tasks_without_losing_any(make_engine):
    engine = make_engine(recycle_tasks=5)
    pids = [engine.submit(jobs.pid).result(30) for _ in range(30)]
    assert len(set(pids)) > 2
    assert max(Counter(pids).values()) < 15
    assert engine.metrics()["process_pool"]["restarts"] == 0
    assert sorted(engine.map(jobs.echo, range(100), chunk_size=1)) == list(range(100))


@pytest.mark.parametrize("limit", [{"recycle_seconds": 0.01}, {"recycle_bytes": 60 << 20}])
def test_worker_is_recycled_by_age_or_memory(make_engine, limit):
    engine = make_engine(**limit)
    old = engine.submit(jobs.grow, 80).result(30)
    eventually(lambda: engine.submit(jobs.pid).result(30) != old)
    eventually(lambda: not is_alive(old))


def test_start_that_always_fails_does_not_spin(make_engine, monkeypatch):
    engine = make_engine(spare_workers=1)
    engine.submit(jobs.echo).result(30)
    for _ in range(12):
        eventually(lambda: worker_pids(engine).get("cpu-0") or engine.status()["process_pool"] == "paused")
        if engine.status()["process_pool"] == "paused":
            break
        for pid in filter(None, worker_pids(engine).values()):
            os.kill(pid, signal.SIGKILL)
            eventually(lambda pid=pid: pid not in worker_pids(engine).values())
    assert engine.submit(jobs.echo, 1).result(30) == 1


def test_deaths_at_work_do_not_make_the_engine_pause(make_engine):
    engine = make_engine()
    for _ in range(10):
        assert isinstance(engine.using(max_retries=0).submit(jobs.kill_self).exception(30), Crashed)
        assert engine.status()["process_pool"] == "running"


NOTED = """
import os, signal
from pathlib import Path

with Path(__file__).with_name("loaded").open("a") as notes:
    notes.write(f"{os.getpid()}\\n")
if Path(__file__).with_name("deadly").exists():
    os.kill(os.getpid(), signal.SIGKILL)

def pid():
    return os.getpid()
"""


@pytest.fixture
def noted(tmp_path, monkeypatch):
    """A module that notes who loads it."""
    (tmp_path / "noted_by_its_loaders.py").write_text(NOTED)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("noted_by_its_loaders")
    del sys.modules["noted_by_its_loaders"]


def loaders(tmp_path):
    return list(map(int, (tmp_path / "loaded").read_text().split()))


def test_a_spare_has_loaded_what_the_others_run_before_it_is_needed(make_engine, noted, tmp_path):
    engine = make_engine()
    worker = engine.submit(noted.pid).result(30)
    assert loaders(tmp_path) == [os.getpid(), worker]
    spare = eventually(lambda: loaders(tmp_path)[2:])[0]
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: worker not in worker_pids(engine).values())
    assert engine.submit(noted.pid).result(30) == spare
    assert loaders(tmp_path).count(spare) == 1


def test_what_a_spare_dies_of_is_not_loaded_ahead_again(make_engine, noted, tmp_path):
    engine = make_engine()
    engine.submit(noted.pid).result(30)
    (tmp_path / "deadly").touch()
    eventually(lambda: engine.metrics()["process_pool"]["restarts"])
    (died,) = loaders(tmp_path)[2:]
    assert engine.submit(jobs.echo, 1).result(30) == 1
    assert loaders(tmp_path)[2:] == [died]


def test_cpu_workers_stand_back_for_the_rest(make_engine):
    engine, own = make_engine(cpu_nice=3), os.nice(0)
    assert engine.submit(os.nice, 0).result(30) == min(own + 3, 19)
    assert engine.using(task_type=TaskType.IO_BOUND).submit(os.nice, 0).result(30) == own


def test_a_task_that_closes_every_descriptor_is_charged_and_the_engine_goes_on(make_engine):
    engine = make_engine(kill_grace_seconds=0.05)
    assert isinstance(engine.using(max_retries=0).submit(jobs.close_everything).exception(30), Crashed)
    assert engine.submit(jobs.echo, 1).result(30) == 1


def test_a_task_that_writes_into_our_pipe_is_charged_and_the_engine_goes_on(make_engine):
    engine = make_engine()
    error = engine.using(max_retries=0).submit(jobs.scribble).exception(30)
    assert isinstance(error, Crashed)
    assert "wrote into the engine's pipe" in str(error)
    assert "memory" not in str(error)
    assert engine.submit(jobs.echo, 1).result(30) == 1


def test_a_fork_of_the_parent_cannot_use_its_workers(make_engine):
    engine = make_engine()
    engine.submit(jobs.echo).result(30)
    child = os.fork()
    if child == 0:
        try:
            engine.submit(jobs.echo)
        except Unavailable:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert engine.submit(jobs.echo, 1).result(30) == 1


def test_deadlines_of_finished_work_do_not_pile_up(make_engine):
    engine = make_engine()
    hourly = engine.using(timeout_seconds=3600)
    for future in [hourly.submit(jobs.echo, number) for number in range(5000)]:
        future.result(30)
    assert len(engine._backend.timers) < 4000
