"""EMAIL against a real mail server: the letters it gets, and what becomes of notifications when it misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import email
import email.policy
import socket

import pytest

from tests.notify.conftest import build
from ulak import Invalid
from ulak.testing import advance, drain


def mailing(port, clock, **email_section):
    section = {"simulated": False, "host": "127.0.0.1", "port": port, "tls": "none", **email_section}
    return build("memory:", clock, channels={"email": section})


async def sent(ulak, **fields):
    identifier = await ulak.notify.send("EMAIL", "ada@example.org", "Hello Ada", subject="Hi", **fields)
    await drain(ulak)
    return await ulak.notify.get(identifier)


def letter_of(server):
    (envelope,) = server.letters
    return email.message_from_bytes(envelope.content, policy=email.policy.default)


async def test_a_letter_arrives_with_text_and_html(mail_server, clock):
    server = await mail_server()
    async with mailing(server.port, clock) as ulak:
        view = await sent(ulak, html="<b>Hello Ada</b>")
    letter = letter_of(server)
    assert view.status == "DELIVERED"
    assert (letter["To"], letter["Subject"]) == ("ada@example.org", "Hi")
    assert letter.get_body(("plain",)).get_content().strip() == "Hello Ada"
    assert letter.get_body(("html",)).get_content().strip() == "<b>Hello Ada</b>"


async def test_a_template_gives_subject_text_and_html_in_its_language(mail_server, clock):
    server = await mail_server()
    async with mailing(server.port, clock) as ulak:
        await ulak.notify.send(
            "EMAIL", "ada@example.org", template="welcome", variables={"name": "Ayşe"}, language="tr"
        )
        await drain(ulak)
    letter = letter_of(server)
    assert "Ayşe" in letter.get_body(("html",)).get_content()
    assert "Hoş geldin" in letter["Subject"] + letter.get_body(("plain",)).get_content()


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
async def test_a_refused_letter_fails_at_once(mail_server, clock, command):
    server = await mail_server()
    server.replies[command] = "550 no such user ada@example.org"
    async with mailing(server.port, clock) as ulak:
        view = await sent(ulak)
    assert (view.status, view.attempts) == ("FAILED", 1)
    assert "ada" not in str(view.detail)


@pytest.mark.parametrize("command", ["greeting", "MAIL", "RCPT", "DATA"])
async def test_a_deferred_letter_is_tried_again(mail_server, clock, command):
    server = await mail_server()
    server.replies[command] = "451 greylisted, come back later"
    async with mailing(server.port, clock) as ulak:
        assert (await sent(ulak)).status == "RETRYING"
        server.replies.clear()
        await advance(ulak, 60)
        assert (await ulak.notify.list())[0].status == "DELIVERED"
    assert len(server.letters) == 1


@pytest.mark.parametrize("command", ["MAIL", "RCPT"])
async def test_a_line_that_drops_before_the_letter_is_simply_tried_again(mail_server, clock, command):
    server = await mail_server()
    server.drop_at = command
    async with mailing(server.port, clock) as ulak:
        view = await sent(ulak, on_uncertain="hold")
    assert (view.status, view.uncertain_attempts) == ("RETRYING", 0)


async def test_a_line_that_drops_after_the_letter_is_uncertain(mail_server, clock):
    server = await mail_server()
    server.drop_at = "DATA"
    async with mailing(server.port, clock) as ulak:
        assert (await sent(ulak)).uncertain_attempts == 1
        view = await sent(ulak, on_uncertain="hold")
    assert (view.status, view.attempts, view.uncertain_attempts) == ("HELD", 1, 1)


async def test_a_server_that_never_greets_is_given_up_on_in_time(mail_server, clock):
    server = await mail_server()
    server.greet.clear()
    async with mailing(server.port, clock, timeout_seconds=0.05) as ulak:
        view = await sent(ulak)
    assert (view.status, view.uncertain_attempts) == ("RETRYING", 0)


async def test_as_many_letters_are_under_way_as_the_mail_server_has_slots(mail_server, clock):
    """None of them waits for a connection while its time runs: that would look like a server that does not answer."""
    server = await mail_server()
    all_there, answered = asyncio.Event(), asyncio.Event()

    async def answer_together():
        if len(server.open) == 6:
            all_there.set()
        await answered.wait()

    server.before_reply = answer_together
    async with mailing(server.port, clock, slots_per_destination=6) as ulak:
        for _ in range(20):
            await ulak.notify.send("EMAIL", "ada@example.org", "Hello", subject="Hi")
        await asyncio.wait_for(all_there.wait(), 10)
        answered.set()
        await drain(ulak)
    assert (len(server.letters), server.most_at_once) == (20, 6)


async def test_the_same_letter_is_recognisable_when_it_is_sent_twice(mail_server, clock):
    server = await mail_server()
    server.drop_at = "DATA"
    async with mailing(server.port, clock) as ulak:
        await sent(ulak)
        server.drop_at = None
        await advance(ulak, 60)
    first, second = (email.message_from_bytes(one.content) for one in server.letters)
    assert first["Message-ID"] == second["Message-ID"]


@pytest.mark.parametrize(
    "fields",
    [
        {"subject": "Hi\r\nBcc: eve@example.org"},
        {"metadata": {"headers": {"X-Note": "a\r\nBcc: eve@example.org"}}},
        {"metadata": {"headers": {"Bcc": "eve@example.org"}}},
    ],
)
async def test_no_header_can_be_smuggled_in(mail_server, clock, fields):
    server = await mail_server()
    async with mailing(server.port, clock) as ulak:
        with contextlib.suppress(Invalid):  # told at once where it can be, else when the letter is written
            await ulak.notify.send("EMAIL", "ada@example.org", "Hello", **fields)
        await drain(ulak)
        assert [view.status for view in await ulak.notify.list()] in ([], ["FAILED"])
    assert server.letters == []


async def test_a_mail_server_that_is_down_is_a_destination_with_a_breaker_and_costs_other_types_nothing(clock):
    with contextlib.closing(socket.socket()) as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        port = nobody.getsockname()[1]
        async with mailing(port, clock) as ulak:
            await asyncio.gather(*(ulak.notify.send("EMAIL", f"u{n}@example.org", "Hello") for n in range(1500)))
            await drain(ulak)
            assert {one.destination: one.state for one in ulak.loops.breakers.all()} == {
                f"smtp://127.0.0.1:{port}": "open"
            }
            tally = (await ulak.jobs.tally())["notify.email"]
            assert tally["retried"] < 300  # a breaker's pause holds its slot: the line is not walked through
            inbox = await ulak.notify.send("IN_APP", "ada", "Hello")
            await drain(ulak)
            assert (await ulak.notify.get(inbox)).status == "DELIVERED"


async def test_letters_that_are_put_off_for_their_recipients_do_not_open_the_breaker_of_the_server(mail_server, clock):
    server = await mail_server()
    server.replies["RCPT"] = "451 greylisted, come back later"
    async with mailing(server.port, clock) as ulak:
        await asyncio.gather(*(ulak.notify.send("EMAIL", f"u{n}@example.org", "Hello") for n in range(30)))
        await drain(ulak)
        assert ulak.loops.breakers.stopping() == []
        assert (await ulak.jobs.tally())["notify.email"]["retried"] == 30
