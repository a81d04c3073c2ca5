"""Every route of the API, asked with the scope `look`, and by a page of another site."""

from __future__ import annotations

import re

import pytest
from yarl import URL

from tests.api.serving import serving
from tests.api.test_notify_masking import NO_MAIL, QUICK, found_in, plant

PROBES = {"/healthz", "/readyz"}
SIGNED = {"/api/actions/acknowledge/{token}", "/api/actions/receipts/{provider}"}  # a signature opens them, not a key
FOREIGN = (
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "http://evil.example"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
)


@pytest.fixture
async def locked(monkeypatch):
    monkeypatch.setattr("ulak.http.access.Access.check_start", lambda *_: None)
    async with serving(**QUICK, **NO_MAIL, **{"http.require_keys": True}) as one:
        one.key = await one.make_key("admin", "notify", "jobs")
        yield one


async def routes(served):
    """Method and path of each, as described and with 1 for every parameter."""
    paths = (await served.get("/openapi.json")).body["paths"]
    found = [(method, path, re.sub(r"{\w+}", "1", path)) for path, methods in paths.items() for method in methods]
    assert len(found) > 100
    return found


async def answer_of(served, method, path, headers):
    """The status, and the text unless it is a stream, which has no end."""
    async with served.session.request(method, URL(served.address + path, encoded=True), headers=headers) as answer:
        endless = answer.content_type == "text/event-stream"
        return answer.status, "" if endless else (await answer.read()).decode("utf-8", "replace")


async def test_look_opens_every_get_of_the_api_masked(locked):
    await plant(locked)
    look = {"authorization": f"Bearer {await locked.make_key('look')}"}
    for method, path, asked in await routes(locked):
        if method == "get":
            status, text = await answer_of(locked, method, asked, look)
            assert status in {200, 400, 404}, path
            assert found_in(text) == [], path


async def test_look_changes_nothing_by_any_route_of_the_api(locked):
    look = {"authorization": f"Bearer {await locked.make_key('look')}"}
    for method, path, asked in await routes(locked):
        if method != "get" and path not in SIGNED:
            assert (await answer_of(locked, method, asked, look))[0] == 403, (method, path)


async def test_without_keys_a_page_of_another_site_gets_nothing_from_any_route_of_the_api():
    async with serving(work=False) as served:
        for method, path, asked in await routes(served):
            if path not in PROBES | SIGNED:
                for marks in FOREIGN:
                    assert (await answer_of(served, method, asked, marks))[0] == 403, (method, path, marks)
        for page in ("/console/", "/console/jobs", "/docs", "/openapi.json", "/metrics"):
            for marks in FOREIGN:
                assert (await answer_of(served, "get", page, marks))[0] == 403, (page, marks)
