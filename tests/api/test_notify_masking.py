"""Planted personal data: in no log line, error, metric, dead letter or default answer of the notify room."""

from __future__ import annotations

import logging
import re

import pytest
import structlog

from tests.api.serving import serving
from tests.api.test_notify import ended
from ulak.cli import logs
from ulak.settings import Log

MAIL, PHONE, USER = "ayse.yilmaz@example.com", "+90 555 123 45 67", "user-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"
TOKEN, TEXT = "tok_51f9a8b7c6d5e4f3a2b1c0d9", "Your sister Zeynep has moved to Karanfil street"
HOOK = f"http://10.0.0.1/hooks/{TOKEN}?key={TOKEN}"
PLANTED = (MAIL, "yilmaz", "555 123", "5551234567", USER, TOKEN, "Zeynep", "Karanfil")
METADATA = {"phone": PHONE, "note": TEXT, "user": USER, MAIL: 1, PHONE: {MAIL: 2}}
COMMON = {"subject": f"For {MAIL}: Zeynep", "body": TEXT, "metadata": METADATA}
REQUESTS = {
    "EMAIL": {"notificationType": "EMAIL", "recipient": MAIL, **COMMON},
    "SMS": {"notificationType": "SMS", "recipient": PHONE, **COMMON},
    "PUSH": {"notificationType": "PUSH", "recipient": USER, **COMMON},
    "IN_APP": {"notificationType": "IN_APP", "recipient": USER, **COMMON},
    "WEBHOOK": {"notificationType": "WEBHOOK", "recipient": HOOK, **COMMON},
}
QUICK = {f"channels.{name}.simulated_delay_seconds": 0 for name in ("email", "sms", "push")}
# A real mail server that nobody runs: the failure is told, the person is not.
NO_MAIL = {"channels.email.simulated": False, "channels.email.host": "127.0.0.1", "channels.email.port": 9}


def found_in(text):
    return [secret for secret in PLANTED if secret in text]


async def plant(served):
    made = {}
    for kind, request in REQUESTS.items():
        made[kind] = (await served.post("/api/notifications", request)).body["id"]
    for kind, identifier in made.items():
        status = {"WEBHOOK": "FAILED", "EMAIL": "RETRYING"}.get(kind, "DELIVERED")
        await ended(served, identifier, status)
    return made


async def test_no_default_answer_shows_what_was_planted():
    async with serving(**QUICK, **NO_MAIL) as served:
        made = await plant(served)
        pages = [f"/api/notifications/{identifier}" for identifier in made.values()]
        pages += ["/api/notifications", "/api/jobs", "/api/dead", "/api/events", "/metrics", "/api/breakers"]
        for path in pages:
            answer = await served.get(path)
            assert (answer.status, found_in(answer.text)) == (200, []), path


async def test_no_refusal_repeats_what_was_planted():
    async with serving(work=False) as served:
        for wrong in (
            {**REQUESTS["EMAIL"], "priority": MAIL},
            {**REQUESTS["EMAIL"], "notificationType": "SMS", "onUncertain": TOKEN},
            {**REQUESTS["WEBHOOK"], "recipient": f"{MAIL} {TOKEN}"},
            {**REQUESTS["SMS"], "body": None, "template": "welcome", "variables": {"title": TEXT}},
            {**REQUESTS["SMS"], "sendAt": PHONE},
            {**REQUESTS["SMS"], "metadata": TEXT},
        ):
            answer = await served.post("/api/notifications", wrong)
            assert (answer.status, found_in(answer.text)) == (400, []), answer.text


async def test_a_text_is_revealed_only_to_who_may_see_it_and_asks():
    async with serving(**QUICK) as served:
        identifier = (await served.post("/api/notifications", REQUESTS["SMS"])).body["id"]
        for path in (f"/api/notifications/{identifier}?reveal=true", "/api/notifications?reveal=true"):
            assert TEXT in (await served.get(path)).text
            assert (await served.get(path, key=await served.make_key("notify"))).status == 403
            assert TEXT in (await served.get(path, key=await served.make_key("notify", "reveal"))).text


async def break_down(served, listing, marking):
    """Both requests meet a fault that nobody foresaw: those are logged."""
    served.ulak.notify.inbox = served.ulak.notify.mark_read = None
    assert (await served.get(listing)).status == 500
    assert (await served.post(marking)).status == 500


@pytest.mark.parametrize("form", ["json", "console"])
async def test_nothing_that_was_planted_reaches_the_log(capsys, form):
    before = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        logs.set_up(Log(level="debug", format=form))
        async with serving(**QUICK, **NO_MAIL) as served:
            made = await plant(served)
            await served.post("/api/notifications/batch", list(REQUESTS.values()))
            await served.get(f"/api/inbox/{USER}")
            await break_down(served, "/api/inbox/Zeynep", "/api/inbox/Karanfil/read")
            await served.post(f"/api/notifications/{made['WEBHOOK']}/resend")
            await ended(served, made["WEBHOOK"], "FAILED")
        written = capsys.readouterr().err
    finally:
        logging.getLogger().handlers[:], level = before
        logging.getLogger().setLevel(level)
        structlog.reset_defaults()
    assert re.search(r"attempt_failed", written)
    assert "request_failed" in written
    assert "/api/inbox/{recipient" in written
    assert found_in(written) == []
