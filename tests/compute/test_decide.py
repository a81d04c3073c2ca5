"""The dispatcher's decisions: who gets how much, how far ahead, who is charged; and the order of the queues."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak.compute import decide
from ulak.compute.engine.work import FINAL, Options, Work
from ulak.compute.pool.cpus import _cgroup_v1, _cgroup_v2, usable_cpus
from ulak.compute.pool.queues import TaskQueue


@dataclass
class FakeWorker:
    name: str
    load: int = 0
    free: int = 1
    idle_since: float = 0.0


def numbered(number, priority=2):
    return Work(number, (), Options(priority=priority), None, print)


def test_least_loaded_worker_comes_first_and_longest_idle_among_equals():
    workers = [FakeWorker("busy", 3), FakeWorker("fresh", 0, idle_since=9), FakeWorker("bored", 0, idle_since=1)]
    assert [worker.name for worker, _ in decide.share(3, workers)] == ["bored", "fresh", "busy"]


def test_a_deep_line_is_spread_evenly():
    workers = [FakeWorker("a", free=100), FakeWorker("b", free=100)]
    assert [count for _, count in decide.share(10, workers)] == [5, 5]


@given(st.integers(0, 500), st.lists(st.tuples(st.integers(0, 9), st.integers(-2, 90)), max_size=6))
def test_nobody_gets_more_than_fits_and_nothing_is_given_twice(waiting, loads):
    shares = decide.share(waiting, [FakeWorker(str(place), *load) for place, load in enumerate(loads)])
    assert all(0 < count <= worker.free for worker, count in shares)
    given_out = sum(count for _, count in shares)
    assert given_out == min(waiting, sum(max(0, free) for _, free in loads))


def test_slow_tasks_are_not_sent_ahead():
    assert decide.ahead(None) == 1
    assert decide.ahead(0.5) == 0
    assert decide.ahead(0.000_01) == 200
    assert decide.ahead(0) == 512


def test_of_tasks_that_take_milliseconds_one_is_sent_ahead():
    assert [decide.ahead(pace) for pace in (0.001, 0.0015, 0.003, 0.02, 0.021)] == [2, 1, 1, 1, 0]


def test_a_worker_is_asked_for_what_was_sent_ahead_when_it_is_silent_for_longer_than_its_tasks_take():
    assert decide.recall_at(10.0, None, None) == decide.recall_at(10.0, 0.0001, None) == 10.005
    assert decide.recall_at(10.0, 0.01, None) == 10.025
    assert decide.recall_at(10.0, 60.0, None) == 10.05


def test_a_worker_is_asked_sooner_when_a_colleague_stays_idle():
    assert decide.recall_at(10.0, 0.01, 9.0) == 10.005
    assert decide.recall_at(10.0, 0.01, 10.008) == pytest.approx(10.009)
    assert decide.recall_at(10.0, 0.01, 10.5) == 10.025


def test_pace_rises_at_once_and_falls_slowly():
    assert decide.new_pace(None, 1.0, 10) == 0.1
    assert decide.new_pace(0.001, 1.0, 1) == 1.0
    assert 0.5 < decide.new_pace(1.0, 0.001, 1) < 1.0


def test_only_what_runs_is_charged():
    assert decide.charged([1, 2, 3], {2: 0.5, 9: 0.1}) == [2]


def test_urgent_goes_first_and_order_holds_within_a_priority():
    queue = TaskQueue()
    for number, priority in ((1, 3), (2, 2), (3, 0), (4, 2)):
        queue.put(numbered(number, priority))
    assert [work.number for work in queue.take(9)] == [3, 2, 4, 1]
    assert queue.depth == 0


def test_low_priority_is_not_starved_by_a_stream_of_urgent_work():
    queue = TaskQueue()
    queue.put(numbered(0, 3))
    for number in range(1, 100):
        queue.put(numbered(number, 0))
    assert 0 in [work.number for work in queue.take(64)]


def test_cancelled_work_is_skipped():
    queue = TaskQueue()
    works = [numbered(number) for number in range(3)]
    for work in works:
        queue.put(work)
    works[1].state, queue.depth = FINAL, queue.depth - 1
    assert [work.number for work in queue.take(3)] == [0, 2]


def test_returned_work_is_at_the_front_again():
    queue = TaskQueue()
    for number in range(4):
        queue.put(numbered(number))
    queue.put_back(queue.take(2))
    assert [work.number for work in queue.take(4)] == [0, 1, 2, 3]


def test_cpu_count_follows_the_cgroup(tmp_path):
    assert _cgroup_v2(tmp_path) is None
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert _cgroup_v2(tmp_path) == 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert _cgroup_v2(tmp_path) is None
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("400000")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000")
    assert _cgroup_v1(tmp_path) == 4
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1")
    assert _cgroup_v1(tmp_path) is None
    assert usable_cpus() >= 1
