"""Raced answers from several processes: nobody gets a task twice, and nothing is left behind."""

from __future__ import annotations

import pytest

from tests.dispatch.race import audit, prepare, race, race_over_http
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


@pytest.mark.slow
def test_answers_raced_over_http_leave_nothing_broken(tmp_path):
    said, found = race_over_http(tmp_path, 1500, 2)
    assert said["yes"] > 100
    assert said["503"] == said["500"] == 0
    assert found == []
