"""A real Chromium, spoken to by the DevTools protocol: one browser, and tabs that keep what they complained of."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import tempfile

import aiohttp
import pytest
from yarl import URL

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
    "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--remote-debugging-port=0",
)
ANNOUNCES = b"DevTools listening on "
ENOUGH = 2**24  # bytes of chatter that are taken in unread, so that a full pipe never stops the browser
COMPLAINTS = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Network.loadingFailed")
PATIENCE_SECONDS = 30
# The middle of an element that can be hit there: a page that is still loading moves what was measured a moment ago.
MIDDLE = """selector => {
  const element = document.querySelector(selector);
  if (!element || document.readyState !== 'complete') return null;
  element.scrollIntoView({block: 'center', behavior: 'instant'});
  const box = element.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
  const hit = document.elementFromPoint(x, y);
  return element.contains(hit) ? [x, y] : null;
}"""
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, " ": 32}

REQUIRED = os.environ.get("BROWSER_OF_TESTS") == "required"  # ULAK_BROWSER, see conftest.py
needs_browser = pytest.mark.skipif(
    CHROMIUM is None and not REQUIRED, reason="no Chromium here; `make browser` installs one"
)


class Tab:
    """One page of the browser. Events are kept in the order in which they came."""

    def __init__(self, socket):
        self.socket, self.events, self._numbers = socket, [], itertools.count(1)

    async def start(self):
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")

    async def call(self, method, **params):
        number = next(self._numbers)
        await self.socket.send_json({"id": number, "method": method, "params": params})
        while (answer := await self._receive()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    async def _receive(self):
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.socket.receive_json()

    async def event(self, method):
        while (event := await self._receive()).get("method") != method:
            self.events.append(event)

    async def value(self, expression):
        """What an expression gives; a promise is waited for."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, condition, patience=PATIENCE_SECONDS):
        """Wait inside the page for a condition; what it gives at last."""
        text = f"(() => {{ try {{ return ({condition}) }} catch {{ return null }} }})()"
        async with asyncio.timeout(patience):
            while not (found := await self.value(text)):
                await asyncio.sleep(0.02)  # the page's own time passes meanwhile
        return found

    async def look(self, *, width=None, scheme=None, height=800):
        """The window's width and the reader's colour scheme, also of a page that is open already."""
        if width is not None:
            await self.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
            )
        if scheme is not None:
            await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def show(self, url, *, width=None, scheme=None):
        await self.look(width=width, scheme=scheme)
        self.events.clear()
        await self.call("Page.navigate", url=url)
        await self.event("Page.loadEventFired")

    async def click(self, selector):
        """Scroll to an element and click in its middle, with the mouse, once the page has stopped moving it."""
        x, y = await self.until(f"({MIDDLE})({json.dumps(selector)})")
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def press(self, key):
        more = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        code = KEYS.get(key, ord(key[0].upper()))
        for kind in ("keyDown", "keyUp"):
            await self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                **(more if kind == "keyDown" else {}),
            )  # fmt: skip

    async def write(self, text):
        await self.call("Input.insertText", text=text)

    async def picture(self, *, whole=True):
        found = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])

    def events_for(self, method):
        return [event["params"] for event in self.events if event.get("method") == method]

    def complaints(self):
        return [found for method in COMPLAINTS for found in self.events_for(method)]

    def asked(self):
        """Addresses that the page has asked for since it was shown."""
        return {one["request"]["url"] for one in self.events_for("Network.requestWillBeSent")}


class Browser:
    def __init__(self, tools, session):
        self._tools, self._session = tools.with_scheme("http"), session

    @contextlib.asynccontextmanager
    async def tab(self):
        async with self._session.put(self._tools.with_path("/json/new")) as answer:
            page = await answer.json()
        async with self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = Tab(socket)
            await tab.start()
            yield tab
        async with self._session.get(self._tools.with_path(f"/json/close/{page['id']}")) as answer:
            await answer.read()


@contextlib.asynccontextmanager
async def chromium():
    """It leads its own process group: its children end with it, and nobody else."""
    assert CHROMIUM is not None, "ULAK_BROWSER=required, and there is no Chromium: make browser"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = (CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank")
        process = await asyncio.create_subprocess_exec(
            *command, stderr=asyncio.subprocess.PIPE, start_new_session=True, limit=ENOUGH
        )
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                tools = await announced(process.stderr)
            async with aiohttp.ClientSession() as session:
                yield Browser(tools, session)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()


async def announced(lines):
    async for line in lines:
        if line.startswith(ANNOUNCES):
            return URL(line.removeprefix(ANNOUNCES).decode().strip())
    raise AssertionError("the browser ended before it announced its DevTools")
