"""The code that a Ray node runs: a batch of messages in, outcomes out, by the same runner as in our workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from ulak.compute.worker.parcel import Packer, inline
from ulak.compute.worker.runner import Role, Runner

Message = tuple[Any, ...]


@cache
def _runner(role: Role) -> Runner:
    """Kept for the life of the process, so that functions and scripts are looked up once."""
    return Runner(role, Packer())


def run_batch(fields: tuple[Any, ...], messages: list[Message]) -> list[Message]:
    """CPU-bound messages one after another, IO-bound ones side by side."""
    role = Role(*fields)
    runner = _runner(role)
    runner.begin()
    if not role.threads or len(messages) == 1:
        outcomes = [tuple(map(inline, runner.run(message))) for message in messages]
        runner.rest()
        return outcomes
    with ThreadPoolExecutor(min(role.threads, len(messages))) as threads:
        return [tuple(map(inline, outcome)) for outcome in threads.map(runner.run, messages)]
