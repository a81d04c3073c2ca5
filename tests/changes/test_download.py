"""Lists over HTTP: validators, a server that fails, a body that ends early, a file that is older than the last."""

from __future__ import annotations

import asyncio
import email.utils
import hashlib

import pytest
from aiohttp import web

from tests.changes.lists import simple, write_lists


class Lists:
    """A server of both files, which may be told to answer otherwise."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.asked: list[tuple[str, int]] = []
        self.etags = True
        self.answer = None
        self.modified: float | None = None

    async def get(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if self.answer is not None and (found := await self.answer(request, name)) is not None:
            self.asked.append((name, getattr(found, "status", 0)))
            return found
        content = (self.folder / name).read_bytes()
        headers = {}
        if self.etags:
            headers["ETag"] = f'"{hashlib.md5(content).hexdigest()}"'
        if self.modified is not None:
            headers["Last-Modified"] = email.utils.formatdate(self.modified, usegmt=True)
        known = self.etags and request.headers.get("If-None-Match") == headers["ETag"]
        self.asked.append((name, 304 if known else 200))
        return web.Response(status=304, headers=headers) if known else web.Response(body=content, headers=headers)


@pytest.fixture
async def served(tmp_path, make):
    lists = Lists(tmp_path / "lists")
    application = web.Application()
    application.router.add_get("/{name}", lists.get)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    lists.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    given = {"changes__gib__pk_url": f"{lists.url}/pk.zip", "changes__gib__gb_url": f"{lists.url}/gb.zip"}
    async with make(**given) as desk:
        yield lists, desk
    await runner.cleanup()


async def test_what_did_not_change_is_not_downloaded(served):
    lists, desk = served
    assert (await desk.publish(range(1, 21))).verdict == "published"
    lists.asked.clear()
    assert (await desk.sync()).verdict == "unchanged"
    assert sorted(lists.asked) == [("gb.zip", 304), ("pk.zip", 304)]


async def test_when_one_file_changed_the_other_is_asked_for_again(served):
    lists, desk = served
    await desk.publish(range(1, 21))
    pk, _ = simple(range(1, 22))
    _, gb = simple(range(1, 21))
    write_lists(lists.folder, pk, gb)
    lists.asked.clear()
    report = await desk.sync()
    assert report.feeds["einvoice"].added == 1
    assert sorted(lists.asked) == [("gb.zip", 200), ("gb.zip", 304), ("pk.zip", 200)]


async def test_the_same_bytes_without_validators_are_unchanged(served):
    lists, desk = served
    lists.etags = False
    await desk.publish(range(1, 21))
    assert (await desk.sync()).verdict == "unchanged"


async def test_a_file_that_changed_within_the_second_of_its_answer_is_not_overlooked(served):
    lists, desk = served
    lists.etags, lists.modified = False, 1_790_000_000
    await desk.publish(range(1, 21))
    lists.modified = 1_790_000_000
    assert (await desk.publish(range(1, 22))).feeds["einvoice"].added == 1


async def test_an_older_file_is_refused(served):
    lists, desk = served
    lists.etags, lists.modified = False, 1_790_000_000
    await desk.publish(range(1, 21))
    lists.modified = 1_780_000_000
    report = await desk.publish(range(1, 22))
    assert (report.verdict, "older than the last" in report.error) == ("refused", True)


async def failing(request, name):
    return web.Response(status=503) if name == "gb.zip" else None


async def short(request, name):
    response = web.StreamResponse(headers={"Content-Length": "100000"})
    await response.prepare(request)
    await response.write(b"PK\x03\x04")
    request.transport.close()
    return response


async def html(request, name):
    return web.Response(text="<html>we are sorry</html>", content_type="text/html")


@pytest.mark.parametrize(
    ("answer", "why"),
    [(failing, "GB: the server answered HTTP 503"), (short, "ended early"), (html, "not a whole ZIP")],
)
async def test_a_failed_download_is_refused_and_changes_nothing(served, answer, why):
    lists, desk = served
    await desk.publish(range(1, 21))
    before = await desk.state()
    lists.answer = answer
    report = await desk.publish(range(1, 22))
    assert (report.status, report.verdict) == ("failed", "refused")
    assert why in report.error
    assert await desk.state() == before
    lists.answer = None
    assert (await desk.sync()).verdict == "published"


async def test_a_server_that_is_not_there_is_refused(make):
    given = {"changes__gib__pk_url": "http://127.0.0.1:9/pk.zip", "changes__gib__gb_url": "http://127.0.0.1:9/gb.zip"}
    async with make(**given) as desk:
        report = await desk.sync()
        assert (report.verdict, "the download failed" in report.error) == ("refused", True)


async def test_a_slow_server_is_given_up(tmp_path, make, served):
    lists, _ = served
    stop = asyncio.Event()

    async def hang(request, name):
        await stop.wait()

    lists.answer = hang
    given = {
        "changes__gib__pk_url": f"{lists.url}/pk.zip",
        "changes__gib__gb_url": f"{lists.url}/gb.zip",
        "changes__download_timeout_seconds": 0.3,
        "changes__folder": str(tmp_path / "other"),
        "store": "memory:",
    }
    async with make(**given) as desk:
        report = await desk.sync()
        assert (report.verdict, "longer than 0.3 s" in report.error) == ("refused", True)
    stop.set()
