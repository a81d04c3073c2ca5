"""`/docs` in a real browser: what it shows, what it asks for, and that it fits on a telephone. Needs a Chromium."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import tempfile

import pytest
from yarl import URL

from tests.api.serving import serving

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-port=0",
)
ANNOUNCES = b"DevTools listening on "
ENOUGH = 2**24  # bytes of chatter that are taken in unread, so that a full pipe never stops the browser
COMPLAINTS = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Network.loadingFailed")
# What reaches past the window, or has to be scrolled sideways in itself.
TOO_WIDE = """[...document.querySelectorAll("body, body *")].filter(one =>
  one.getBoundingClientRect().right > document.documentElement.clientWidth + 1 ||
  (getComputedStyle(one).display != "inline" && one.scrollWidth > one.clientWidth + 1)).map(one => one.outerHTML)"""

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium, chromium-browser or google-chrome on PATH: install one to run this"
)


class Tab:
    """One page of the browser, spoken to by the DevTools protocol. Events are kept in the order in which they came."""

    def __init__(self, socket):
        self.socket, self.events, self._numbers = socket, [], itertools.count(1)

    async def call(self, method, **params):
        number = next(self._numbers)
        await self.socket.send_json({"id": number, "method": method, "params": params})
        while (answer := await self.socket.receive_json()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    async def event(self, method):
        while (event := await self.socket.receive_json()).get("method") != method:
            self.events.append(event)

    async def value(self, expression):
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    async def show(self, url, *, width, scheme="light"):
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        await self.call("Page.navigate", url=url)
        await self.event("Page.loadEventFired")

    def events_for(self, method):
        return [event["params"] for event in self.events if event.get("method") == method]


@contextlib.asynccontextmanager
async def chromium():
    """Gives the address of its DevTools. It leads its own process group: its children end with it, and nobody else."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = (CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank")
        process = await asyncio.create_subprocess_exec(
            *command, stderr=asyncio.subprocess.PIPE, start_new_session=True, limit=ENOUGH
        )
        try:
            yield await announced(process.stderr)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()


async def announced(lines):
    async for line in lines:
        if line.startswith(ANNOUNCES):
            return URL(line.removeprefix(ANNOUNCES).decode().strip())
    raise AssertionError("the browser ended before it announced its DevTools")


@contextlib.asynccontextmanager
async def looking(*, width, scheme="light"):
    """`/docs` of a real server in a window of that width. A context and no fixture: so the time is the test's own."""
    async with asyncio.timeout(60), serving(work=False) as served, chromium() as tools:
        async with served.session.get(tools.with_scheme("http").with_path("/json/list")) as answer:
            (page,) = [one for one in await answer.json() if one["type"] == "page"]
        async with served.session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = Tab(socket)
            await tab.show(f"{served.address}/docs", width=width, scheme=scheme)
            yield tab, served


async def test_the_browser_shows_every_route_asks_nobody_else_and_has_nothing_to_complain_of():
    async with looking(width=1280) as (tab, served):
        shown = await tab.value("[...document.querySelectorAll('article .call')].map(one => one.innerText)")
        display = await tab.value("getComputedStyle(document.body).display")
    paths = served.door.api.openapi()["paths"]
    assert sorted(shown) == sorted(f"{method.upper()} {path}" for path, found in paths.items() for method in found)
    assert display == "grid"  # the sheet is applied only when its hash is the one that the policy names
    assert {one["request"]["url"] for one in tab.events_for("Network.requestWillBeSent")} == {f"{served.address}/docs"}
    assert [found for method in COMPLAINTS for found in tab.events_for(method)] == []


@pytest.mark.parametrize("width", [380, 710, 1125])
async def test_nothing_of_the_page_is_wider_than_the_window(width):
    async with looking(width=width) as (tab, _):
        assert await tab.value("innerWidth") == width
        assert await tab.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert await tab.value(TOO_WIDE) == []


async def test_a_link_of_the_list_leads_to_its_article_and_the_keyboard_sees_where_it_is():
    async with looking(width=380) as (tab, _):
        await tab.value("document.querySelector('nav a[href=\"#post-api-jobs\"]').click()")
        top = await tab.value("document.querySelector('#post-api-jobs:target').getBoundingClientRect().top")
        for kind in ("keyDown", "keyUp"):
            await tab.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        focused = await tab.value("[document.activeElement.tagName, getComputedStyle(document.activeElement).outline]")
    assert 0 <= top < 40
    assert (focused[0], "solid 2px" in focused[1]) == ("A", True)


async def test_the_page_is_dark_where_the_reader_has_it_dark():
    async with looking(width=380, scheme="dark") as (tab, _):
        assert await tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
