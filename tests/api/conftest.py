"""One server for all tests of a module that leave nothing behind for one another."""

from __future__ import annotations

import pytest_asyncio

from tests.api.serving import serving


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared():
    async with serving(work=False) as served:
        yield served
