"""A caller that listens to its worker itself: whatever else happens to its task reaches it too."""

from __future__ import annotations

import threading

import pytest

from tests.compute import jobs
from tests.compute.conftest import eventually


def in_thread(call):
    """Run beside us; answers a function that waits for what came of it."""
    outcome = []

    def run():
        try:
            outcome.append(call())
        except BaseException as error:  # noqa: BLE001 - handed to the test
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait():
        thread.join(30)
        assert outcome, "the caller still waits"
        return outcome[0]

    return wait


def attended(engine):
    return [hand for hand in engine._backend.fleet.workers() if hand.attended is not None]


def warm(make_engine):
    """Only work that an idle worker gets at once can be listened to."""
    engine = make_engine()
    assert engine.submit(jobs.echo, 0).result(30) == 0
    return engine


def held(engine, gate):
    future = engine.submit(jobs.hold, gate.started, gate.path, "value")
    waiting = in_thread(future.result)
    gate.wait()
    eventually(lambda: attended(engine))
    return future, waiting


def test_the_waiting_caller_hears_its_worker_itself(make_engine, gate):
    engine = warm(make_engine)
    _, waiting = held(engine, gate)
    gate.open()
    assert waiting() == "value"
    assert attended(engine) == []
    assert engine.submit(jobs.echo, 1).result(30) == 1


def test_a_cancel_reaches_the_listening_caller(make_engine, gate):
    engine = warm(make_engine)
    future, waiting = held(engine, gate)
    assert engine.cancel(future)
    assert type(waiting()).__name__ == "CancelledError"
    assert engine.submit(jobs.echo, 1).result(30) == 1


def test_work_of_others_at_the_same_worker_is_heard_too(make_engine, gate):
    engine = warm(make_engine)
    _, waiting = held(engine, gate)
    others = [engine.submit(jobs.echo, number) for number in range(50)]
    gate.open()
    assert [future.result(30) for future in others] == list(range(50))
    assert waiting() == "value"


def test_a_death_while_the_caller_listens_is_retried(make_engine, tmp_path):
    engine = warm(make_engine)
    assert engine.submit(jobs.crash_once, str(tmp_path / "marker")).result(30) == "second time"


def test_a_caller_that_gives_up_leaves_the_worker_to_the_engine(make_engine, gate):
    engine = warm(make_engine)
    future = engine.submit(jobs.hold, gate.started, gate.path, "value")
    gate.wait()
    with pytest.raises(TimeoutError):
        future.result(0.001)
    assert attended(engine) == []
    gate.open()
    eventually(future.done)
    assert future.result() == "value"


@pytest.mark.parametrize("moment", ["take_reports", "_tell"])
def test_an_interrupt_while_listening_loses_neither_task_nor_worker(make_engine, monkeypatch, gate, moment):
    engine = warm(make_engine)
    attendant = engine._backend._attendant
    owner, name = (engine._backend, moment) if moment == "take_reports" else (attendant, moment)
    real, me = getattr(owner, name), []

    def interrupted(*args):
        if me and threading.get_ident() == me.pop():
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(owner, name, interrupted)
    future = engine.submit(jobs.hold, gate.started, gate.path, "value")

    def wait():
        me.append(threading.get_ident())
        return future.result()

    waiting = in_thread(wait)
    gate.wait()
    eventually(lambda: attended(engine))
    in_thread(lambda: [gate.open(), gate.open()])  # the task may run again
    assert isinstance(waiting(), KeyboardInterrupt)
    assert future.result(30) == "value"
    assert engine.submit(jobs.echo, 1).result(30) == 1
