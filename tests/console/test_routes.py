"""Routes that the console needs and any client may use: filters, progress of a redrive, tasks, templates, reveals."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.api.serving import serving, with_deaths
from ulak.clock import to_datetime
from ulak.compute import Task, TaskType
from ulak.spine.units.hold import hold_all


@pytest.fixture
async def served():
    async with serving(with_deaths) as one:
        yield one


async def test_jobs_are_found_by_key_and_by_the_time_of_their_accept(served):
    first = await served.enqueue("mail", {}, key="ayse")
    second = await served.enqueue("mail", {}, key="berat")
    listed = (await served.get("/api/jobs?key=ayse")).body["jobs"]
    assert [one["id"] for one in listed] == [first]
    at = (await served.get(f"/api/jobs/{second}")).body["acceptedAt"]
    after = (await served.get(f"/api/jobs?acceptedAfter={at}")).body["jobs"]
    assert second in [one["id"] for one in after]
    before = (await served.get("/api/jobs?acceptedBefore=2021-01-01T00:00:00Z")).body["jobs"]
    assert before == []
    assert (await served.get("/api/jobs?acceptedAfter=yesterday")).status == 400


async def test_a_redrive_at_a_rate_tells_its_progress_and_can_be_stopped(served):
    assert (await served.get("/api/dead/redrive")).body["state"] == "none"
    assert (await served.ask("DELETE", "/api/dead/redrive")).status == 409
    for number in range(3):
        await served.settled(await served.enqueue("doomed", {"to": str(number)}), "dead")
    begun = await served.post("/api/dead/redrive", {"all": True, "ratePerSecond": 0.01})
    assert (begun.status, begun.body["matched"], begun.body["continues"]) == (200, 3, True)
    async with asyncio.timeout(30):
        with served.ulak.loops.watching() as news:
            while (found := (await served.get("/api/dead/redrive")).body)["redriven"] < 1:
                await served.ulak.clock.wait(news, 0.05)
    assert (found["state"], found["matched"], found["ratePerSecond"]) == ("running", 3, 0.01)
    stopped = (await served.ask("DELETE", "/api/dead/redrive")).body
    assert (stopped["state"], stopped["redriven"]) == ("stopped", 1)
    assert (await served.get("/api/audit")).body["items"][0]["verb"] == "dead.redrive.stop"


async def test_a_reveal_is_written_to_the_audit_log(served):
    identifier = await served.enqueue("mail", {"secret": "open sesame"})
    masked = (await served.get(f"/api/jobs/{identifier}")).body["payload"]
    assert "open sesame" not in str(masked)
    assert (await served.get("/api/audit")).body["items"] == []
    shown = (await served.get(f"/api/jobs/{identifier}?reveal=true")).body["payload"]
    assert shown == {"secret": "open sesame"}
    (line,) = (await served.get("/api/audit")).body["items"]
    assert (line["who"], line["verb"], line["object"]) == ("loopback", "payload.reveal", f"job {identifier}")


async def test_compute_tasks_are_listed_with_their_scripts(tmp_path):
    (tmp_path / "double.py").write_text("def main(params, context):\n    return params['n'] * 2\n", encoding="utf-8")
    async with serving(**{"compute.script_root": str(tmp_path)}) as served:
        task = await served.ulak.compute.submit(Task.create("double.py", {"n": 4}, TaskType.IO_BOUND))
        await served.ulak.compute.result(task, 30)
        page = (await served.get("/api/compute/tasks", headers={})).body
    (listed,) = page["items"]
    assert (listed["task_id"], listed["status"], listed["script_path"]) == (str(task), "SUCCESS", "double.py")
    assert page["next"] is None


async def test_timers_are_listed_page_by_page_also_those_of_one_millisecond(served):
    due = served.ulak.clock.now() + 60_000
    made = [await served.enqueue("mail", {}, dueAt=to_datetime(due + n // 2).isoformat()) for n in range(5)]
    seen, after = [], ""
    for _ in range(3):
        page = (await served.get(f"/api/timers?limit=2{after}")).body
        seen += [one["id"] for one in page["items"]]
        after = f"&after={page['next']}"
    assert (seen, page["next"]) == (made, None)
    assert (await served.get("/api/timers?after=soon")).status == 400


async def test_compute_tasks_are_read_on_with_after(tmp_path):
    (tmp_path / "double.py").write_text("def main(params, context):\n    return params['n'] * 2\n", encoding="utf-8")
    async with serving(work=False, **{"compute.script_root": str(tmp_path)}) as served:
        made = [await served.ulak.compute.submit(Task.create("double.py", {"n": n}, TaskType.IO_BOUND)) for n in "12"]
        first = (await served.get("/api/compute/tasks?limit=1")).body
        second = (await served.get(f"/api/compute/tasks?limit=1&after={first['next']}")).body
    assert [page["items"][0]["task_id"] for page in (first, second)] == [str(one) for one in reversed(made)]


async def test_a_template_is_previewed_in_each_of_its_languages(served):
    names = [one["name"] for one in (await served.get("/api/templates")).body["items"]]
    assert "code" in names
    previews = (await served.post("/api/templates/code/preview", {"variables": {"code": "4711", "minutes": 5}})).body
    assert [one["language"] for one in previews] == ["en", "tr"]
    assert all("4711" in one["body"] for one in previews)
    (missing, _) = (await served.post("/api/templates/code/preview", {"variables": {}})).body
    assert missing["body"] is None
    assert "code" in missing["error"]
    assert (await served.post("/api/templates/nothing/preview", {"variables": {}})).status == 404


async def test_an_endpoint_is_named_by_its_id_where_its_address_is_masked(served):
    url = "https://hooks.masal.example/secret-path"
    await served.post("/api/webhook-endpoints", {"url": url})
    (listed,) = (await served.get("/api/webhook-endpoints")).body
    assert "secret-path" not in listed["url"]
    assert (listed["attempts"], listed["successRate"]) == (0, None)
    sent = await served.post("/api/webhook-endpoints/test", {"id": listed["id"]})
    assert sent.status == 202
    assert (await served.get(f"/api/webhook-endpoints/attempts?id={listed['id']}")).status == 200
    assert (await served.post("/api/webhook-endpoints/test", {"id": "0" * 16})).status == 404
    assert (await served.post("/api/webhook-endpoints/test", {})).status == 400


async def test_an_endpoint_gets_a_new_secret_and_everything_else_of_it_stays(served):
    url = "https://hooks.masal.example/secret-path"
    first = (await served.post("/api/webhook-endpoints", {"url": url})).body["secret"]
    await served.ulak.notify.endpoints.disable(url, "it answered 410")
    (listed,) = (await served.get("/api/webhook-endpoints")).body
    made = await served.post("/api/webhook-endpoints/rotate", {"id": listed["id"]})
    assert (made.status, list(made.body)) == (200, ["secret"])  # the address stays masked
    assert made.body["secret"].startswith("whsec_")
    assert made.body["secret"] != first
    (after,) = (await served.get("/api/webhook-endpoints")).body
    assert (after["secrets"], after["disabledAt"]) == (2, listed["disabledAt"])
    assert (await served.post("/api/webhook-endpoints/rotate", {"id": "0" * 16})).status == 404
    assert (await served.post("/api/webhook-endpoints/rotate", {"url": "https://other.example/"})).status == 404


async def test_events_say_which_is_the_newest(served):
    await served.settled(await served.enqueue("mail", {}))
    page = (await served.get("/api/events?limit=1")).body
    assert page["newest"] > page["after"] == 1
    last = (await served.get(f"/api/events?after={page['newest'] - 1}")).body
    assert [one["seq"] for one in last["events"]] == [page["newest"]]


async def test_the_events_page_begins_with_the_newest_and_leads_to_older_ones(served):
    for _ in range(20):
        await served.settled(await served.enqueue("mail", {}))
    newest = (await served.get("/api/events?limit=1")).body["newest"]
    shown = (await served.get("/console/events?lang=en")).text
    rows = [int(one) for one in re.findall(r'<tr id="p1-(\d+)"', shown)]
    assert rows == list(range(newest, newest - 50, -1))
    older = re.search(r'class="more" href="\?after=(\d+)"', shown)
    assert older is not None
    assert f'id="p1-{newest - 50}"' in (await served.get(f"/console/events?after={older[1]}")).text


async def test_the_overview_tells_of_a_full_pool_and_of_what_a_restore_has_held():
    async with serving(work=False, **{"spine.capacity": 2}) as served:
        for _ in range(2):
            await served.enqueue("shop.ship", {})
        await served.ulak.sampler.take()
        shown = (await served.get("/console/?lang=en")).text
        assert "Full pools: shop.ship." in shown
        assert "shop.ship is full" in shown
        held = await served.ulak.store.write(hold_all, served.ulak.store.owner, 5)
        await served.ulak.sampler.take()
        assert (await served.get("/api/overview")).body["totals"]["restored"] == held == 2
        assert "2 jobs are held by a restore" in (await served.get("/console/?lang=en")).text


async def test_an_unknown_endpoint_has_no_page(served):
    assert (await served.get("/console/endpoints/0123456789abcdef")).status == 404


async def test_a_page_that_looks_does_not_keep_a_server_from_stopping():
    async with serving() as served:
        stream = await served.session.get(f"{served.address}/api/overview/stream")
        assert await stream.content.readline() == b": following\n"
        served.door.leave()  # as the server does before it waits for its last answers
        async with asyncio.timeout(30):
            rest = await stream.content.read()
    assert rest.count(b"event: overview") <= 2
