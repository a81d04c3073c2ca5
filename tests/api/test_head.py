"""HEAD is GET without the body, for load balancers and whoever only wants to know whether something is there."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.serving import serving

PATHS = ("/healthz", "/readyz", "/openapi.json", "/docs", "/api/jobs", "/api/jobs/1", "/nowhere")


@pytest.mark.parametrize("path", PATHS)
async def test_head_is_answered_as_get_without_the_body(path):
    async with serving(work=False) as served:
        whole, head = await served.get(path), await served.ask("HEAD", path)
        assert (head.status, head.text) == (whole.status, "")
        for name in ("Content-Type", "Content-Length"):
            assert head.headers[name] == whole.headers[name]


async def test_head_of_a_stream_ends_with_its_head():
    async with serving(work=False) as served:
        head = await asyncio.wait_for(served.ask("HEAD", "/api/events/stream"), 10)
        assert (head.status, head.text) == (200, "")
        assert head.headers["Content-Type"].startswith("text/event-stream")
        while served.door.meter.in_flight:
            await asyncio.sleep(0)


async def test_head_where_nothing_can_be_got_is_told_what_can():
    async with serving(work=False) as served:
        head = await served.ask("HEAD", "/api/notifications/batch")
        assert (head.status, head.headers["Allow"]) == (405, "POST")


async def test_a_key_that_may_look_may_ask_for_the_head():
    async with serving(work=False) as served:
        assert (await served.ask("HEAD", "/api/jobs", key=await served.make_key("look"))).status == 200
        assert (await served.ask("HEAD", "/api/jobs", key=await served.make_key("metrics"))).status == 403
        assert 'method="HEAD",route="/api/jobs",status="200"' in (await served.get("/metrics")).text
