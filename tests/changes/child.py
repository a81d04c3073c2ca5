"""A process that syncs and is killed at a named point: `python -m tests.changes.child STORE FOLDER POINT NUMBER`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from ulak import Ulak
from ulak.settings import load
from ulak.spine import probe

STORE, FOLDER, POINT, NUMBER = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
SETTINGS = {
    "changes.folder": str(FOLDER / "changes"),
    "changes.gib.pk_url": f"file://{FOLDER}/lists/pk.zip",
    "changes.gib.gb_url": f"file://{FOLDER}/lists/gb.zip",
    "spine.lease_seconds": 1,
}


async def main() -> None:
    left = NUMBER

    def die() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    async with Ulak(settings=load(env={}, overrides={"store": STORE, **SETTINGS}).settings) as ulak:
        await ulak.changes.start("gib")
        probe.listen(POINT, die)
        async with asyncio.timeout(60):
            report = (await ulak.changes.list_syncs("gib"))[0]
            await ulak.changes.wait("gib", report.sync_id)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
