"""Every action of the console, clicked in a real browser, and its effect read over the API."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from tests.browser.clicking import agree, click, clicks, look, show
from tests.browser.devtools import chromium, needs_browser
from tests.browser.town import BLOCKED, DARK, town, until, write_list
from ulak.compute import Task, TaskType
from ulak.spine.breaker import Breaker, save_breakers
from ulak.spine.units.hold import hold_all

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def console(tmp_path_factory):
    folder = tmp_path_factory.mktemp("town")
    store = f"sqlite:///{folder}/ulak.db"
    async with town(folder, store=store) as served, chromium() as browser, browser.tab() as tab:
        served.folder = folder
        await tab.look(width=1280, scheme="light")
        yield served, tab


async def post_failed(served, url=BLOCKED):
    """A message that failed for good; its id."""
    sent = await served.post("/api/notifications", {"notificationType": "WEBHOOK", "recipient": url, "body": "x"})
    await until(served, f"/api/notifications/{sent.body['id']}", lambda body: body["status"] == "FAILED")
    return sent.body["id"]


async def sign_in(console, key):
    _, tab = await show(console, "login")
    await tab.value("document.querySelector('input[name=key]').focus()")
    await tab.write(key)
    await tab.press("Enter")
    await tab.until("location.pathname === '/console/'")


async def endpoint(served, url):
    """A registered endpoint, as the list has it."""
    await served.post("/api/webhook-endpoints", {"url": url})
    listed = (await served.get("/api/webhook-endpoints?reveal=true")).body
    return next(one for one in listed if one["url"] == url)


@clicks("Cancel job: POST /api/jobs/{id}/cancel")
async def test_a_waiting_job_is_cancelled(console):
    served, tab = await show(console, "jobs?kind=mail&status=deferred")
    job = (await served.get("/api/jobs?kind=mail&status=deferred")).body["jobs"][0]["id"]
    assert await click(tab, "Cancel job", row=job) == f"Cancel 1 job, {job}?"
    await agree(tab)
    assert (await served.get(f"/api/jobs/{job}")).body["status"] == "cancelled"


async def test_saying_no_changes_nothing(console):
    served, tab = await show(console, "dead")
    before = (await served.get("/api/dead")).body
    await click(tab, "Drop")
    await tab.press("Escape")
    await tab.until("!document.querySelector('#confirm').open")
    assert (await served.get("/api/dead")).body == before


@clicks(
    "Edit payload: PUT /api/dead/{id}/payload",
    "Send again: POST /api/dead/redrive",
)
async def test_a_dead_letter_is_edited_and_sent_again(console):
    served, tab = console
    job = (await served.get("/api/dead")).body["dead"][0]["id"]
    await show(console, f"jobs/{job}")
    await click(tab, "Edit payload")
    assert "box 0" in await tab.value("document.querySelector('#confirm textarea').value")
    await agree(tab, whole='{"to": "mended"}')
    done = [one["verb"] for one in (await served.get("/api/audit")).body["items"]]
    assert {"payload.reveal", "dead.edit"} <= set(done)
    await show(console, f"jobs/{job}")
    assert await click(tab, "Send again") == "Send 1 dead letter again?"
    await agree(tab)
    died = await until(served, f"/api/jobs/{job}", lambda body: body["status"] == "dead" and "mended" in str(body))
    assert "redriven" in [step["word"] for step in died["timeline"]]


@clicks(
    "Send all matching again: POST /api/dead/redrive",
    "Stop after {redriven}: DELETE /api/dead/redrive",
)
async def test_all_that_fit_are_sent_again_after_a_dry_run_and_can_be_stopped(console):
    served, tab = await show(console, "dead?kind=doomed")
    assert await click(tab, "Send all matching again") == "Send 3 dead letters again?"
    await agree(tab, ratePerSecond="0.01")
    running = await until(served, "/api/dead/redrive", lambda body: body["redriven"] == 1)
    assert (running["state"], running["matched"]) == ("running", 3)
    await show(console, "dead")
    await tab.until("document.querySelector('main').innerText.includes('1 of 3')")
    assert await click(tab, "Stop after 1") == "Stop after 1 of 3?"
    await agree(tab)
    assert (await served.get("/api/dead/redrive")).body["state"] == "stopped"


@clicks(
    "Send {n} again: POST /api/dead/redrive",
    "Drop: DELETE /api/dead/{id}",
)
async def test_those_that_are_selected_are_sent_again_and_one_is_dropped(console):
    served, tab = await show(console, "dead?kind=doomed")
    await until(served, "/api/dead", lambda body: len(body["dead"]) == 3)
    await show(console, "dead?kind=doomed")
    dead = [one["id"] for one in (await served.get("/api/dead")).body["dead"]]
    for job in dead[:2]:
        await tab.click(f"input[value='{job}']")
    assert await click(tab, "Send 2 again") == "Send 2 dead letters again?"
    await agree(tab)
    for job in dead[:2]:
        steps = (await served.get(f"/api/jobs/{job}")).body["timeline"]
        assert "redriven" in [step["word"] for step in steps]
    await show(console, "dead?kind=doomed")
    await click(tab, "Drop", row=dead[2])
    await agree(tab)
    assert (await served.get(f"/api/jobs/{dead[2]}")).status == 404


@clicks(
    "Set limit: PATCH /api/kinds/{kind}",
    "Pause: PATCH /api/kinds/{kind}",
    "Resume: PATCH /api/kinds/{kind}",
)
async def test_a_queue_is_paused_bounded_and_resumed(console):
    served, tab = await show(console, "kinds")
    await click(tab, "Set limit", row="report.nightly")
    await agree(tab, concurrency="7")
    kinds = {one["kind"]: one for one in (await served.get("/api/kinds")).body["items"]}
    assert kinds["report.nightly"]["concurrency"] == 7
    await show(console, "kinds")
    assert await click(tab, "Pause", row="report.nightly") == "Pause report.nightly with 0 unfinished jobs?"
    await agree(tab)
    kinds = {one["kind"]: one for one in (await served.get("/api/kinds")).body["items"]}
    assert kinds["report.nightly"]["paused"] is True
    await show(console, "kinds")
    await click(tab, "Resume", row="report.nightly")
    await agree(tab)
    kinds = {one["kind"]: one for one in (await served.get("/api/kinds")).body["items"]}
    assert kinds["report.nightly"]["paused"] is False


@clicks("Run now: POST /api/cron/{name}/run")
async def test_a_cron_entry_is_run_now(console):
    served, tab = await show(console, "timers")
    assert await click(tab, "Run now") == "Run nightly now?"
    await agree(tab)
    await until(served, "/api/jobs?kind=report.nightly", lambda body: body["jobs"][0]["status"] == "done")


@clicks("reveal")
async def test_a_payload_is_revealed_and_hidden_again(console):
    served, tab = console
    job = (await served.get("/api/jobs?kind=mail&status=done")).body["jobs"][0]["id"]
    await show(console, f"jobs/{job}")
    assert "ayse@example.com" not in await tab.value("document.body.innerText")
    await look(tab, "reveal")
    await tab.until("document.querySelector('#payload').innerText.includes('ayse@example.com')")
    assert (await served.get("/api/audit")).body["items"][0]["object"] == f"job {job}"
    await tab.click("[data-reveal]")
    await tab.until("!document.querySelector('#payload').innerText.includes('ayse@example.com')")


@clicks(
    "Send a test: POST /api/webhook-endpoints/test",
    "Resend failed: POST /api/webhook-endpoints/replay",
    "Cancel message: POST /api/notifications/{id}/cancel",
)
async def test_an_endpoint_is_tested_and_what_failed_is_resent(console):
    served, tab = await show(console, "notify")
    before = len((await served.get("/api/notifications?notificationType=WEBHOOK")).body["items"])
    assert "Send 1 test event" in await click(tab, "Send a test")
    await agree(tab)
    await until(served, "/api/notifications?notificationType=WEBHOOK", lambda body: len(body["items"]) == before + 1)
    await click(tab, "Resend failed")
    await agree(tab)
    message = (await served.get("/api/notifications?notificationType=WEBHOOK")).body["items"][0]["id"]
    await show(console, f"notifications/{message}")
    await click(tab, "Cancel message")
    await agree(tab)
    assert (await served.get(f"/api/notifications/{message}")).body["status"] == "CANCELLED"
    assert DARK.rsplit("/", 1)[0] not in await tab.value("document.body.innerText")  # masked


@clicks("preview")
async def test_a_template_is_previewed_in_both_languages(console):
    _, tab = await show(console, "templates/code")
    await look(tab, "preview")
    await tab.until("document.querySelectorAll('.previews section').length === 2")
    assert await tab.value("[...document.querySelectorAll('.previews section')].map(one => one.lang)") == ["en", "tr"]


@clicks("Cancel task: PUT /tasks/{id}/cancel")
async def test_a_task_is_cancelled_with_a_reason(console):
    served, tab = await show(console, "dispatch")
    task = (await served.get("/tasks")).body["items"][0]["id"]
    assert await tab.value("document.querySelector('[data-until]').textContent.includes(':')")
    await click(tab, "Cancel task")
    await agree(tab, reason="nobody is ill any more")
    found = (await served.get(f"/tasks/{task}")).body
    assert (found["status"], found["reason"]) == ("CANCELLED", "nobody is ill any more")


@clicks(
    "simulate",
    "Cancel run: POST /api/actions/runs/{run_id}/cancel",
)
async def test_a_plan_is_simulated_and_a_run_is_cancelled(console):
    served, tab = await show(console, "plans/1")
    assert "Water in" in await tab.value("document.querySelector('svg.plan').textContent")
    await look(tab, "simulate")
    await tab.until("document.querySelectorAll('.simulated tbody tr').length >= 2")
    run = (await served.get("/api/actions/runs")).body["items"][0]["run_id"]
    await show(console, f"runs/{run}")
    await click(tab, "Cancel run")
    await agree(tab)
    assert (await served.get(f"/api/actions/runs/{run}")).body["state"] == "cancelled"


@clicks("Publish {held} changes: POST /api/changes/{registry}/syncs/{syncId}/approve")
async def test_a_held_snapshot_is_published_up_to_a_ceiling(console):
    served, tab = await show(console, "changes")
    sync = (await served.get("/api/changes/companies/syncs")).body["items"][0]["syncId"]
    await show(console, f"changes/companies/{sync}")
    assert await tab.value("document.querySelectorAll('del').length") > 0
    assert await click(tab, "Publish 300 changes") == "Publish 300 changes?"
    await agree(tab, good=False, ceiling="299")
    await click(tab, "Publish 300 changes")
    await agree(tab)
    await until(served, "/api/changes/companies/syncs", lambda body: body["items"][0]["verdict"] == "published")


@clicks("Revoke: DELETE /api/keys/{id}")
async def test_a_key_is_revoked(console):
    served, tab = console
    made = (await served.post("/api/keys", {"name": "visitor", "scopes": ["look"]})).body
    await show(console, "keys")
    assert await click(tab, "Revoke", row="visitor") == "Revoke 1 key, visitor?"
    await agree(tab)
    keys = {one["id"]: one for one in (await served.get("/api/keys")).body["keys"]}
    assert keys[made["id"]]["revokedAt"] is not None


@clicks("copy")
async def test_an_id_is_copied(console):
    served, tab = console
    job = (await served.get("/api/jobs")).body["jobs"][0]["id"]
    await show(console, f"jobs/{job}")
    await tab.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    await look(tab, "copy")
    await tab.until(f"document.querySelector('#toasts').innerText.includes('Copied: {job}')")
    assert await tab.value("navigator.clipboard.readText()") == job


@clicks("Send again: POST /api/notifications/{id}/resend")
async def test_a_failed_message_is_sent_again(console):
    served, tab = console
    message = await post_failed(served)
    await show(console, f"notifications/{message}")
    assert await click(tab, "Send again") == "Send 1 message again?"
    await agree(tab)
    steps = (await served.get(f"/api/notifications/{message}")).body["timeline"]
    assert "redriven" in [step["what"] for step in steps]


@clicks(
    "Rotate secret: POST /api/webhook-endpoints/rotate",
    "Enable: POST /api/webhook-endpoints/enable",
    "Forget: POST /api/webhook-endpoints/forget",
)
async def test_an_endpoint_gets_a_new_secret_is_enabled_and_forgotten(console):
    served, tab = console
    one = await endpoint(served, "http://127.0.0.1:9/hooks/kavak")
    await served.ulak.notify.endpoints.disable(one["url"], "it answered 410")
    await show(console, f"endpoints/{one['id']}")
    await click(tab, "Rotate secret")
    told = await agree(tab)
    assert await tab.value("document.querySelector('#toasts code').textContent.startsWith('whsec_')"), told
    known = {each["id"]: each for each in (await served.get("/api/webhook-endpoints")).body}
    assert (known[one["id"]]["secrets"], known[one["id"]]["disabledAt"] is None) == (2, False)
    await click(tab, "Enable")
    await agree(tab)
    known = {each["id"]: each for each in (await served.get("/api/webhook-endpoints")).body}
    assert known[one["id"]]["disabledAt"] is None
    assert "Forget 1 endpoint" in await click(tab, "Forget")
    await agree(tab)
    assert one["id"] not in {each["id"] for each in (await served.get("/api/webhook-endpoints")).body}


@clicks("Try at once: POST /api/breakers/reset")
async def test_an_open_breaker_is_closed(console):
    served, tab = console
    now = served.ulak.store.clock.now()
    dark = Breaker("https://dark.example", "open", 5, 1, now + 3_600_000)
    await served.ulak.store.write(save_breakers, [dark])
    await show(console, "breakers")
    await click(tab, "Try at once", row="dark.example")
    await agree(tab)
    assert "dark.example" not in (await served.get("/api/breakers")).text


@clicks("Back up: POST /api/db/backup", "Let {held} jobs go: POST /api/db/resume")
async def test_the_store_is_backed_up_and_held_work_is_let_go(console):
    served, tab = await show(console, "store")
    await click(tab, "Back up")
    await agree(tab, name="clicked.db")
    assert (await asyncio.to_thread((served.folder / "backups/clicked.db").stat)).st_size > 0
    await served.enqueue("mail", {}, delaySeconds=3600)
    held = await served.ulak.store.write(hold_all, served.ulak.store.owner, 5)
    assert (await served.get("/api/db")).body["held"] == held
    await show(console, "store")
    assert await click(tab, f"Let {held} jobs go") == f"Let {held} held jobs go?"
    await agree(tab)
    assert (await served.get("/api/db")).body["held"] == 0


@clicks("Cancel task: POST /api/compute/tasks/{task_id}/cancel")
async def test_a_script_that_runs_is_cancelled(console):
    served, tab = console
    endless = served.folder / "endless.py"
    endless.write_text("import time\n\ndef main(params, context):\n    time.sleep(600)\n", encoding="utf-8")
    task = await served.ulak.compute.submit(Task.create("endless.py", {}, TaskType.CPU_BOUND))
    await sign_in(console, await served.make_key("admin", "jobs", "compute"))  # loopback alone may not
    await show(console, "compute")
    assert await click(tab, "Cancel task", row="endless.py") == "Cancel 1 task?"
    await agree(tab)
    await until(served, f"/api/compute/tasks/{task}", lambda body: body["status"] == "CANCELLED")
    await tab.show(f"{served.address}/console/logout")


@clicks("Sync now: POST /api/changes/{name}/sync")
async def test_a_list_is_synced_now(console):
    served, tab = await show(console, "changes")
    before = len((await served.get("/api/changes/companies/syncs")).body["items"])
    assert await click(tab, "Sync now", row="companies") == "Sync companies now?"
    await agree(tab)
    await until(served, "/api/changes/companies/syncs", lambda body: len(body["items"]) == before + 1)


@clicks("Reject snapshot: POST /api/changes/{registry}/syncs/{syncId}/reject")
async def test_a_held_snapshot_is_filtered_and_rejected(console):
    served, tab = console
    await asyncio.to_thread(write_list, served.folder, "Ortaklar")
    sync = await served.ulak.changes.sync("companies")
    if sync.verdict == "busy":  # one that somebody clicked before still runs
        await served.ulak.changes.wait("companies", sync.sync_id)
        sync = await served.ulak.changes.sync("companies")
    assert sync.verdict == "quarantined", sync
    path = f"changes/companies/{sync.sync_id}"
    await show(console, f"{path}?change=removed")
    assert "No change in the preview matches" in await tab.value("document.querySelector('main').innerText")
    await show(console, path)
    await tab.value("document.querySelector('input[name=contains]').value = '1000000007'")
    fetches = "performance.getEntriesByType('resource').filter((one) => one.initiatorType === 'fetch').length"
    before = await tab.value(fetches)
    await tab.until(f"{fetches} >= {before + 2}")  # drawn again meanwhile; what was typed stays
    await tab.click(".filters button")
    only = "document.querySelectorAll('.diff tbody tr').length === 1"
    await tab.until(f"{only} && document.readyState === 'complete'")  # then its buttons answer
    assert await tab.value("location.search.includes('contains=1000000007')")
    assert await click(tab, "Reject snapshot") == "Reject 300 changes?"
    await agree(tab)
    preview = (await served.get(f"/api/changes/companies/syncs/{sync.sync_id}/preview")).body
    assert preview["held"] is False


@clicks(
    "Acknowledge: POST /api/actions/runs/{run_id}/acknowledge",
    "Send again: POST /api/actions/dead-letters/{id}/redrive",
)
async def test_a_run_is_acknowledged_and_a_dead_action_is_sent_again(console):
    served, tab = console
    await served.ulak.actions.request(1, "clicked", device_id="400000011D081B70", variables={"room": "hall"})
    run = (await served.get("/api/actions/runs")).body["items"][0]["run_id"]
    await show(console, f"runs/{run}")
    await click(tab, "Acknowledge")
    await agree(tab)
    assert (await served.get(f"/api/actions/runs/{run}")).body["state"] == "acknowledged"
    plan = await dead_plan(served)
    await served.ulak.actions.request(plan, "doomed")
    await until(served, "/api/actions/dead-letters", lambda body: len(body["items"]) == 1)
    await show(console, "actions")
    assert await click(tab, "Send again", row="WEBHOOK_BLOCKED") == "Send 1 dead letter again?"
    await agree(tab)
    audited = (await served.get("/api/audit")).body["items"]
    assert "actions.dead_letter.redriven" in [line["verb"] for line in audited]


async def dead_plan(served):
    """A plan whose only step goes where the guard lets nobody."""
    act = served.ulak.actions
    steps = [{"step_order": 1, "channel_type": "webhook", "body": "x"}]
    plan, _ = await act.plans.create({"name": "Nowhere", "steps": steps})
    profile = await act.directory.create_profile({"name": "Nobody", "status": True, "priority": 1})
    channel = await act.directory.create_channel(
        {"profile_id": profile.id, "channel_type": "webhook", "target": BLOCKED}
    )
    await act.directory.trust(channel.id)
    await act.directory.create_route({"action_plan_id": plan.id, "step_order": 1, "recipient_profile_id": profile.id})
    return plan.id
