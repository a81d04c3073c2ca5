"""kill -9 at every step of a sync, and a worker that was frozen while another took over: nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys

import pytest

from tests.changes.conftest import opened
from tests.changes.lists import simple, write_lists
from tests.flow.stores import POSTGRES, address_of
from ulak.changes import records
from ulak.changes.pipeline.differ import Delta
from ulak.changes.syncing import lease
from ulak.testing import drain

POINTS = [
    ("changes.fetch", 1),
    ("changes.read", 1),
    ("changes.export", 1),
    ("changes.compare", 1),
    ("changes.write", 1),
    ("writer.before_commit", 3),
    ("writer.after_commit", 3),
    ("writer.after_commit", 4),
    ("changes.written", 1),
    ("changes.keep", 1),
    ("changes.judged", 1),
    ("worker.before_settle", 1),
    ("worker.settled", 1),
]


@pytest.fixture(params=["sqlite", *POSTGRES])
def kept(request, tmp_path):
    """The address of a store that outlives its process."""
    with contextlib.contextmanager(address_of)(request.param, tmp_path) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(("point", "number"), POINTS)
async def test_a_kill_at_any_step_loses_and_doubles_nothing(kept, tmp_path, point, number):
    async with opened(kept, tmp_path, None) as desk:
        desk.lay_simple(range(1, 301))
        first = await desk.room.sync("gib")
        since = first.feeds["einvoice"].until
    write_lists(tmp_path / "lists", *simple(range(11, 341)))
    command = [sys.executable, "-m", "tests.changes.child", kept, str(tmp_path), point, str(number)]
    child = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    async with asyncio.timeout(60):
        assert await child.wait() == -signal.SIGKILL
    async with asyncio.timeout(60), opened(kept, tmp_path, None, spine__lease_seconds=1) as desk:
        for report in await desk.room.list_syncs("gib"):
            ended = await desk.room.wait("gib", report.sync_id)
            assert ended.status == "success"
        found = await desk.changes(since, size=1000)
        assert found["totalCount"] == 50
        assert len({change["identifier"] for change in found["changes"]}) == 50
        assert (await desk.state()).count == 330
        assert await desk.rows() == 350
        assert (await desk.room.sync("gib")).verdict == "unchanged"


async def test_a_frozen_worker_that_lost_its_lease_writes_nothing(desk):
    await desk.publish(range(1, 21))
    before = await desk.state()
    store = desk.ulak.store
    frozen = await store.write(lease.take, "gib", 1, lambda _tx, _job: False)
    rows = [(before.head_pos + 1, Delta("001", 1, b"h", "c", None, "{}", "t"))]
    await store.write(lease.append, rows, held=frozen, feed="einvoice", sync=1)
    await store.write(lease.take, "gib", 2, lambda _tx, _job: False)  # another takes over
    with pytest.raises(lease.LostLease):
        await store.write(lease.append, [(before.head_pos + 2, rows[0][1])], held=frozen, feed="einvoice", sync=1)
    with pytest.raises(lease.LostLease):
        await store.write(lease.clear_above, frozen, "einvoice", before.head_pos)
    from ulak.changes.model import SyncVerdict
    from ulak.changes.syncing.publication import Ending, FeedChange, end_sync

    changes = {"einvoice": FeedChange(added=1)}
    ending = Ending(1, "gib", SyncVerdict.PUBLISHED, frozen, changes)
    with pytest.raises(lease.LostLease):
        await store.write(end_sync, ending, ())
    assert await desk.state() == before
    report = await desk.publish(range(1, 22))
    assert report.feeds["einvoice"].added == 1
    assert await desk.rows() == 21


async def test_a_lease_whose_sync_is_unfinished_is_not_taken(desk):
    desk.lay_simple(range(1, 21))
    store = desk.ulak.store
    assert await store.write(lease.take, "gib", 1, lambda _tx, _job: True) is not None
    assert await store.write(lease.take, "gib", 2, lambda _tx, _job: True) is None
    begun = await desk.room.start("gib")  # job 1 is not there any more, so its lease counts for nothing
    await drain(desk.ulak)
    assert (await desk.room.get_sync("gib", begun.sync_id)).verdict == "published"
    row = await store.read(records.read_registry, "gib")
    assert row.lease_owner is None
