"""SIGTERM while the store hangs: the process ends within its limits all the same, and its file is free again."""

from __future__ import annotations

import signal

import pytest

from tests.cli.processes import running
from ulak import NewJob, Ulak

pytestmark = pytest.mark.slow

# What hangs would hang for an hour. The 2 s after which a store counts as silent, and the rest for a busy machine.
END_SECONDS = 0.2 + 0.2 + 5 + 2 + 10
LIMITS = {
    "ULAK_WORKER__STOP_GRACE_SECONDS": "0.2",
    "ULAK_WORKER__STOP_CANCEL_SECONDS": "0.2",
    "ULAK_SPINE__BALLAST_MB": "0",
}
APP = """
import asyncio, sys, threading
from ulak import Ulak
from ulak.spine import probe
ulak = Ulak()

def hang(*_):
    threading.Event().wait(3600)

@ulak.handles("mail.send")
async def send(job):
    reading = asyncio.create_task(ulak.store.read(hang))
    probe.listen("writer.before_commit", lambda: (print("hangs", file=sys.stderr, flush=True), hang()))
    await asyncio.wait([reading], timeout=0.01)
"""


async def test_a_worker_whose_commit_and_reader_hang_ends_within_its_limits_and_leaves_the_file(tmp_path):
    (tmp_path / "shop.py").write_text(APP)
    address = f"sqlite:///{tmp_path}/ulak.db"
    async with Ulak(address, work=False) as ulak:
        ids = await ulak.enqueue_many([NewJob("mail.send"), NewJob("mail.other")])
    with running(tmp_path, "worker", "--app", "shop:ulak", until="hangs", **LIMITS) as process:
        process._process.send_signal(signal.SIGTERM)
        _, rest = process._process.communicate(timeout=END_SECONDS)
        assert process._process.returncode == 0
    assert "store_stuck" in rest
    async with Ulak(address, work=False) as ulak:
        assert [(await ulak.jobs.get(job)).status for job in ids] == ["running", "ready"]
