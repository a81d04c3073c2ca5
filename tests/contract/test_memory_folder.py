"""`memory:` has a folder of its own, which goes with the store, also with one that never opened."""

from __future__ import annotations

import pytest

from tests.contract.bench import Ears
from ulak.stores.sqlite.store import SqliteStore


async def test_a_store_in_memory_that_fails_to_open_leaves_no_folder(clock, monkeypatch):
    def fail() -> None:
        raise RuntimeError("on purpose")

    store = SqliteStore(None, clock, lambda kind: 10)
    monkeypatch.setattr(store, "_prepare", fail)
    with pytest.raises(RuntimeError):
        await store.open(Ears())
    assert not store.path.parent.exists()
