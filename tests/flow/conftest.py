"""What every flow needs: an Ulak on each kind of store, with a clock that the test moves."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.flow.stores import STORES, address_of
from ulak import Job, Ulak
from ulak.clock import ManualClock
from ulak.settings import Settings

PATIENCE_SECONDS = 60
HANG_SECONDS = 30
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """A flow that hangs fails by itself, and says where it stood."""
    for item in items:
        if item.path.is_relative_to(HERE) and inspect.iscoroutinefunction(getattr(item, "obj", None)):
            item.obj = _impatient(item.obj)


def _impatient(test):
    @functools.wraps(test)
    async def run(*args, **kwargs):
        task = asyncio.ensure_future(test(*args, **kwargs))
        if not (await asyncio.wait({task}, timeout=PATIENCE_SECONDS))[0]:
            stood = _where_all_stand()
            while not task.done():  # the first ends the test, a second one the stop that waits for a clock
                task.cancel()
                await asyncio.wait({task}, timeout=1)
            pytest.fail(f"took longer than {PATIENCE_SECONDS} s\n{stood}")
        return task.result()

    return run


def _where_all_stand() -> str:
    text = io.StringIO()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        if not any(usual in repr(task) for usual in ("Event.wait", "Runners._work")):
            task.print_stack(limit=4, file=text)
    return text.getvalue()


@pytest.fixture(params=STORES)
def address(request, tmp_path):
    """The address of an empty store, of each kind in turn."""
    with contextlib.contextmanager(address_of)(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def sqlite_address(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/ulak.db"


@pytest.fixture
def make(address, clock) -> Callable[..., Ulak]:
    """An Ulak on the store and the clock of this test; settings by section: make(spine={"capacity": 5})."""
    return lambda **sections: build(address, clock, **sections)


def build(address: str, clock: ManualClock | None, *, work: Any = True, **sections: dict[str, Any]) -> Ulak:
    return Ulak(address, settings=Settings(store=address, **sections), clock=clock, work=work)


@dataclass
class Recorder:
    """A handler that notes what it saw, and may be told what to answer or to wait."""

    answers: list[Any] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event | None = None
    at_once: int = 0
    most_at_once: int = 0

    async def __call__(self, job: Job) -> Any:
        self.jobs.append(job)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.started.set()
        try:
            if self.release is not None:
                await self.release.wait()
            return self._answer()
        finally:
            self.at_once -= 1

    def _answer(self) -> Any:
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def until(self, number: int) -> None:
        """Until it has seen so many jobs, which the worker has to bring by itself."""
        async with asyncio.timeout(HANG_SECONDS):
            while len(self.jobs) < number:
                await asyncio.sleep(0)

    @property
    def payloads(self) -> list[Any]:
        return [job.payload for job in self.jobs]

    def on(self, ulak: Ulak, kind: str, **options: Any) -> Recorder:
        async def handle(job: Job) -> Any:
            return await self(job)

        ulak.handles(kind, **options)(handle)
        return self


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
