"""The result cache: bounds, spilling, the same answer twice, and the difference between unknown and expired."""

from __future__ import annotations

import socket
from pickle import dumps

import pytest

from ulak.compute import EngineOptions, Expired, TaskStatus
from ulak.compute.engine.results import Results
from ulak.compute.engine.spill import Spill
from ulak.compute.engine.work import Outcome
from ulak.compute.worker.framing import Frames, pack
from ulak.errors import NotFound


@pytest.fixture
def make(clock, tmp_path):
    made = []

    def results(**changes):
        made.append(Results(EngineOptions(spill_directory=str(tmp_path), **changes), clock))
        return made[-1]

    yield results
    for one in made:
        one.close()


def success(value):
    return Outcome(TaskStatus.SUCCESS, dumps(value))


def test_asking_twice_gives_equal_answers_that_do_not_share(make):
    results = make()
    results.put("a", success([1]))
    first = results.get("a")
    first.data.append(2)
    assert results.get("a").data == [1]
    assert results.metrics()["total_get"] == 2


def test_unknown_and_expired_are_different(make, clock):
    results = make(result_seconds=10)
    results.put("a", success(1))
    clock.advance(11)
    with pytest.raises(Expired, match="task a"):
        results.get("a")
    with pytest.raises(NotFound, match="never submitted") as unknown:
        results.get("b")
    assert not isinstance(unknown.value, Expired)


def test_too_many_results_go_to_disk_and_are_still_answered(make):
    results = make(result_count=3)
    for number in range(10):
        results.put(str(number), success(number))
    assert [results.get(str(number)).data for number in range(10)] == list(range(10))
    assert results.metrics()["in_memory"] == 3
    assert results.metrics()["spilled"] == 7


def test_too_many_bytes_go_to_disk(make):
    results = make(result_bytes=10_000)
    for number in range(5):
        results.put(str(number), success(b"x" * 4000))
    assert results.metrics()["bytes"] <= 10_000
    assert all(len(results.get(str(number)).data) == 4000 for number in range(5))


def test_disk_is_bounded_too_and_the_oldest_expire(make):
    results = make(result_count=1, spill_bytes=8000)
    for number in range(40):
        results.put(str(number), success(b"x" * 900))
    with pytest.raises(Expired):
        results.get("0")
    assert results.get("38").is_success


def test_without_disk_results_are_dropped(make):
    results = make(result_count=1, spill_bytes=0)
    results.put("a", success(1))
    results.put("b", success(2))
    with pytest.raises(Expired):
        results.get("a")


def test_spilled_results_expire_by_age(make, clock):
    results = make(result_count=1, result_seconds=10)
    results.put("a", success(1))
    results.put("b", success(2))
    clock.advance(11)
    with pytest.raises(Expired):
        results.get("a")


def test_closing_leaves_nothing_on_disk(tmp_path):
    spill = Spill(1000, str(tmp_path))
    spill.put("a", b"x" * 100)
    spill.close()
    assert list(tmp_path.iterdir()) == []


def test_forgotten_spilled_results_free_their_segment(tmp_path):
    spill = Spill(800, str(tmp_path))
    for number in range(6):
        spill.put(str(number), b"x" * 100)
    for number in range(5):
        spill.forget(str(number))
    assert len(list(next(tmp_path.iterdir()).iterdir())) == 1
    assert spill.get("5") == b"x" * 100
    spill.close()


def test_result_that_cannot_be_loaded_is_a_failure_of_that_task_alone(make):
    results = make()
    results.put("a", Outcome(TaskStatus.SUCCESS, b"not a pickle"))
    result = results.get("a")
    assert result.status is TaskStatus.FAILED
    assert "cannot be unpickled" in result.error


def test_frames_come_out_whole_however_they_were_cut():
    messages = [[1, b"x" * 1000], "two", None]
    stream, out = b"".join(pack(message) for message in messages), []
    near, far = socket.socketpair()
    with near, far:
        frames = Frames(far, lambda message, _: message)
        for start in range(0, len(stream), 7):
            near.send(stream[start : start + 7])
            out += frames.receive(far)
        assert out == messages
        near.send(stream)
        assert frames.receive(far) == messages
        near.close()
        assert frames.receive(far) is None
