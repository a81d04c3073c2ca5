"""The same door over PostgreSQL: what it asks with statements of its own works there too."""

from __future__ import annotations

import pytest

from tests.api.serving import serving, with_deaths
from tests.postgres_server import fresh_database
from ulak.access.keys import keep_key, make_key
from ulak.errors import Conflict
from ulak.spine.units.hold import hold_all

pytestmark = pytest.mark.postgres


@pytest.fixture
def address():
    with fresh_database() as found:
        yield found


async def test_dead_letters_keys_and_figures_work_there(address):
    async with serving(with_deaths, store=address) as served:
        identifier = await served.enqueue("doomed", {"to": "ayse@example.com"})
        await served.settled(identifier, "dead")
        assert [one["errorClass"] for one in (await served.get("/api/dead?kind=doomed")).body["dead"]] == ["permanent"]
        assert (await served.post("/api/dead/redrive", {"contains": "mailbox", "dryRun": True})).body["matched"] == 1
        made = await served.post("/api/keys", {"name": "shop", "scopes": ["jobs"]})
        assert (await served.get("/api/jobs", key=made.body["token"])).status == 200
        assert (await served.ask("DELETE", f"/api/keys/{made.body['id']}")).status == 204
        assert (await served.get("/api/db")).body["differences"] == {}
        assert "fsync = off" in (await served.get("/api/db")).body["warnings"][0]
        assert "hunter2" not in (await served.get("/api/db")).text
        assert (await served.post("/api/db/backup", {})).status == 409


async def test_a_key_made_by_another_process_is_found_at_the_next_look(address):
    async with serving(store=address) as served:
        made = make_key("other", ["jobs"], served.ulak.clock.now())
        await served.ulak.store.write(keep_key, made.key)
        assert (await served.get("/api/jobs", key=made.token)).status == 401
        await served.door.ring.load(served.ulak.store)
        assert (await served.get("/api/jobs", key=made.token)).status == 200


async def test_held_work_is_let_go(address):
    async with serving(work=False, store=address) as served:
        identifier = await served.enqueue("mail", key="one")
        assert await served.ulak.store.write(hold_all, served.ulak.store.owner, 5) == 1
        assert (await served.get(f"/api/jobs/{identifier}")).body["status"] == "deferred"
        assert (await served.post("/api/db/resume")).body == {"resumed": 1}


async def test_a_store_that_others_work_on_is_not_held(address):
    async with serving(work=False, store=address) as served, serving(work=False, store=address):
        with pytest.raises(Conflict, match="a process works on this store"):
            await served.ulak.store.write(hold_all, served.ulak.store.owner, 5)
