"""Every page of the console in a real browser: two languages, two themes, two widths; full and empty."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from tests.api.serving import serving
from tests.browser.devtools import chromium, needs_browser
from tests.browser.town import town

LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")
LISTS = (
    *("", "jobs", "dead", "timers", "events", "kinds", "workers", "breakers"),
    *("notify", "dispatch", "compute", "changes", "actions", "keys", "store", "audit"),
)
NAMED_ROLES = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "img", "image", "dialog", "navigation"}

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full(tmp_path_factory):
    async with town(tmp_path_factory.mktemp("town")) as served, chromium() as browser, browser.tab() as tab:
        yield served, tab, browser


async def things(served):
    """One page of each kind that shows one thing."""
    job = (await served.get("/api/jobs?kind=doomed")).body["jobs"][0]["id"]
    message = (await served.get("/api/notifications")).body["items"][-1]["id"]
    endpoint = (await served.get("/api/webhook-endpoints")).body[0]["id"]
    task = (await served.get("/tasks")).body["items"][0]["id"]
    run = (await served.get("/api/actions/runs")).body["items"][0]["run_id"]
    sync = (await served.get("/api/changes/companies/syncs")).body["items"][0]["syncId"]
    script = (await served.get("/api/compute/tasks")).body["items"][0]["task_id"]
    return [
        *(f"jobs/{job}", f"notifications/{message}", f"endpoints/{endpoint}", "templates/welcome", f"tasks/{task}"),
        *(f"runs/{run}", "plans/1", f"changes/companies/{sync}", "feeds/companies", f"scripts/{script}"),
    ]


async def trouble_of(tab, served):
    """Everything that is wrong with the page that is shown, at two widths and in two themes."""
    found = []
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            await tab.look(width=width, scheme=scheme)
            found += [f"{width} {scheme}: {one}" for one in await tab.value(LOOKS)]
    found += [f"foreign: {url}" for url in tab.asked() if not url.startswith((served.address, "data:"))]
    return found + [str(one)[:300] for one in tab.complaints()]


async def nameless(tab):
    """What a screen reader could not name, by the browser's own tree."""
    nodes = (await tab.call("Accessibility.getFullAXTree"))["nodes"]
    return [
        node
        for node in nodes
        if not node["ignored"]
        and node["role"]["value"] in NAMED_ROLES
        and not (node.get("name", {}).get("value") or "").strip()
    ]


@pytest.mark.parametrize("language", ["en", "tr"])
async def test_every_page_of_a_busy_town_reads_well(full, language):
    served, tab, _ = full
    found = {}
    for path in (*LISTS, *await things(served)):
        await tab.show(f"{served.address}/console/{path}?lang={language}", width=1280, scheme="light")
        assert await tab.value("document.documentElement.lang") == language
        trouble = [*await trouble_of(tab, served), *map(str, await nameless(tab))]
        shown = await tab.value("document.querySelector('main').innerText")
        if "Not shown:" in shown or "Gösterilmiyor:" in shown:
            trouble.append("a part was refused")
        if trouble:
            found[path] = trouble
    assert found == {}, "\n".join(f"{path or 'overview'}: {one}" for path, all_ in found.items() for one in all_)


async def test_every_page_of_an_empty_store_says_what_fills_it(full):
    *_, browser = full
    async with serving() as served, browser.tab() as tab:
        found = {}
        for path in LISTS:
            await tab.show(f"{served.address}/console/{path}?lang=tr", width=390, scheme="light")
            trouble = await trouble_of(tab, served)
            if trouble:
                found[path] = trouble
        await tab.show(f"{served.address}/console/compute?lang=en", width=1280)
        assert "ulak compute submit hello.py" in await tab.value("document.querySelector('.empty').innerText")
    assert found == {}, "\n".join(f"{path or 'overview'}: {one}" for path, all_ in found.items() for one in all_)


async def test_a_page_is_readable_without_script(full):
    served, tab, _ = full
    await tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        await tab.show(f"{served.address}/console/?lang=en", width=1280, scheme="light")
        text = await tab.value("document.querySelector('main').innerText")
    finally:
        await tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert "Everything that was accepted is accounted for." in text
    assert "3 dead letters" in text
    assert "a snapshot is held back" in text


async def test_the_menu_opens_and_closes_on_a_telephone(full):
    served, tab, _ = full
    await tab.show(f"{served.address}/console/?lang=en", width=390, scheme="light")
    assert not await tab.value("document.querySelector('#nav').checkVisibility()")
    await tab.click(".to-menu")
    await tab.until("document.querySelector('#nav').checkVisibility()")
    await tab.click(".to-close")
    await tab.until("!document.querySelector('#nav').checkVisibility()")
