"""Real processes on a store in a folder of their own."""

from __future__ import annotations

import contextlib

import pytest

from tests.crash.nursery import Nursery


@pytest.fixture(scope="session")
def nursery():
    with contextlib.closing(Nursery()) as found:
        yield found


@pytest.fixture
def address(tmp_path):
    return f"sqlite:///{tmp_path}/ulak.db"
