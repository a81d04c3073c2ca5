"""One nursery for all tests of a test process, and a store that is new for each."""

from __future__ import annotations

import contextlib

import pytest

from tests.crash.killer import Killer
from tests.crash.nursery import Nursery
from tests.postgres_server import fresh_database


@pytest.fixture(scope="session")
def nursery():
    with contextlib.closing(Nursery()) as found:
        yield found


@pytest.fixture
def file(tmp_path):
    """The address of a SQLite store."""
    return f"sqlite:///{tmp_path}/ulak.db"


@pytest.fixture
def database():
    """The address of a PostgreSQL store."""
    with fresh_database() as address:
        yield address


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request):
    return request.getfixturevalue({"sqlite": "file", "postgres": "database"}[request.param])


@pytest.fixture
def killer(nursery, address):
    """Hears everything that is said in this test; whatever lives at the end is killed."""
    found = Killer(nursery, address, seed=7)
    with nursery.heard_by(found.ledger.hear):
        yield found
