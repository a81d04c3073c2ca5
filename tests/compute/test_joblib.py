"""joblib on our workers: one engine for a process, and an end at once when joblib gives up."""

from __future__ import annotations

import multiprocessing
import os
import threading
from time import monotonic

import pytest

from tests.compute import jobs
from tests.compute.conftest import PATIENCE_SECONDS, eventually, is_alive
from tests.compute.test_deaths import descendants

LINGER_SECONDS = 60  # as long as jobs.linger_long takes

joblib = pytest.importorskip("joblib")


@pytest.fixture(autouse=True)
def backend():
    from ulak.compute.engine.joblib_backend import register

    register()
    with joblib.parallel_config(backend="ulak", n_jobs=2):
        yield


def test_every_call_uses_the_same_workers():
    pids = set()
    for _ in range(20):
        pids.update(joblib.Parallel()(joblib.delayed(jobs.pid_of)(n) for n in range(4)))
    assert len(pids) <= 2
    assert sum(thread.name == "ulak-compute" for thread in threading.enumerate()) <= 2


def test_another_number_of_workers_replaces_them():
    first = set(joblib.Parallel()(joblib.delayed(jobs.pid_of)(n) for n in range(8)))
    second = set(joblib.Parallel(n_jobs=1, backend="ulak")(joblib.delayed(jobs.pid_of)(n) for n in range(8)))
    assert first.isdisjoint(second)
    eventually(lambda: not any(map(is_alive, first)))


def test_a_call_under_way_keeps_its_workers_when_another_wants_a_different_number(gates):
    """It still has tasks to submit, which the workers that it began with take."""
    held = [gates("one"), gates("two")]
    tasks = [joblib.delayed(jobs.hold)(gate.started, gate.path) for gate in held]
    tasks += [joblib.delayed(jobs.add)(n, 1) for n in range(20)]
    answer = []
    parallel = joblib.Parallel(n_jobs=2, backend="ulak", batch_size=1)
    under_way = threading.Thread(target=lambda: answer.extend(parallel(tasks)), daemon=True)
    under_way.start()
    for gate in held:
        gate.wait()
    assert joblib.Parallel(n_jobs=1, backend="ulak")([joblib.delayed(jobs.add)(1, 1)]) == [2]
    for gate in held:
        gate.open()
    under_way.join(PATIENCE_SECONDS)
    assert answer[2:] == list(range(1, 21))


def test_a_timeout_ends_what_runs():
    began = monotonic()
    with pytest.raises((TimeoutError, multiprocessing.TimeoutError)):  # which one depends on joblib's release
        joblib.Parallel(timeout=0.3)(joblib.delayed(jobs.linger)(LINGER_SECONDS) for _ in range(8))
    assert monotonic() - began < LINGER_SECONDS  # nobody waited for one of them
    assert joblib.Parallel()(joblib.delayed(jobs.add)(n, 1) for n in range(10)) == list(range(1, 11))


def test_a_failing_task_ends_the_long_ones_beside_it(tmp_path):
    began = monotonic()
    with pytest.raises(ValueError, match="no"):
        joblib.Parallel()(joblib.delayed(function)() for function in (jobs.fail, jobs.linger_long, jobs.linger_long))
    assert monotonic() - began < LINGER_SECONDS  # nobody waited for one of them
    assert descendants(os.getpid())
