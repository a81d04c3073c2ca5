"""The store over HTTP: backup beside a running Ulak, and letting go of held work."""

from __future__ import annotations

import sqlite3

import pytest

from tests.api.serving import serving
from ulak.spine.units.hold import hold_all


async def test_a_backup_is_a_whole_store(tmp_path):
    async with serving(work=False, store=f"sqlite:///{tmp_path}/ulak.db") as served:
        await served.enqueue()
        made = await served.post("/api/db/backup", {"name": "monday.db"})
        assert made.status == 201
        assert made.body["name"] == "monday.db"
        assert (await served.post("/api/db/backup", {"name": "monday.db"})).status == 409
        assert (await served.post("/api/db/backup", {})).status == 201
    connection = sqlite3.connect(tmp_path / "backups" / "monday.db")
    assert connection.execute("SELECT count(*) FROM job").fetchone() == (1,)
    connection.close()


@pytest.mark.parametrize("name", ["../ulak.db", "/etc/x", "a/b", ".hidden", "", "a" * 101])
async def test_a_backup_stays_in_its_folder(tmp_path, name):
    async with serving(work=False, store=f"sqlite:///{tmp_path}/ulak.db") as served:
        assert (await served.post("/api/db/backup", {"name": name})).status == 400


async def test_a_store_without_a_file_says_so():
    async with serving() as served:
        assert (await served.post("/api/db/backup", {})).status == 409


async def test_held_work_waits_until_it_is_let_go():
    ran = []

    def prepare(ulak):
        @ulak.handles("mail")
        async def mail(job):
            ran.append(job.id)

    async with serving(prepare) as served:
        later = await served.enqueue("mail", delaySeconds=3600)
        waiting = await served.enqueue("unhandled")
        due_at = (await served.get(f"/api/jobs/{later}")).body["dueAt"]
        held = await served.ulak.store.write(hold_all, served.ulak.store.owner, 5)
        assert held == 2
        assert (await served.get("/api/db")).body["held"] == 2
        assert (await served.get(f"/api/jobs/{waiting}")).body["status"] == "deferred"
        new = await served.enqueue("mail")
        await served.settled(new)
        assert (await served.post("/api/db/resume")).body == {"resumed": 2}
        assert (await served.get(f"/api/jobs/{later}")).body["dueAt"] == due_at
        await served.settled(waiting, "ready")
    assert ran == [int(new)]
