"""PostgreSQL itself stopped under load, as by a power cut: nothing acknowledged is missing, nothing is double."""

from __future__ import annotations

import pytest

from tests.crash.killer import Killer
from tests.crash.wire import Life
from tests.postgres_server import Server

pytestmark = [pytest.mark.slow, pytest.mark.postgres]


@pytest.fixture
def own_server():
    """A server that no other test uses, because this one stops it."""
    found = Server()
    yield found
    found.close()


def test_a_server_that_is_stopped_under_load_loses_nothing_and_doubles_nothing(own_server, nursery):
    with own_server.database() as address:
        killer = Killer(nursery, address, seed=3)
        with nursery.heard_by(killer.ledger.hear):
            for number in (101, 102):
                nursery.start_ready(Life(address, number, producers=10))
            for _ in range(3):
                goal = len(killer.ledger.tokens) + 500
                nursery.listen(lambda goal=goal: len(killer.ledger.tokens) >= goal)
                own_server.restart("immediate")
            goal = len(killer.ledger.tokens) + 500
            nursery.listen(lambda: len(killer.ledger.tokens) >= goal)
            nursery.kill_all()
            verdict = killer.drain()
    assert verdict.violations == {}
    assert verdict.ran == verdict.accepted
