"""Every action of the console, clicked in a real browser, and its effect read over the API."""

from __future__ import annotations

import json

import pytest
import pytest_asyncio

from tests.browser.devtools import chromium, needs_browser
from tests.browser.town import DARK, town, until

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def console(tmp_path_factory):
    async with town(tmp_path_factory.mktemp("town")) as served, chromium() as browser, browser.tab() as tab:
        await tab.look(width=1280, scheme="light")
        yield served, tab


async def show(console, path):
    served, tab = console
    joined = "&" if "?" in path else "?"
    await tab.show(f"{served.address}/console/{path}{joined}lang=en")
    return served, tab


async def click(tab, label, *, row=""):
    """The button of that label, in the row that holds a text."""
    where = f"""[...document.querySelectorAll("button[data-path]")].find(one => one.textContent === {json.dumps(label)}
        && (one.closest("tr") ?? document.body).textContent.includes({json.dumps(row)}))"""
    await tab.until(f"!!({where})")
    await tab.value(f"({where}).setAttribute('data-test', 'it')")
    await tab.click("[data-test=it]")
    await tab.value("document.querySelector('[data-test=it]')?.removeAttribute('data-test')")
    await tab.until("document.querySelector('#confirm').open")
    return await tab.value("document.querySelector('#confirm-h').textContent")


async def agree(tab, *, good=True, **entries):
    """Fill in what the dialog asks for, say yes, and wait for what the page tells."""
    assert await tab.value("document.activeElement.value") == "no"  # the harmless button has the focus
    for name, value in entries.items():
        field = f"document.querySelector('#confirm [name=\"{name}\"]')"
        await tab.value(f"{field}.value = {json.dumps(str(value))}")
    await tab.value("document.querySelector('#toasts').replaceChildren()")
    await tab.click("#confirm button[value=yes]")
    await tab.until("!!document.querySelector('#toasts .toast')")
    told = await tab.value(
        "document.querySelector('#toasts .toast').className + document.querySelector('#toasts span').textContent"
    )
    assert ("s-done" in told) is good, told
    return told


async def test_a_waiting_job_is_cancelled(console):
    served, tab = await show(console, "jobs?kind=mail&status=deferred")
    job = (await served.get("/api/jobs?kind=mail&status=deferred")).body["jobs"][0]["id"]
    assert await click(tab, "Cancel job", row=job) == f"Cancel job {int(job):,}?".replace(",", "")
    await agree(tab)
    assert (await served.get(f"/api/jobs/{job}")).body["status"] == "cancelled"


async def test_saying_no_changes_nothing(console):
    served, tab = await show(console, "dead")
    before = (await served.get("/api/dead")).body
    await click(tab, "Drop")
    await tab.press("Escape")
    await tab.until("!document.querySelector('#confirm').open")
    assert (await served.get("/api/dead")).body == before


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


async def test_all_that_fit_are_sent_again_after_a_dry_run_and_can_be_stopped(console):
    served, tab = await show(console, "dead?kind=doomed")
    assert await click(tab, "Send all that fit again") == "Send 3 dead letters again?"
    await agree(tab, ratePerSecond="0.01")
    running = await until(served, "/api/dead/redrive", lambda body: body["redriven"] == 1)
    assert (running["state"], running["matched"]) == ("running", 3)
    await show(console, "dead")
    await tab.until("document.querySelector('main').innerText.includes('1 of 3')")
    assert await click(tab, "Stop after 1") == "Stop after 1 of 3?"
    await agree(tab)
    assert (await served.get("/api/dead/redrive")).body["state"] == "stopped"


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


async def test_a_queue_is_paused_bounded_and_resumed(console):
    served, tab = await show(console, "kinds")
    await click(tab, "Bound", row="report.nightly")
    await agree(tab, concurrency="7")
    kinds = {one["kind"]: one for one in (await served.get("/api/kinds")).body["items"]}
    assert kinds["report.nightly"]["concurrency"] == 7
    await show(console, "kinds")
    assert await click(tab, "Pause", row="report.nightly") == "Pause report.nightly?"
    await agree(tab)
    kinds = {one["kind"]: one for one in (await served.get("/api/kinds")).body["items"]}
    assert kinds["report.nightly"]["paused"] is True
    await show(console, "kinds")
    await click(tab, "Resume", row="report.nightly")
    await agree(tab)
    kinds = {one["kind"]: one for one in (await served.get("/api/kinds")).body["items"]}
    assert kinds["report.nightly"]["paused"] is False


async def test_a_cron_entry_is_run_now(console):
    served, tab = await show(console, "timers")
    assert await click(tab, "Run now") == "Run nightly now?"
    await agree(tab)
    await until(served, "/api/jobs?kind=report.nightly", lambda body: body["jobs"][0]["status"] == "done")


async def test_a_payload_is_revealed_and_hidden_again(console):
    served, tab = console
    job = (await served.get("/api/jobs?kind=mail&status=done")).body["jobs"][0]["id"]
    await show(console, f"jobs/{job}")
    assert "ayse@example.com" not in await tab.value("document.body.innerText")
    await tab.click("[data-reveal]")
    await tab.until("document.querySelector('#payload').innerText.includes('ayse@example.com')")
    assert (await served.get("/api/audit")).body["items"][0]["object"] == f"job {job}"
    await tab.click("[data-reveal]")
    await tab.until("!document.querySelector('#payload').innerText.includes('ayse@example.com')")


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


async def test_a_template_is_previewed_in_both_languages(console):
    _, tab = await show(console, "templates/code")
    await tab.click("[data-preview] button")
    await tab.until("document.querySelectorAll('.previews section').length === 2")
    assert await tab.value("[...document.querySelectorAll('.previews section')].map(one => one.lang)") == ["en", "tr"]


async def test_a_task_is_cancelled_with_a_reason(console):
    served, tab = await show(console, "dispatch")
    task = (await served.get("/tasks")).body["items"][0]["id"]
    assert await tab.value("document.querySelector('[data-until]').textContent.includes(':')")
    await click(tab, "Cancel task")
    await agree(tab, reason="nobody is ill any more")
    found = (await served.get(f"/tasks/{task}")).body
    assert (found["status"], found["reason"]) == ("CANCELLED", "nobody is ill any more")


async def test_a_plan_is_simulated_and_a_run_is_cancelled(console):
    served, tab = await show(console, "plans/1")
    assert "Water in" in await tab.value("document.querySelector('svg.plan').textContent")
    await tab.click("[data-simulate] button")
    await tab.until("document.querySelectorAll('.simulated tbody tr').length >= 2")
    run = (await served.get("/api/actions/runs")).body["items"][0]["run_id"]
    await show(console, f"runs/{run}")
    await click(tab, "Cancel run")
    await agree(tab)
    assert (await served.get(f"/api/actions/runs/{run}")).body["state"] == "cancelled"


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


async def test_a_key_is_revoked(console):
    served, tab = console
    made = (await served.post("/api/keys", {"name": "visitor", "scopes": ["look"]})).body
    await show(console, "keys")
    assert await click(tab, "Revoke", row="visitor") == "Revoke the key visitor?"
    await agree(tab)
    keys = {one["id"]: one for one in (await served.get("/api/keys")).body["keys"]}
    assert keys[made["id"]]["revokedAt"] is not None
