"""What a server says of a store that stalls: the process lives, it is not ready, and metrics are still there."""

from __future__ import annotations

import asyncio
import re
import threading

from tests.api.serving import serving
from tests.flow.stall import Stall
from ulak.errors import Unavailable
from ulak.spine import store as seam
from ulak.spine.loops import sampler
from ulak.stores.writer import read_pool


async def test_a_server_whose_commit_hangs_is_alive_but_not_ready(monkeypatch):
    async with serving(work=False) as served:
        assert (await served.get("/readyz")).status == 200
        with Stall(served.ulak) as stall:
            waiting = asyncio.create_task(served.enqueue())
            await stall.is_reached()
            assert (await served.get("/readyz")).status == 200  # a commit may take a moment
            monkeypatch.setattr(seam, "STALL_SECONDS", 0.0)
            ready = await served.get("/readyz")
            assert ready.status == 503
            assert "the store has not answered" in ready.text
            assert (await served.get("/healthz")).status == 200
            metrics = await served.get("/metrics")
            assert metrics.status == 200
            assert float(re.search(r'ulak_store\{fact="stalled_seconds"\} (\S+)', metrics.text)[1]) > 0
        await waiting
        monkeypatch.undo()
        assert (await served.get("/readyz")).status == 200


async def test_metrics_are_answered_while_reads_hang(monkeypatch):
    over = threading.Event()
    async with serving(work=False) as served:
        monkeypatch.setattr(read_pool, "ANSWER_SECONDS", 0.05)
        stuck = [served.ulak.store.read(lambda _: over.wait(60)) for _ in range(read_pool.THREADS)]
        reading = asyncio.gather(*stuck, return_exceptions=True)
        await asyncio.sleep(0)
        metrics = await served.get("/metrics")
        listing = await served.get("/api/jobs")
        over.set()
        await reading
    assert (metrics.status, listing.status) == (200, 503)
    assert "ulak_sample_age_seconds" in metrics.text


async def test_how_the_store_is_can_not_be_said_while_its_reads_fail(monkeypatch):
    async with serving(work=False) as served:
        await served.enqueue()
        assert (await served.get("/api/db")).body["live"] == 1
        with monkeypatch.context() as patch:
            # Only the sample's read fails; the others that the answer needs still work.
            patch.setattr(sampler, "take_sample", _failing)
            shown = await served.get("/api/db")
            metrics = await served.get("/metrics")
        assert (await served.get("/api/db")).status == 200
    assert shown.status == 503
    assert metrics.status == 200
    assert 'ulak_jobs{kind="mail",state="ready"} 1.0' in metrics.text


def _failing(_):
    raise Unavailable("the database has not answered")
