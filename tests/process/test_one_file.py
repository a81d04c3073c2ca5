"""One SQLite file belongs to one process; it is whole after a clean stop, and after a kill with a large WAL."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3

import pytest

from tests.crash.killer import Killer
from tests.crash.wire import Life
from ulak import Conflict, Ulak

pytestmark = pytest.mark.slow

LARGE_BYTES = 24 << 20


async def test_a_second_process_is_refused_with_the_pid_of_the_first(nursery, address):
    with nursery.heard_by(lambda record: None):
        holder = nursery.start_ready(Life(address, 1))
        with pytest.raises(Conflict, match=f"pid {holder.pid}"):
            await Ulak(address).open()
        nursery.kill(holder)
        async with Ulak(address, work=False) as ulak:
            assert await ulak.jobs.counts() == {}


def test_a_file_with_a_large_wal_is_whole_after_a_kill(nursery, address, tmp_path):
    killer = Killer(nursery, address, seed=1)
    wal = tmp_path / "ulak.db-wal"
    with nursery.heard_by(killer.ledger.hear):
        child = nursery.start_ready(Life(address, 101, producers=8, payload_bytes=20_000))
        with contextlib.closing(sqlite3.connect(f"file:{tmp_path}/ulak.db?mode=ro", uri=True)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM job").fetchone()  # while this is open, the WAL can't start again
            nursery.listen(lambda: wal.stat().st_size > LARGE_BYTES)
            nursery.kill(child)
        assert wal.stat().st_size > LARGE_BYTES
        verdict = killer.drain()
    assert verdict.violations == {}
    assert verdict.ran == verdict.accepted
    assert not wal.exists()


async def test_a_clean_stop_leaves_everything_in_the_one_file(address, tmp_path):
    async with Ulak(address) as ulak:
        await ulak.enqueue("mail")
        assert await ulak.jobs.counts() != {}  # a reader is open beside the writer
    shutil.copy(tmp_path / "ulak.db", tmp_path / "copy.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT count(*) FROM job").fetchone() == (1,)
