"""The console over HTTP: every page, in both languages, with and without work; filters, empty states, hostile text."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio

from tests.api.serving import serving
from tests.browser.town import settings_of

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
    assert (await served.get("/console/jobs/12345")).status == 404
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
    seconds = r"[+][0-9]+[.][0-9]{3} s"
    assert re.fullmatch(rf"Timeline: opened {seconds}, searched {seconds}, offered Ayşe {seconds}", told)


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
