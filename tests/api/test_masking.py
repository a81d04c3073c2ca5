"""Planted personal data shows up nowhere, unless a key may reveal it and it is asked for."""

from __future__ import annotations

import json
import logging

import pytest
import structlog

from tests.api.serving import serving
from ulak import Permanent
from ulak.cli import logs
from ulak.settings import Log

MAIL, PHONE, TOKEN = "ayse.yilmaz@example.com", "+90 555 123 45 67", "tok_4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e"
PLANTED = (MAIL, "yilmaz", "555 123", TOKEN, "5551234567")
PAYLOAD = {
    "recipient": MAIL,
    "body": f"call {PHONE}",
    "note": f"{MAIL} has {TOKEN}",
    "deep": [{"phone": PHONE, "mobile": 905551234567}],
    "numbers": [905551234567],
}


def with_leaks(ulak):
    @ulak.handles("leaky")
    async def leaky(job):
        raise Permanent(f"{MAIL} at {PHONE} refused {TOKEN}")

    @ulak.handles("later")
    async def later(job): ...


@pytest.fixture(autouse=True)
def _log_as_before():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


async def planted(served):
    dead = await served.enqueue("leaky", PAYLOAD, key=MAIL, uniqueKey=TOKEN)
    await served.settled(dead, "dead")
    await served.enqueue("later", PAYLOAD, delaySeconds=60, key=f"order:{MAIL}")
    return dead


async def test_no_route_shows_what_was_planted():
    async with serving(with_leaks) as served:
        dead = await planted(served)
        pages = ["/api/jobs", f"/api/jobs/{dead}", "/api/dead", "/api/events", "/metrics", "/api/breakers", "/api/db"]
        for path in pages:
            text = (await served.get(path)).text
            assert [secret for secret in PLANTED if secret in text] == [], path


async def test_nothing_that_was_planted_reaches_the_log(capsys):
    logs.set_up(Log(level="debug", format="json"))
    async with serving(with_leaks) as served:
        await planted(served)
        logging.getLogger("somebody.else").error("could not reach %s", MAIL)
    written = capsys.readouterr().err
    assert "attempt_failed" in written
    assert "could not reach" in written
    assert [secret for secret in PLANTED if secret in written] == []
    assert all(json.loads(line) for line in written.splitlines())


@pytest.mark.parametrize("path", ["/api/jobs/{}?reveal=true", "/api/dead?reveal=true"])
async def test_a_payload_is_revealed_only_to_who_may_see_it(path):
    async with serving(with_leaks) as served:
        where = path.format(await planted(served))
        assert MAIL in (await served.get(where)).text
        assert (await served.get(where, key=await served.make_key("jobs"))).status == 403
        assert (await served.get(where, key=await served.make_key("admin"))).status == 403
        assert MAIL in (await served.get(where, key=await served.make_key("jobs", "reveal"))).text


def test_the_console_log_is_masked_too(capsys):
    logs.set_up(Log(format="console"))
    try:
        raise ValueError(MAIL)
    except ValueError:
        logging.getLogger("x").exception("it failed for %s", MAIL)
    written = capsys.readouterr().err
    assert "ValueError" in written
    assert "yilmaz" not in written
