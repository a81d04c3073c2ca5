"""A page that stays open: figures that move, focus that stays, the keyboard alone, a server that goes and returns."""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp
import pytest
import pytest_asyncio

from tests.api.serving import Served, settings_for, with_deaths
from tests.browser.devtools import chromium, needs_browser
from ulak import Ulak
from ulak.http.app import build_app
from ulak.http.server import address_of, listen, listening

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]
FOCUS = "(document.activeElement.closest('tr')?.id ?? document.activeElement.tagName)"


class Door:
    """A server that can be closed and opened again at the same address, over one store."""

    def __init__(self, ulak, session):
        self.ulak, self._session, self._open = ulak, session, contextlib.AsyncExitStack()
        self.served = None

    async def open(self):
        port = 0 if self.served is None else int(self.served.address.rpartition(":")[2])
        listener = listen(self.ulak.settings.http.model_copy(update={"port": port}))
        self._open.callback(listener.close)
        door = build_app(self.ulak)
        await self._open.enter_async_context(door.life())
        await self._open.enter_async_context(listening(door, listener))
        self.served = Served(self.ulak, door, address_of(listener), self._session)

    async def close(self):
        await self._open.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened():
    ulak = Ulak(settings=settings_for())
    with_deaths(ulak)
    async with ulak, aiohttp.ClientSession() as session:
        door = Door(ulak, session)
        await door.open()
        for number in range(5):
            await door.served.settled(await door.served.enqueue("mail", {"n": number}))
        async with chromium() as browser, browser.tab() as tab:
            await tab.look(width=1280, scheme="light")
            yield door, tab, browser
        await door.close()


async def show(opened, path):
    door, tab, _ = opened
    await tab.show(f"{door.served.address}/console/{path}?lang=en")
    return door, tab


async def test_the_overviews_figures_move_without_a_reload(opened):
    door, tab = await show(opened, "")
    await tab.until("document.querySelector('[data-f]').textContent !== ''")
    await tab.value("window.stays = true")
    before = await tab.value("document.querySelector('#p-done').getAttribute('d')")
    await asyncio.gather(*(door.served.enqueue("mail", {}) for _ in range(50)))
    await tab.until(f"document.querySelector('#p-done').getAttribute('d') !== {before!r}")
    assert await tab.value("window.stays")


async def test_a_row_keeps_the_focus_while_newer_ones_wait(opened):
    door, tab = await show(opened, "jobs")
    await tab.value("document.querySelector('tbody tr').focus()")
    await tab.press("ArrowDown")
    await tab.press("j")
    await tab.press("k")
    row = await tab.value(FOCUS)
    assert row == await tab.value("document.querySelectorAll('tbody tr')[1].id")
    await door.served.enqueue("mail", {})
    await tab.until("document.querySelector('.newer')?.textContent.includes('newer')")
    assert await tab.value(FOCUS) == row
    await tab.press("Enter")
    await tab.until("location.pathname.startsWith('/console/jobs/')")


async def test_a_list_shows_newer_rows_where_nobody_is_busy(opened):
    door, tab = await show(opened, "jobs")
    job = await door.served.enqueue("mail", {})
    await tab.until(f"document.querySelector('main').innerText.includes('{job}')")


async def test_a_detail_stays_open_while_newer_rows_move_it_down(opened):
    long = {"name": "n" * 100, "scopes": ["look"]}
    door, tab = opened[0], opened[1]
    await door.served.post("/api/keys", long)
    await show(opened, "audit")
    row = await tab.value("document.querySelector('tr:has(details)').id")
    await tab.click("tr details summary")
    await tab.value("document.activeElement.blur()")
    await door.served.post("/api/keys", long)
    await tab.until("document.querySelectorAll('tr details').length === 2")
    opened_rows = "[...document.querySelectorAll('details[open]')].map(one => one.closest('tr').id)"
    assert await tab.value(opened_rows) == [row]


async def test_the_keyboard_alone_reaches_an_action_and_comes_back_to_it(opened):
    door, tab, _ = opened
    job = await door.served.enqueue("mail", {}, delaySeconds=3600)
    await show(opened, f"jobs/{job}")
    await tab.press("Tab")
    assert await tab.value("document.activeElement.className") == "skip"
    await tab.press("Enter")
    await tab.until("location.hash === '#main'")
    for _ in range(10):
        await tab.press("Tab")
        if await tab.value("document.activeElement.textContent") == "Cancel job":
            break
    outline = await tab.value("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    await tab.press("Enter")
    await tab.until("document.querySelector('#confirm').open")
    assert await tab.value("document.activeElement.textContent") == "Keep it"
    await tab.press("Escape")
    await tab.until("document.activeElement.textContent === 'Cancel job'")
    assert (await door.served.get(f"/api/jobs/{job}")).body["status"] == "deferred"


async def test_a_lost_connection_is_told_and_the_picture_stays_until_the_server_is_back(opened):
    door, tab = await show(opened, "")
    await tab.until("document.querySelector('#offline').hidden")
    figure = await tab.value("document.querySelector('main').innerText.includes('Latest jobs')")
    await door.close()
    await tab.until("!document.querySelector('#offline').hidden")
    told = await tab.value("document.querySelector('#offline').innerText")
    assert "No connection since" in told
    assert await tab.value("document.querySelector('#live').textContent") == "Offline"
    await tab.until("/What you see is 0:0[1-9] old/.test(document.querySelector('#offline').innerText)")
    assert figure
    assert await tab.value("document.querySelector('main').innerText.includes('Latest jobs')")
    await door.open()
    await tab.click("#offline button")
    await tab.until("document.querySelector('#offline').hidden")
    assert await tab.value("document.querySelector('#live').textContent") == "Live"


async def test_a_hidden_tab_gives_its_connection_back_so_that_eight_tabs_work(opened):
    door, _, browser = opened
    async with contextlib.AsyncExitStack() as tabs:
        for _ in range(8):  # a browser has six connections to a server
            tab = await tabs.enter_async_context(browser.tab())
            await tab.show(f"{door.served.address}/console/jobs?lang=en", width=1280)
            assert await tab.value("fetch('/api/workers').then(one => one.status)") == 200
            await tab.value("Object.defineProperty(document, 'hidden', {get: () => true})")
            await tab.value("document.dispatchEvent(new Event('visibilitychange'))")


async def test_language_and_theme_are_chosen_by_links_and_kept(opened):
    _, tab = await show(opened, "jobs")
    await tab.click("nav a[hreflang=tr]")
    await tab.until("document.documentElement.lang === 'tr'")
    assert await tab.value("document.querySelector('h1').textContent.trim()") == "İşler"
    await tab.click("nav a[href*='theme=dark']")
    await tab.until("document.documentElement.dataset.theme === 'dark'")
    await tab.until("getComputedStyle(document.body).backgroundColor === 'rgb(14, 18, 22)'")
    await tab.click("nav a[href$='theme=']")
    await tab.until("document.documentElement.dataset.theme === undefined")
    await tab.click("nav a[hreflang=en]")
    await tab.until("document.documentElement.lang === 'en'")
