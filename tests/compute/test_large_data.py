"""Large arrays and bytes: shared memory instead of a pipe, and none of it left behind."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from tests.compute import jobs
from tests.compute.conftest import eventually, is_alive
from ulak.compute import Task, TaskType
from ulak.compute.worker import lender, parcel
from ulak.compute.worker.lender import Lender
from ulak.compute.worker.parcel import SEGMENT_BYTES, Packer, Parcel, inline, unpack
from ulak.compute.worker.shared_memory import Loan, Segment, new_segment

POOLED = 8
LENGTH = 1_000_000  # of float64: 8 MB


@pytest.fixture(autouse=True)
def no_engine_of_an_earlier_test():
    """A closed engine in a cycle keeps its pool until it is collected, and here descriptors are counted."""
    gc.collect()


def shared_files(pid):
    """Descriptors of shared data that a process has open."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:
            continue
    return [name for name in found if "ulak-data" in name]


def test_arrays_come_and_go_whole(engine):
    array = np.arange(LENGTH, dtype=float)
    returned = engine.submit(jobs.echo, array).result(30)
    assert np.array_equal(returned, array)
    returned[0] = 5.0  # the result is the caller's own
    assert array[0] == 0.0


def test_nothing_large_goes_through_the_pipe(engine, monkeypatch):
    sent = []
    original = parcel.to_wire
    monkeypatch.setattr("ulak.compute.pool.worker_handle.to_wire", lambda few: sent.append(original(few)) or sent[-1])
    assert engine.submit(jobs.size_of, np.ones(LENGTH)).result(30) == 8 * LENGTH
    assert engine.submit(jobs.size_of, bytes(LENGTH)).result(30) == LENGTH
    assert all(len(repr(wired)) < 2000 for wired, _ in sent)
    assert [len(descriptors) for _, descriptors in sent] == [1, 1]


def test_a_task_that_changes_its_argument_changes_its_own(engine, tmp_path):
    array = np.zeros(LENGTH)
    assert engine.submit(jobs.add_one_after_a_crash, array, str(tmp_path / "marker")).result(30) == 1.0
    assert array[0] == 0.0


def test_arguments_are_what_they_were_when_submitted(make_engine, gate):
    engine = make_engine()
    held = engine.submit(jobs.hold, gate.started, gate.path)
    gate.wait()
    array = np.ones(LENGTH)
    waiting = engine.submit(jobs.first_of, array)
    array[:] = 7.0
    gate.open()
    held.result(30)
    assert waiting.result(30) == 1.0


def test_many_arrays_need_few_descriptors(make_engine, gate):
    engine = make_engine()
    engine.submit(jobs.echo).result(30)
    held = engine.submit(jobs.hold, gate.started, gate.path)
    gate.wait()
    waiting = [engine.submit(jobs.first_of, np.full(LENGTH // 8, number)) for number in range(100)]
    assert len(shared_files(os.getpid())) <= 10
    gate.open()
    assert [future.result(30) for future in waiting] == list(range(100))
    held.result(30)
    del waiting, held
    engine.close()
    del engine
    eventually(lambda: len(shared_files(os.getpid())) <= POOLED)  # those of the engine that make_engine still has


def test_results_that_are_kept_keep_no_descriptor(engine):
    kept = list(engine.map(np.ones, [20_000] * 300, chunk_size=1))
    assert sum(map(len, kept)) == 6_000_000
    eventually(lambda: len(shared_files(os.getpid())) <= POOLED)


def test_scripts_take_and_return_arrays(engine, script):
    name = script("double_it.py", "def run(params):\n    return params['array'] * 2\n")
    for task_type in TaskType:
        task = Task.create(name, {"array": np.ones(LENGTH)}, task_type)
        result = engine.get_result(engine.submit_task(task), 30)
        assert result.data.sum() == 2 * LENGTH
        assert np.array_equal(engine.get_result(task.id).data, result.data)


def test_without_descriptors_the_pipe_serves(engine):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    packer = Packer()
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        packed = packer.pack(np.ones(LENGTH))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert isinstance(packed, bytes)
    assert unpack(packed).sum() == LENGTH


def test_a_parcel_can_be_made_plain():
    packed = Packer().pack({"a": np.ones(LENGTH), "b": bytes(LENGTH), "c": np.ones((4, 4)).T[::2]})
    assert isinstance(packed, Parcel)
    assert isinstance(inline(packed), tuple)
    for value in (unpack(packed), unpack(inline(packed))):
        assert value["a"].sum() == LENGTH
        assert value["a"].flags.writeable
        assert len(value["b"]) == LENGTH


def test_a_killed_worker_leaves_no_shared_memory(make_engine, gate):
    engine = make_engine()
    future = engine.using(max_retries=0).submit(jobs.hold, gate.started, gate.path, np.ones(LENGTH))
    os.kill(gate.wait(), signal.SIGKILL)
    assert future.exception(30) is not None
    del future
    eventually(lambda: len(shared_files(os.getpid())) <= POOLED)


@pytest.mark.parametrize("keep", [jobs.keep, jobs.keep_in_a_fork], ids=["in the worker", "in a fork of it"])
def test_what_a_task_keeps_of_its_argument_stays_as_it_was(make_engine, keep, tmp_path):
    """Memory is used again only when nobody has it mapped any more."""
    engine = make_engine()
    kept = str(tmp_path / "kept")
    engine.submit(keep, np.full(LENGTH, 3.0), kept).result(30)
    for _ in range(20):
        engine.submit(jobs.first_of, np.zeros(LENGTH)).result(30)
    engine.submit(jobs.report_kept, kept).result(30)
    assert eventually(lambda: Path(kept).exists() and Path(kept).read_text()) == "3.0"


def test_memory_is_used_again():
    packer, inodes = Packer(SEGMENT_BYTES), set()
    for number in range(20):
        packed = packer.pack(np.full(LENGTH, number))
        inodes.add(os.fstat(packed.segment.descriptor).st_ino)
        assert unpack(packed)[0] == number
        packed.segment.clean += 1
        del packed
    assert len(inodes) == 1


def inode_of(packed):
    return os.fstat(packed.segment.descriptor).st_ino


def test_a_result_that_was_given_back_lends_its_memory_to_the_next():
    returned = deque()
    packer = Packer(lender=Lender(returned))
    first, second = packer.pack(np.full(LENGTH, 1.0)), packer.pack(np.full(LENGTH, 2.0))
    assert inode_of(first) != inode_of(second)
    place = inode_of(first)
    returned.append(first.segment.ticket)
    third = packer.pack(np.full(LENGTH - 1, 3.0))
    assert inode_of(third) == place
    assert (unpack(second)[0], unpack(third)[0], len(unpack(third))) == (2.0, 3.0, LENGTH - 1)


def test_a_small_result_does_not_keep_a_large_segment():
    returned = deque()
    packer = Packer(lender=Lender(returned))
    large = packer.pack(np.ones(LENGTH))
    returned.append(large.segment.ticket)
    assert inode_of(packer.pack(np.ones(LENGTH // 8))) != inode_of(large)


@pytest.mark.parametrize("length", [16 * 1024, LENGTH, 4 * LENGTH], ids=["small", "8 MB", "32 MB"])
def test_a_worker_keeps_a_bounded_amount_of_memory_for_results(length):
    returned = deque()
    packer = Packer(lender=Lender(returned))
    before = len(shared_files(os.getpid()))
    for _ in range(2):
        kept = [packer.pack(np.empty(length)).segment.ticket for _ in range(lender.MAX_SEGMENTS + 20)]
        held = len(shared_files(os.getpid())) - before
        assert held == min(lender.MAX_SEGMENTS, lender.MAX_BYTES // (8 * length) if length <= 2 * LENGTH else 0)
        returned.extend(ticket for ticket in kept if ticket)


def test_results_of_other_sizes_take_the_place_of_those_that_came_back():
    returned = deque()
    packer = Packer(lender=Lender(returned))
    for length in (LENGTH, LENGTH // 4, LENGTH // 16):
        tickets = [packer.pack(np.empty(length)).segment.ticket for _ in range(8)]
        assert all(tickets)
        returned.extend(tickets)


def test_a_result_that_could_not_be_written_is_not_waited_for(monkeypatch):
    packer = Packer(lender=Lender(deque()))
    with monkeypatch.context() as patch:
        patch.setattr(Segment, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "no memory left")))
        assert all(isinstance(packer.pack(np.ones(LENGTH)), bytes) for _ in range(lender.MAX_SEGMENTS))
    assert packer.pack(np.ones(LENGTH)).segment.ticket


def test_results_that_a_caller_keeps_stay_as_they_were(make_engine):
    engine = make_engine()
    kept = [engine.submit(np.full, LENGTH // 8, float(number)).result(30) for number in range(5)]
    for number in range(50):
        assert engine.submit(np.full, LENGTH // 8, -1.0 - number).result(30)[-1] == -1.0 - number
    assert [(array[0], array[-1]) for array in kept] == [(number, number) for number in range(5)]


def test_a_worker_writes_results_to_memory_that_came_back(make_engine):
    engine = make_engine()
    worker = engine.submit(jobs.pid).result(30)
    for number in range(50):
        assert engine.submit(np.full, LENGTH // 8, number).result(30)[0] == number
    assert 1 <= len(shared_files(worker)) <= 4


def test_memory_is_not_given_back_after_a_fork():
    """The child has the same mapping, and would see what is written to it later."""
    given_back: list[int] = []
    before, lasting = Loan(1, given_back.append), Loan(2, given_back.append)
    del before
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    later = Loan(3, given_back.append)
    del lasting, later
    assert given_back == [1, 3]


class LastWord:
    """In a cycle with itself; it looks at its memory once more when it is collected."""

    def __init__(self, view, words):
        self.view, self.words, self.cycle = view, words, self

    def __del__(self):
        self.words.append(bytes(self.view))


def test_memory_is_mapped_and_lent_until_a_cycle_with_it_is_gone():
    words: list[bytes] = []
    given_back: list[int] = []
    segment = new_segment()
    segment.write(b"last", 0)
    borrowed = Segment(os.dup(segment.descriptor), loan=Loan(1, lambda _: given_back.append(len(words))))
    LastWord(borrowed.map(0, 4), words)
    del borrowed
    gc.collect()
    assert words == [b"last"]
    assert given_back == [1]  # after the last word


def family(pid):
    """A process and all that descend from it."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for file in files for child in file.read_text().split()]
    return [pid, *(each for child in children for each in family(child))]


def named_memory(pid):
    """The files of shared memory that a process has mapped or open."""
    places = Path(f"/proc/{pid}/maps").read_text().split("\n")
    places += [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()]
    return {Path(place[place.index("/dev/shm/") :]) for place in places if "/dev/shm/" in place}


@pytest.mark.slow
def test_a_killed_parent_leaves_no_shared_memory(gate, tmp_path):
    program = (
        "import sys, numpy\nfrom ulak.compute import Engine\nfrom tests.compute import jobs\n"
        "engine = Engine(cpu_workers=1)\n"
        f"engine.submit(jobs.hold, {gate.started!r}, {gate.path!r}, numpy.ones({LENGTH})).result()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": "src:."})
    worker = gate.wait()
    assert shared_files(parent.pid)
    processes = family(parent.pid)
    assert worker in processes
    named = set().union(*map(named_memory, processes))
    parent.kill()
    parent.wait()
    eventually(lambda: not any(map(is_alive, processes)))
    assert not [place for place in named if place.exists()]
