"""The console over HTTP: every page, in both languages, with and without work; filters, empty states, hostile text."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio

from tests.api.serving import serving
from tests.browser.town import settings_of
from ulak.clock import to_datetime
from ulak.spine.breaker import Breaker, save_breakers

PATHS = (
    "",
    *("jobs", "dead", "timers", "events", "kinds", "workers", "breakers"),
    *("notify", "dispatch", "compute", "changes", "actions"),
    *("keys", "store", "audit"),
)
HOSTILE = "<script>alert(1)</script>"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served():
    async with serving() as one:
        yield one


@pytest.mark.parametrize("language", ["en", "tr"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.asyncio(loop_scope="module")
async def test_every_page_opens_in_both_languages(served, path, language):
    answer = await served.get(f"/console/{path}?lang={language}")
    assert answer.status == 200
    assert f'<html lang="{language}"' in answer.text
    assert "Not shown" not in answer.text
    assert "Gösterilmiyor" not in answer.text


@pytest.mark.asyncio(loop_scope="module")
async def test_the_root_leads_to_the_console(served):
    answer = await served.session.get(f"{served.address}/", allow_redirects=False)
    assert (answer.status, answer.headers["location"]) == (307, "/console/")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_page_loads_nothing_from_elsewhere_and_runs_nothing_inline(served):
    answer = await served.get("/console/")
    policy = {name.lower(): value for name, value in answer.headers.items()}["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r'(?:src|href)="(?:https?:)?//', answer.text)
    assert not re.search(r"\sstyle=|<script(?![^>]*src=)", answer.text)


@pytest.mark.asyncio(loop_scope="module")
async def test_assets_are_small_and_nothing_else_is_served(served):
    sizes = [
        len((await served.get(f"/console/assets/{name}")).text) for name in ("style.css", "console.css", "console.js")
    ]
    assert 0 < sum(sizes) < 100_000
    assert (await served.get("/console/assets/../console.py")).status == 404
    assert (await served.get("/console/assets/..%2Fconsole.py")).status == 404


@pytest.mark.asyncio(loop_scope="module")
async def test_a_job_is_found_listed_and_drawn(served):
    identifier = await served.enqueue("shop.ship", {"note": HOSTILE})
    listed = await served.get("/console/jobs?kind=shop.ship")
    assert f'href="/console/jobs/{identifier}"' in listed.text
    shown = await served.get(f"/console/jobs/{identifier}")
    assert shown.status == 200
    assert HOSTILE not in shown.text
    missing = await served.get("/console/jobs/12345?lang=tr")
    assert missing.status == 404
    assert '<html lang="tr"' in missing.text
    assert "Burada bir şey yok" in missing.text
    assert (await served.get("/console/nowhere")).status == 404
    assert (await served.get("/console/changes/gib/12345")).status == 404


@pytest.mark.asyncio(loop_scope="module")
async def test_hostile_text_in_a_filter_stays_text(served):
    answer = await served.get("/console/jobs?kind=%3Cscript%3Ealert(1)%3C/script%3E")
    assert HOSTILE not in answer.text


@pytest.mark.asyncio(loop_scope="module")
async def test_the_overview_counts_what_was_accepted(served):
    await served.ulak.sampler.take()
    before = (await served.get("/api/overview")).body["totals"]["accepted"]
    await served.enqueue("shop.ship", {})
    await served.ulak.sampler.take()
    after = (await served.get("/api/overview")).body
    assert after["totals"]["accepted"] == before + 1
    assert after["accounted"] is True
    assert after["states"]["ready"] >= 1


@pytest.mark.asyncio(loop_scope="module")
async def test_language_and_theme_are_remembered(served):
    answer = await served.get("/console/?lang=tr&theme=dark")
    assert 'data-theme="dark"' in answer.text
    again = await served.get("/console/", headers={"cookie": "ulak_lang=tr; ulak_theme=dark"})
    assert "Genel bakış" in again.text
    assert 'data-theme="dark"' in again.text


@pytest.mark.asyncio(loop_scope="module")
async def test_a_drawn_task_is_also_told_in_words_and_no_more_than_happened(served):
    await served.ulak.dispatch.put_helper("ayse", name="Ayşe", latitude=41.0, longitude=29.0)
    view = await served.ulak.dispatch.open(requesterId="nur", category="pharmacy", latitude=41.0, longitude=29.0)
    shown = await served.get(f"/console/tasks/{served.ulak.store.ids.to_text(view.task.id)}?lang=en")
    (told,) = re.findall(r'role="img" aria-label="([^"]*offered Ayşe[^"]*)"', shown.text)
    seconds = r"[+][0-9]+[.][0-9]{3}\u00a0s"
    assert re.fullmatch(rf"Timeline: opened {seconds}, searched {seconds}, offered Ayşe {seconds}", told)


async def test_a_feed_shows_its_newest_changes_and_leads_to_older_ones(tmp_path):
    def write(title):
        lines = ["vkn,title,city", *(f"{number},{title if number < 55 else 'Ada'},Ankara" for number in range(120))]
        (tmp_path / "companies.csv").write_text("\n".join(lines), encoding="utf-8")

    async with serving(**settings_of(tmp_path)) as served:
        assert (await served.get("/console/feeds/companies?lang=en")).status == 200  # nothing was published yet
        for title in ("Ada", "Deniz"):
            write(title)
            await served.ulak.changes.sync("companies")
        shown = (await served.get("/console/feeds/companies?lang=en")).text
        rows = re.findall(r"<td><code>(\d+)</code></td>", shown)
        assert len(rows) == 50
        assert "<del>Ada</del>" in shown
        assert "<ins>Deniz</ins>" in shown
        older = re.search(r'class="more" href="\?after=([^"]+)"', shown)
        first = (await served.get(f"/console/feeds/companies?after={older[1]}")).text
        assert set(re.findall(r"<td><code>(\d+)</code></td>", first)) - set(rows)
        assert 'class="more"' not in first  # what the first sync brought is no change
        assert 'href="/console/feeds/companies"' in (await served.get("/console/changes")).text
        assert (await served.get("/console/feeds/nothing")).status == 404


async def test_a_cause_leads_to_the_letters_that_died_of_it():
    async with serving() as served:
        for recipient in ("http://10.0.0.1/a", "http://10.0.0.1/b"):
            body = {"notificationType": "WEBHOOK", "recipient": recipient, "body": "x"}
            sent = await served.post("/api/notifications", body)
            await served.settled(sent.body["id"], "dead")
        shown = (await served.get("/console/dead?lang=en")).text
        (code,) = {one["code"] for one in (await served.get("/api/dead")).body["dead"]}
        assert f'href="/console/dead?kind=notify.webhook&amp;errorClass=permanent&amp;code={code}"' in shown
        assert "Dead letters: 2. Causes: 1." in shown


async def test_the_menu_counts_what_waits_for_a_person(tmp_path):
    async with serving(**settings_of(tmp_path)) as served:
        for title in ("Ada", "Deniz"):
            lines = ["vkn,title,city", *(f"{number},{title},Ankara" for number in range(300))]
            (tmp_path / "companies.csv").write_text("\n".join(lines), encoding="utf-8")
            await served.ulak.changes.sync("companies")
        shown = (await served.get("/console/jobs?lang=en")).text
        assert re.search(r'href="/console/changes"[^>]*>Changes<span class="count s-held">1<', shown)


async def test_a_time_that_is_picked_is_of_the_consoles_zone():
    async with serving(**{"console.time_zone": "Europe/Istanbul"}) as served:
        job = await served.enqueue("shop.ship", {})
        at = datetime.fromisoformat((await served.get(f"/api/jobs/{job}")).body["acceptedAt"])
        here = at.astimezone(ZoneInfo("Europe/Istanbul"))
        for seconds, found in ((-60, True), (60, False)):
            picked = (here + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
            shown = (await served.get(f"/console/jobs?lang=en&acceptedAfter={picked}")).text
            assert (f'href="/console/jobs/{job}"' in shown) is found
            assert f'name="acceptedAfter" value="{picked}"' in shown
        exact = (await served.get("/console/jobs?acceptedAfter=2026-11-18T08:00:00Z")).text
        assert 'name="acceptedAfter" value="2026-11-18T11:00:00"' in exact


async def test_the_form_that_asks_for_a_key_follows_nothing():
    """Whoever is not known yet has no stream to lose."""
    async with serving() as served:
        shown = (await served.get("/console/login?lang=tr")).text
        assert "console.js" not in shown
        assert 'id="offline"' not in shown
        assert 'href="/console/jobs"' not in shown


async def test_a_held_snapshot_is_shown_whatever_its_identifiers_are_made_of(tmp_path):
    identifiers = [f"{number}/a?b&{{id}}%" for number in range(300)]
    async with serving(**settings_of(tmp_path)) as served:
        for title in ("Ada", "Deniz"):
            lines = ["vkn,title,city", *(f"{one},{title},Ankara" for one in identifiers)]
            (tmp_path / "companies.csv").write_text("\n".join(lines), encoding="utf-8")
            sync = await served.ulak.changes.sync("companies")
        assert sync.verdict == "quarantined"
        shown = await served.get(f"/console/changes/companies/{sync.sync_id}?lang=en")
        assert shown.status == 200
        assert "0/a?b&amp;{id}%" in shown.text
        assert "<del>Ada</del>" in shown.text


@pytest.mark.asyncio(loop_scope="module")
async def test_a_message_and_its_job_lead_to_each_other_and_say_what_is_simulated(served):
    sent = (
        await served.post(
            "/api/notifications", {"notificationType": "SMS", "recipient": "+905551112233", "body": "Merhaba"}
        )
    ).body
    message = sent["id"]
    job = (await served.get(f"/api/notifications/{message}")).body["jobId"]
    await served.settled(job)
    assert f'href="/console/notifications/{message}"' in (await served.get(f"/console/jobs/{job}")).text
    shown = (await served.get(f"/console/notifications/{message}?lang=tr")).text
    assert f'href="/console/jobs/{job}"' in shown
    assert "Benzetim: makineden hiçbir şey çıkmadı." in shown
    listed = (await served.get("/console/notify?lang=en")).text
    assert f">{message}</a>" in listed  # an id stays whole: those of one moment differ only in their middle
    assert "Simulated: email, sms, push, whatsapp, slack; nothing of these leaves the machine." in listed


async def test_the_overview_says_when_a_breaker_opened_and_when_its_destination_is_tried_next():
    async with serving() as served:
        assert (await served.get("/api/overview")).body["incidents"] == []
        until = served.ulak.clock.now() + 60_000
        await served.ulak.store.write(save_breakers, [Breaker("http://127.0.0.1:9", "open", 4, 1, until)])
        await served.ulak.sampler.take()
        overview = (await served.get("/api/overview")).body
        (incident,) = overview["incidents"]
        assert incident["destination"] == "http://127.0.0.1:9"
        assert incident["at"] == overview["at"]
        await served.ulak.sampler.take()
        assert (await served.get("/api/overview")).body["incidents"] == [incident]  # it opened once
        shown = (await served.get("/console/?lang=en")).text
        assert "breaker opened: http://127.0.0.1:9" in shown
        assert f'Failures: 4; next try: <time datetime="{to_datetime(until).isoformat()}"' in shown


async def test_the_overview_tells_what_needs_a_person_from_what_heals_by_itself():
    async with serving() as served:
        forbidden = {"notificationType": "WEBHOOK", "recipient": "http://10.0.0.1/a", "body": "x"}
        sent = await served.post("/api/notifications", forbidden)
        await served.settled(sent.body["id"], "dead")
        until = served.ulak.clock.now() + 60_000
        await served.ulak.store.write(save_breakers, [Breaker("http://127.0.0.1:9", "open", 4, 1, until)])
        await served.ulak.sampler.take()
        shown = (await served.get("/console/?lang=en")).text
    _, _, rest = shown.partition(">Needs a person<")
    person, _, itself = rest.partition(">Heals by itself<")
    itself = itself.partition("</section>")[0]
    assert ("1 dead letter" in person, "1 dead letter" in itself) == (True, False)
    assert ("http://127.0.0.1:9</code> is dark" in itself, "is dark" in person) == (True, False)
