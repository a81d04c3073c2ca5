"""Workers that are replaced on purpose, or that never get ready: how many tasks one runs, and who hears of it."""

from __future__ import annotations

import os
import signal
from collections import Counter
from concurrent.futures.process import BrokenProcessPool

import pytest

from tests.compute import jobs
from tests.compute.conftest import eventually
from ulak.compute import Crashed, Executor


@pytest.mark.parametrize("workers", [1, 2])
def test_a_child_never_runs_more_tasks_than_it_may(workers):
    with Executor(workers, max_tasks_per_child=3) as executor:
        counts = Counter(executor.map(jobs.pid_of, range(300)))
    assert sum(counts.values()) == 300
    assert max(counts.values()) <= 3


def test_map_of_the_engine_counts_calls_not_chunks(make_engine):
    engine = make_engine(recycle_tasks=2)
    assert max(Counter(engine.map(jobs.pid_of, range(40))).values()) <= 2


def test_an_initializer_that_ends_its_process_breaks_the_pool_at_once():
    executor = Executor(2, initializer=jobs.exit_c)
    future = executor.submit(pow, 2, 8)
    assert isinstance(future.exception(10), BrokenProcessPool)
    assert "exited with code 3" in str(future.exception())
    with pytest.raises(BrokenProcessPool):
        executor.submit(pow, 2, 8)
    executor.shutdown()


def test_a_worker_that_was_stopped_is_not_called_out_of_memory(make_engine, gate):
    engine = make_engine(stopped_seconds=0.05)
    future = engine.using(max_retries=0).submit(jobs.hold, gate.started, gate.path)
    os.kill(gate.wait(), signal.SIGSTOP)
    error = future.exception(30)
    assert isinstance(error, Crashed)
    assert "SIGSTOP" in str(error)
    assert "memory" not in str(error)


def test_a_rerun_after_a_crash_counts_as_a_retry(make_engine, tmp_path):
    engine = make_engine()
    assert engine.submit(jobs.crash_once, str(tmp_path / "marker")).result(30) == "second time"
    eventually(lambda: engine.metrics()["process_pool"]["total_retried"] == 1)
