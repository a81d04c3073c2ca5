"""From an address to a store: one that names no kind of store is refused."""

from __future__ import annotations

import traceback

import pytest

from ulak import Ulak
from ulak.errors import Misconfigured
from ulak.settings import Settings


@pytest.mark.parametrize("address", ["mysql://ulak:hunter2@db/ulak", "host=db password=hunter2", "hunter2"])
async def test_an_address_of_no_known_kind_is_refused_without_showing_it(address):
    with pytest.raises(Misconfigured, match="begins with memory:, sqlite:/// or postgresql://") as refusal:
        await Ulak(address, settings=Settings()).open()
    assert "hunter2" not in "".join(traceback.format_exception(refusal.value))


def test_the_address_that_was_given_counts_and_otherwise_that_of_the_settings():
    assert Ulak("memory:", settings=Settings()).address == "memory:"
    assert Ulak(settings=Settings()).address == "sqlite:///ulak.db"


async def test_a_store_in_a_folder_that_is_not_there_is_refused_and_nothing_is_made(tmp_path):
    with pytest.raises(Misconfigured, match="there is no folder"):
        async with Ulak(f"sqlite:///{tmp_path}/missing/deep/ulak.db"):
            pass
    assert list(tmp_path.iterdir()) == []
