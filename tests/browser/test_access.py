"""What a page of another origin can do to the console in a real browser: nothing. And the form that asks for a key."""

from __future__ import annotations

import pytest
import pytest_asyncio
from aiohttp import web

from tests.api.serving import serving
from tests.browser.devtools import chromium, needs_browser

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened():
    async with chromium() as browser, serving() as served, elsewhere() as address:
        yield browser, served, address


class elsewhere:  # noqa: N801 - a context of this module
    """A page on another port of this machine: another origin."""

    async def __aenter__(self):
        application = web.Application()

        async def page(_):
            return web.Response(text="<!doctype html><title>elsewhere</title><body>", content_type="text/html")

        application.router.add_get("/", page)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_):
        await self._runner.cleanup()


async def jobs_of(served):
    return (await served.get("/api/jobs")).body["jobs"]


async def test_a_fetch_from_another_origin_neither_reads_nor_writes(opened):
    browser, served, address = opened
    async with browser.tab() as tab:
        await tab.show(f"{address}/")
        for options in ("{}", "{mode: 'no-cors'}", "{method: 'POST', mode: 'no-cors', body: '{\"kind\": \"evil\"}'}"):
            asked = f"fetch('{served.address}/api/jobs', {options}).then(one => one.text())"
            read = await tab.value(f"{asked}.then(text => text, () => 'refused')")
            assert read in {"refused", ""}, options
    assert await jobs_of(served) == []


async def test_a_form_from_another_origin_is_refused(opened):
    browser, served, address = opened
    async with browser.tab() as tab:
        await tab.show(f"{address}/")
        await tab.value(
            f"""(() => {{
              const form = document.createElement("form");
              form.method = "post"; form.enctype = "text/plain"; form.action = "{served.address}/api/jobs";
              form.innerHTML = '<input name=\\'{{"kind": "evil", "payload": "\\' value=\\'"}}\\'>';
              document.body.append(form); form.submit();
            }})()"""
        )
        await tab.event("Page.loadEventFired")
        assert "another site" in await tab.value("document.body.innerText")
    assert await jobs_of(served) == []


async def test_a_frame_of_another_origin_stays_empty(opened):
    browser, served, address = opened
    async with browser.tab() as tab:
        await tab.show(f"{address}/")
        await tab.value(
            f"""new Promise(done => {{
              const frame = document.createElement("iframe"); frame.src = "{served.address}/console/";
              frame.onload = done; document.body.append(frame);
            }}).then(() => true)"""
        )
        answers = [
            one["response"]
            for one in tab.events_for("Network.responseReceived")
            if "/console/" in one["response"]["url"]
        ]
        assert all(one["status"] == 403 or "frame-ancestors 'none'" in str(one["headers"]) for one in answers)
        assert any(one["status"] == 403 for one in answers)


async def test_the_form_takes_a_key_and_a_page_acts_with_its_cookie(monkeypatch, opened):
    browser, *_ = opened
    monkeypatch.setattr("ulak.http.access.Access.check_start", lambda *_: None)
    async with serving(**{"http.require_keys": True}) as locked, browser.tab() as tab:
        key = await locked.make_key("admin", "jobs")
        job = (await locked.post("/api/jobs", {"kind": "a.b"}, key=key)).body["id"]
        await tab.show(f"{locked.address}/console/jobs?lang=en", width=390)
        assert "/console/login" in await tab.value("location.href")
        await tab.value("document.querySelector('input[name=key]').focus()")
        await tab.write("ulak_wrong_key")
        await tab.press("Enter")
        await tab.until("document.querySelector('[role=alert]')?.textContent.includes('not known')")
        await tab.value("document.querySelector('input[name=key]').focus()")
        await tab.write(key)
        await tab.press("Enter")
        await tab.until("location.pathname === '/console/'")
        assert await tab.value("document.cookie.includes('ulak_session')") is False  # scripts can't read it
        await tab.show(f"{locked.address}/console/jobs/{job}?lang=en", width=1280)
        await tab.click("button.risk")
        await tab.until("document.querySelector('#confirm').open")
        await tab.click("#confirm button[value=yes]")
        await tab.until("!!document.querySelector('.toast.s-done')")
        assert (await locked.get(f"/api/jobs/{job}", key=key)).body["status"] == "cancelled"
        await tab.show(f"{locked.address}/docs", width=1280)
        assert "/api/jobs" in await tab.value("document.body.innerText")


async def sign_in(tab, locked, key, path=""):
    await tab.show(f"{locked.address}/console/login?lang=en", width=1280)
    assert not any("/stream" in url for url in tab.asked())  # it would only be refused
    await tab.value("document.querySelector('input[name=key]').focus()")
    await tab.write(key)
    await tab.press("Enter")
    await tab.until("location.pathname === '/console/'")
    await tab.show(f"{locked.address}/console/{path}?lang=en")


async def test_a_session_that_ends_leads_to_the_form_and_not_to_a_lost_connection(monkeypatch, opened):
    browser, *_ = opened
    monkeypatch.setattr("ulak.http.access.Access.check_start", lambda *_: None)
    async with serving(**{"http.require_keys": True}) as locked, browser.tab() as tab:
        admin, key = await locked.make_key("admin"), await locked.make_key("look")
        await sign_in(tab, locked, key, "jobs")
        assert (await locked.ask("DELETE", f"/api/keys/{key.split('_')[1]}", key=admin)).status == 204
        await tab.until("location.pathname === '/console/login'")


async def test_a_key_that_may_not_follow_is_not_told_of_a_lost_connection(monkeypatch, opened):
    browser, *_ = opened
    monkeypatch.setattr("ulak.http.access.Access.check_start", lambda *_: None)
    async with serving(**{"http.require_keys": True}) as locked, browser.tab() as tab:
        await sign_in(tab, locked, await locked.make_key("notify"), "notify")
        await tab.until(
            "performance.getEntriesByType('resource').filter(one => one.name.includes('/console/notify')).length > 0"
        )
        assert await tab.value("document.querySelector('#offline').hidden")
        assert "Messages" in await tab.value("document.querySelector('main').innerText")
