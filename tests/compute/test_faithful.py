"""Where users of concurrent.futures would notice a difference: errors, bare futures, and the interpreter's end."""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
import threading

import pytest

from tests.compute import jobs
from ulak.compute import Crashed, Executor, Future


@pytest.mark.parametrize(("name", "value"), [("max_workers", 1.5), ("max_tasks_per_child", 2.5)])
def test_counts_are_whole(name, value):
    with pytest.raises(TypeError, match=f"{name} must be an integer"):
        Executor(**{name: value})


@pytest.mark.parametrize(("name", "text"), [("max_workers", "greater than 0"), ("max_tasks_per_child", ">= 1")])
def test_counts_are_positive(name, text):
    with pytest.raises(ValueError, match=text):
        Executor(**{name: 0})


def test_a_crash_is_a_broken_executor_to_those_who_ask():
    with Executor(1, max_retries=0) as executor:
        error = executor.submit(jobs.kill_self).exception(30)
        assert isinstance(error, Crashed)
        assert isinstance(error, concurrent.futures.BrokenExecutor)
        assert executor.submit(jobs.echo, 1).result(30) == 1  # only the task is broken


def test_a_bare_future_wakes_the_thread_that_waits():
    future = Future()
    waiting = threading.Thread(target=future.result, args=(30,))
    waiting.start()
    future.set_result(5)
    waiting.join(10)
    assert not waiting.is_alive()
    assert future.result() == 5


def test_a_bare_future_can_be_cancelled():
    future = Future()
    seen = []
    future.add_done_callback(seen.append)
    assert future.cancel()
    assert seen == [future]
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(0)


def test_a_future_is_settled_once():
    future = Future()
    future.set_result(1)
    with pytest.raises(concurrent.futures.InvalidStateError):
        future.set_exception(ValueError())
    assert not future.cancel()


LATE = {
    "an atexit function from before the import": "import atexit\natexit.register(late)\n{make}",
    "an atexit function from after it": "{make}import atexit\natexit.register(late)\n",
    "a thread that outlives the main one": (
        "{make}import threading\n"
        "threading.Thread(target=lambda: [threading.main_thread().join(), left.wait(), late()]).start()\n"
    ),
}


@pytest.mark.parametrize("who", LATE)
def test_submitting_while_the_interpreter_leaves_is_a_runtime_error(who):
    """As with the stdlib's, `left` is set when that has begun."""
    program = (
        "import threading\nleft = threading.Event()\nthreading._register_atexit(left.set)\n"
        "def late():\n"
        "    try:\n        executor.submit(pow, 2, 8)\n"
        "    except RuntimeError as error:\n        print('runtime-error', error)\n"
    ) + LATE[who].format(
        make="from ulak.compute import Executor\nexecutor = Executor(1)\nprint(executor.submit(pow, 2, 8).result())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": "src"},
    )  # fmt: skip
    assert done.stdout.splitlines()[0] == "256", done.stderr
    assert "runtime-error cannot schedule new futures" in done.stdout
