"""An empty store of each kind, for a server that is started as it is installed."""

from __future__ import annotations

import contextlib

import pytest

from tests.postgres_server import fresh_database


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request, tmp_path):
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            yield f"sqlite:///{tmp_path}/ulak.db"
        else:
            yield stack.enter_context(fresh_database())
