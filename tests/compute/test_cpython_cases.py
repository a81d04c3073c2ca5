"""CPython's own cases for executors and futures, run against ours where the interpreter has its test package."""

from __future__ import annotations

import importlib
import sys
import unittest

import pytest

from ulak.compute import Executor, Future

WORKERS = 5
NO_CASES = f"no test package here; on Debian: apt-get install libpython3.{sys.version_info.minor}-testsuite"

# Cases that can't hold here, each with its reason.
EXCEPTIONS = {
    "test_interpreter_shutdown": "its program imports the executor from concurrent.futures; test_closing has ours",
    "test_submit_after_interpreter_shutdown": "the same; test_faithful has ours",
    "test_hang_gh83386": "the same",
    "test_cancel_futures": "expects one to have run; ours are all cancelled while workers start",
    "test_done_callback_raises": "looks on stderr for what pytest's log capture takes",
    "test_hang_gh94440": "asks for a multiprocessing context, which we don't take",
}


def case(module, name):
    """A class of CPython's test, from the package of 3.12 and later or the module of 3.11."""
    for place in (f"test.test_concurrent_futures.{module}", "test.test_concurrent_futures"):
        try:
            return getattr(importlib.import_module(place), name)
        except (ImportError, AttributeError):
            continue
    return None


class Ours:
    worker_count = WORKERS
    executor_type = Executor

    def setUp(self):
        super().setUp()
        for name, reason in EXCEPTIONS.items():
            if self._testMethodName.startswith(name):
                self.skipTest(reason)
        self.executor = Executor(WORKERS)

    def tearDown(self):
        self.executor.shutdown()
        super().tearDown()


def adapted(module, name):
    found = case(module, name)
    if found is None:
        return pytest.mark.skip(reason=NO_CASES)(type(name, (unittest.TestCase,), {}))
    return pytest.mark.slow(type(f"Our{name}", (Ours, found, unittest.TestCase), {}))


TestExecutor = adapted("executor", "ExecutorTest")
TestWait = adapted("test_wait", "WaitTests")
TestAsCompleted = adapted("test_as_completed", "AsCompletedTests")
TestShutdown = adapted("test_shutdown", "ExecutorShutdownTest")


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
