"""CPython's own cases for executors and futures, run against ours where the interpreter has its test package."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
import unittest
from concurrent.futures import BrokenExecutor
from unittest import mock

import pytest

from ulak.compute import Executor, Future

NO_CASES = f"no test package here; on Debian: apt-get install libpython3.{sys.version_info.minor}-testsuite"

# Cases that can't hold here, each with its reason.
PROGRAM = "its program imports the executor from concurrent.futures"
INSIDE = "reads private parts of ProcessPoolExecutor"
OTHER_EXECUTOR = "makes a ProcessPoolExecutor by name, so it would not try ours"
OTHER_ERROR = "breaks the pool; ours goes on, and the task's future has the error or an UnpicklableResult"
EXCEPTIONS = {
    "test_interpreter_shutdown": f"{PROGRAM}; test_closing has ours",
    "test_submit_after_interpreter_shutdown": f"{PROGRAM}; test_faithful has ours",
    "test_hang_gh83386": PROGRAM,
    "test_cancel_futures": "expects one to have run; ours are all cancelled while workers start",
    "test_done_callback_raises": "looks on stderr for what pytest's log capture takes",
    "FailingInitializerMixin": f"{INSIDE}; test_executor has ours",
    "test_idle_process_reuse": INSIDE,
    "test_killed_child": f"{INSIDE}, and breaks the pool; test_deaths has ours, which goes on",
    "test_max_tasks_per_child": f"{INSIDE}; test_recycling has ours",
    "test_processes_terminate": f"{INSIDE}; test_deaths has ours",
    "test_python_finalization_error": f"{INSIDE}: it refuses the thread that a first submit starts there",
    "test_saturation": INSIDE,
    "test_shutdown_deadlock_pickle": INSIDE,
    "test_traceback": f"{INSIDE}; test_calls has ours",
    "test_context_manager_shutdown": OTHER_EXECUTOR,
    "test_del_shutdown": f"{OTHER_EXECUTOR}; test_closing has ours",
    "test_shutdown_no_wait": f"{OTHER_EXECUTOR}; test_executor has ours",
    "test_error_at_task_unpickle": OTHER_ERROR,
    "test_exit_at_task_unpickle": OTHER_ERROR,
    "test_error_during_result": OTHER_ERROR,
    "test_exit_during_result": OTHER_ERROR,
}


def case(module, name):
    """A class of CPython's test, from the package of 3.12 and later or the module of 3.11."""
    for place in (f"test.test_concurrent_futures.{module}", "test.test_concurrent_futures"):
        try:
            return getattr(importlib.import_module(place), name)
        except (ImportError, AttributeError):
            continue
    return None


def our_executor(max_workers=None, *, mp_context=None, **options):
    """Cases give a context of multiprocessing, for which ours has no use."""
    return Executor(max_workers, **options)


class Ours:
    """Comes before CPython's mixin, which makes the executor and shuts it down."""

    executor_type = staticmethod(our_executor)
    ctx = "spawn"

    def setUp(self):
        for name, reason in EXCEPTIONS.items():
            if name in self.id():
                self.skipTest(reason)
        if hasattr(self.home, "BrokenProcessPool"):  # a crash is a BrokenExecutor here: the pool is not broken by it
            self.enterContext(mock.patch.object(self.home, "BrokenProcessPool", BrokenExecutor))
        super().setUp()

    def get_context(self):
        return multiprocessing.get_context(self.ctx)


def adapted(module, name):
    found, mixin = case(module, name), case("util", "ExecutorMixin")
    if found is None or mixin is None:
        return pytest.mark.skip(reason=NO_CASES)(type(name, (unittest.TestCase,), {"test_all": lambda _: None}))
    bases = (found,) if issubclass(found, mixin) else (found, mixin)
    home = importlib.import_module(found.__module__)
    return pytest.mark.slow(type(f"Our{name}", (Ours, *bases, unittest.TestCase), {"home": home}))


TestExecutor = adapted("test_process_pool", "ProcessPoolExecutorTest")
TestWait = adapted("test_wait", "WaitTests")
TestAsCompleted = adapted("test_as_completed", "AsCompletedTests")
TestShutdown = adapted("test_shutdown", "ProcessPoolShutdownTest")
TestInitializer = adapted("test_init", "InitializerMixin")
TestFailingInitializer = adapted("test_init", "FailingInitializerMixin")
TestDeadlock = adapted("test_deadlock", "ExecutorDeadlockTest")


@pytest.fixture
def our_futures(monkeypatch):
    found = case("test_future", "FutureTests")
    if found is None:
        pytest.skip(NO_CASES)
    home = importlib.import_module(found.__module__)
    for module in (home, importlib.import_module(home.create_future.__module__)):
        monkeypatch.setattr(module, "Future", Future)
    for name in [name for name in vars(home) if name.endswith("_FUTURE")]:
        old = getattr(home, name)
        new = home.create_future(old._state, old._exception, old._result)
        monkeypatch.setattr(home, name, new)
    return found


def test_futures_behave_as_cpythons(our_futures):
    names = unittest.defaultTestLoader.getTestCaseNames(our_futures)
    result = unittest.TestResult()
    unittest.TestSuite(our_futures(name) for name in names if not name.startswith(tuple(EXCEPTIONS))).run(result)
    assert result.testsRun > 10
    assert [(str(test), text[-400:]) for test, text in result.errors + result.failures] == []
