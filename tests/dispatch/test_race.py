"""Raced answers from several processes: nobody gets a task twice, and nothing is left behind."""

from __future__ import annotations

import pytest

from tests.dispatch.race import audit, prepare, race
from tests.postgres_server import fresh_database


@pytest.mark.slow
@pytest.mark.postgres
async def test_answers_raced_by_two_processes_leave_nothing_broken():
    with fresh_database() as address:
        await prepare(address)
        said = race("library", address, 1500, 2)
        assert said["yes"] > 100
        assert said["Unavailable"] == 0
        assert await audit(address) == []
