"""The mail channel against a real SMTP server that accepts, refuses, puts off, stays silent or hangs up."""

from __future__ import annotations

import asyncio
import email
import email.header
import email.policy
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ulak.channels.channel import Message, RecipientGone, Uncertain
from ulak.channels.email import EmailChannel, EmailOptions
from ulak.channels.letter import own_headers, parse_sender
from ulak.channels.letter import write as write_letter
from ulak.clock import ManualClock
from ulak.errors import Failure, Misconfigured, Permanent, Transient

Channels = Callable[..., EmailChannel]


@pytest.fixture
async def channel() -> AsyncIterator[Channels]:
    """Opens a channel to a server's port, and closes it at the end."""
    async with AsyncExitStack() as stack:

        def open_channel(server: Any, clock: Any = None, **options: Any) -> EmailChannel:
            defaults = {"tls": "none", "sender": "Ulak <ulak@example.org>", "local_hostname": "ulak.test"}
            made = EmailChannel(
                EmailOptions(host="127.0.0.1", port=server.port, **{**defaults, **options}), clock=clock
            )
            stack.push_async_callback(made.close)
            return made

        yield open_channel


def parsed(envelope: Any) -> email.message.EmailMessage:
    letter = email.message_from_bytes(envelope.original_content, policy=email.policy.default)
    assert isinstance(letter, email.message.EmailMessage)
    return letter


async def test_a_text_letter_arrives_as_written(mail_server, channel, write):
    server = await mail_server()
    receipt = await channel(server).handle(write(subject="Günaydın ☀", body="Merhaba Ayşe\n.dot\nson"))
    letter = parsed(server.letters[0])
    assert server.letters[0].rcpt_tos == ["ada@example.org"]
    assert server.letters[0].mail_from == "ulak@example.org"
    assert letter["Subject"] == "Günaydın ☀"
    assert letter["From"] == "Ulak <ulak@example.org>"
    assert letter.get_content().splitlines() == ["Merhaba Ayşe", ".dot", "son"]
    assert receipt.provider_id == f"smtp:{letter['Message-ID']}"
    assert receipt.detail == {"reply": "250 OK"}


async def test_html_travels_beside_the_text(mail_server, channel, write):
    server = await mail_server()
    await channel(server).handle(write(body="plain", html="<p>rich</p>"))
    letter = parsed(server.letters[0])
    assert letter.get_content_type() == "multipart/alternative"
    assert [part.get_content().strip() for part in letter.iter_parts()] == ["plain", "<p>rich</p>"]


async def test_a_resend_has_the_same_bytes_and_message_id(mail_server, channel, write):
    server = await mail_server()
    mailer = channel(server)
    await mailer.handle(write(html="<p>x</p>"))
    await mailer.handle(write(html="<p>x</p>", attempt=2))
    first, second = server.letters
    assert first.original_content == second.original_content
    await mailer.handle(write(idempotency_key="key-2"))
    assert parsed(server.letters[2])["Message-ID"] != parsed(first)["Message-ID"]


@pytest.mark.parametrize(
    "fields",
    [
        {"subject": "Hi\r\nBcc: eve@example.org"},
        {"subject": "Hi\nX: y"},
        {"subject": "Hi\r"},
        {"subject": "Hi\x00"},
        {"subject": "Hi\u2028Bcc: eve@example.org"},
        {"recipient": "ada@example.org\r\nRCPT TO:<eve@example.org>"},
        {"recipient": "ada@example.org>\n"},
        {"metadata": {"headers": {"X-Tag": "a\r\nBcc: eve@example.org"}}},
        {"metadata": {"headers": {"X-Tag\r\nBcc": "eve@example.org"}}},
    ],
)
async def test_header_injection_is_refused_before_anything_is_sent(mail_server, channel, write, fields):
    server = await mail_server()
    with pytest.raises(Permanent) as caught:
        await channel(server).handle(write(**fields))
    assert "eve" not in str(caught.value)
    assert server.connections == 0


@pytest.mark.parametrize(
    "recipient",
    [
        "",
        "ada",
        "@example.org",
        "ada@",
        "ada@example.org, eve@example.org",
        "Ada <ada@example.org>",
        "a" * 255 + "@x.org",
        "a" * 65 + "@x.org",
        "ada@" + "x" * 64 + ".org",
        "ada@[127.0.0.1",
        "ada@-x.org",
        "ada@x-.org",
        "ada@=?utf-8?q?x.org?=",
        "=?utf-8?q?ada?=@x.org",
        "ada(friend)@x.org",
        "ada@x.org (friend)",
        "\u200bada@x.org",
        '"ada@x.org',
    ],
)
async def test_a_recipient_must_be_one_address(mail_server, channel, write, recipient):
    with pytest.raises(Permanent, match="one e-mail address"):
        await channel(await mail_server()).handle(write(recipient))


@pytest.mark.parametrize(
    "headers",
    [
        {"Bcc": "eve@example.org"},
        {"Content-Type": "text/html"},
        {"X-A": 1},
        ["X-A"],
        {"Reply-To": "a@x.org", "reply-to": "b@x.org"},
    ],
)
async def test_own_headers_may_not_touch_envelope_or_content(mail_server, channel, write, headers):
    with pytest.raises(Permanent, match=r"metadata\.headers"):
        await channel(await mail_server()).handle(write(metadata={"headers": headers}))


async def test_own_headers_arrive(mail_server, channel, write):
    server = await mail_server()
    headers = {"X-Campaign": "123", "List-Unsubscribe": "<https://example.org/u>"}
    await channel(server).handle(write(metadata={"headers": headers}))
    letter = parsed(server.letters[0])
    assert letter["X-Campaign"] == "123"
    assert letter["List-Unsubscribe"] == "<https://example.org/u>"


async def test_a_body_that_can_not_be_encoded_is_refused(mail_server, channel, write):
    with pytest.raises(Permanent, match="characters that mail can't carry"):
        await channel(await mail_server()).handle(write(body="lone \ud800"))


async def test_a_turkish_domain_is_dialled_in_its_ascii_form(mail_server, channel, write):
    server = await mail_server()
    await channel(server).handle(write("ada@çiçek.example"))
    assert server.letters[0].rcpt_tos == ["ada@xn--iek-1lab.example"]


async def test_a_turkish_mailbox_needs_a_server_that_takes_it(mail_server, channel, write):
    able = await mail_server(enable_SMTPUTF8=True)
    await channel(able).handle(write("ayşe@example.org"))
    assert able.letters[0].rcpt_tos == ["ayşe@example.org"]
    with pytest.raises(Permanent, match="SMTPUTF8"):
        await channel(await mail_server()).handle(write("ayşe@example.org"))


@pytest.mark.parametrize("step", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        ("421 closing", Transient),
        ("450 mailbox busy", Transient),
        ("451 local error", Transient),
        ("452 disk full", Transient),
        ("454 later", Transient),
        ("550 no such user", Permanent),
        ("552 too big", Permanent),
        ("553 bad name", Permanent),
        ("554 refused", Permanent),
    ],
)
async def test_a_refusal_is_final_or_not_by_its_class(mail_server, channel, write, step, reply, failure):
    server = await mail_server()
    server.replies[step] = reply
    with pytest.raises(failure, match=reply) as caught:
        await channel(server).handle(write())
    assert not isinstance(caught.value, Uncertain)
    assert server.letters == []


async def test_the_next_letter_goes_through_after_a_refusal_on_the_same_connection(mail_server, channel, write):
    server = await mail_server()
    mailer = channel(server)
    server.replies["RCPT"] = "550 no such user"
    with pytest.raises(Permanent):
        await mailer.handle(write())
    server.replies.clear()
    await mailer.handle(write("eve@example.org"))
    assert server.letters[0].rcpt_tos == ["eve@example.org"]
    assert server.connections == 1


@pytest.mark.parametrize(
    ("reply", "gone"),
    [
        ("550 5.1.1 bad address", True),
        ("550 5.2.1 switched off", True),
        ("550 no such user here", True),
        ("550 User unknown", True),
        ("550 Requested action not taken: mailbox unavailable", True),
        ("553 that address does not exist", True),
        ("550 5.7.1 mailbox unavailable: you are on a list", False),
        ("550 relay not permitted", False),
        ("552 mailbox full", False),
        ("450 mailbox unavailable", False),
    ],
)
async def test_an_address_that_the_server_does_not_know_is_gone(mail_server, channel, write, reply, gone):
    server = await mail_server()
    server.replies["RCPT"] = reply
    with pytest.raises(Failure) as caught:
        await channel(server).handle(write())
    assert isinstance(caught.value, RecipientGone) == gone


async def test_a_refusal_does_not_repeat_the_recipient(mail_server, channel, write):
    server = await mail_server()
    server.replies["RCPT"] = "550 5.1.1 <ada@example.org>: user Ada unknown; see other.person@example.net"
    with pytest.raises(Permanent) as caught:
        await channel(server).handle(write())
    assert "5.1.1" in str(caught.value)
    assert "ada" not in str(caught.value).lower()
    assert "other.person" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("greeting", ["554 no service here", "421 too busy"])
async def test_an_unwelcoming_server_is_tried_again(mail_server, channel, write, greeting):
    server = await mail_server()
    server.replies["greeting"] = greeting
    with pytest.raises(Transient, match=greeting):
        await channel(server).handle(write())


async def test_a_server_that_never_greets_is_tried_again(mail_server, channel, write):
    server = await mail_server()
    server.greet.clear()
    with pytest.raises(Transient, match="did not answer in time") as caught:
        await channel(server, timeout_seconds=0.1).handle(write())
    assert not isinstance(caught.value, Uncertain)


async def test_a_server_that_greets_late_but_in_time_gets_the_letter(mail_server, channel, write):
    server = await mail_server()
    server.greet.clear()
    delivery = asyncio.create_task(channel(server).handle(write()))
    while not server.connections:
        await asyncio.sleep(0)
    server.greet.set()
    await delivery
    assert len(server.letters) == 1


@pytest.mark.parametrize("step", ["MAIL", "RCPT"])
async def test_a_line_dropped_before_the_letter_is_plainly_transient(mail_server, channel, write, step):
    server = await mail_server()
    server.drop_at = step
    with pytest.raises(Transient) as caught:
        await channel(server).handle(write())
    assert not isinstance(caught.value, Uncertain)


async def test_a_line_dropped_after_the_final_dot_is_uncertain(mail_server, channel, write):
    server = await mail_server()
    server.drop_at = "DATA"
    with pytest.raises(Uncertain, match="may have accepted"):
        await channel(server).handle(write())


async def test_silence_after_the_final_dot_is_uncertain(mail_server, channel, write):
    server = await mail_server()
    server.before_reply = asyncio.Event().wait
    with pytest.raises(Uncertain):
        await channel(server, timeout_seconds=0.2).handle(write())


async def test_nobody_listening_is_transient(channel, write, mail_server):
    server = await mail_server()
    mailer = channel(server)
    server.port = 1
    with pytest.raises(Transient):
        await channel(server).handle(write())
    await mailer.handle(write())


async def test_a_letter_over_the_servers_size_limit_is_refused_before_it_is_sent(mail_server, channel, write):
    server = await mail_server(data_size_limit=1000)
    with pytest.raises(Permanent, match="552"):
        await channel(server).handle(write(body="x" * 2000))
    assert server.senders == []


async def test_one_connection_carries_many_letters(mail_server, channel, write):
    server = await mail_server()
    mailer = channel(server)
    for number in range(5):
        await mailer.handle(write(idempotency_key=str(number)))
    assert (len(server.letters), server.connections) == (5, 1)


async def test_connections_are_bounded(mail_server, channel, write):
    server = await mail_server()
    mailer = channel(server, connections=3)
    await asyncio.gather(*(mailer.handle(write(idempotency_key=str(number))) for number in range(20)))
    assert len(server.letters) == 20
    assert server.most_at_once <= 3


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced(mail_server, channel, write):
    server = await mail_server()
    mailer = channel(server)
    await mailer.handle(write())
    server.drop_at = "RSET"
    await mailer.handle(write(idempotency_key="key-2"))
    assert (len(server.letters), server.connections) == (2, 2)


async def test_a_connection_that_the_server_wants_closed_is_replaced(mail_server, channel, write):
    server = await mail_server()
    mailer = channel(server)
    await mailer.handle(write())
    server.replies["RSET"] = "421 too many letters"
    await mailer.handle(write(idempotency_key="key-2"))
    assert (len(server.letters), server.connections) == (2, 2)


async def test_an_idle_connection_is_closed(mail_server, channel, write):
    server = await mail_server()
    clock = ManualClock()
    mailer = channel(server, clock=clock, idle_seconds=60)
    await mailer.handle(write())
    while not clock._sleepers:
        await asyncio.sleep(0)
    assert server.open
    clock.advance(60)
    await server.all_closed.wait()


async def test_closing_the_channel_closes_its_connections(mail_server, channel, write):
    server = await mail_server()
    mailer = channel(server)
    await mailer.handle(write())
    await mailer.close()
    await server.all_closed.wait()


async def test_a_cancelled_delivery_leaves_no_connection_behind(mail_server, channel, write):
    server = await mail_server()
    reached = asyncio.Event()

    async def hang() -> None:
        reached.set()
        await asyncio.Event().wait()

    server.before_reply = hang
    delivery = asyncio.create_task(channel(server).handle(write()))
    await reached.wait()
    delivery.cancel()
    with pytest.raises(asyncio.CancelledError):
        await delivery
    await server.all_closed.wait()


async def test_starttls_is_used_and_the_certificate_checked(mail_server, channel, write, certificate):
    server = await mail_server(tls_context=certificate.server_context(), require_starttls=True)
    await channel(server, tls="starttls", ca_file=certificate.cert_file).handle(write())
    assert len(server.letters) == 1
    with pytest.raises(Transient, match="certificate"):
        await channel(server, tls="starttls").handle(write())
    assert len(server.letters) == 1


async def test_tls_from_the_first_byte(mail_server, channel, write, certificate):
    server = await mail_server(implicit_tls=certificate.server_context())
    await channel(server, tls="tls", ca_file=certificate.cert_file).handle(write())
    assert len(server.letters) == 1
    with pytest.raises(Transient, match="certificate"):
        await channel(server, tls="tls").handle(write())


async def test_no_letter_goes_out_in_the_clear_when_starttls_is_wanted(mail_server, channel, write):
    server = await mail_server()
    with pytest.raises(Transient, match="STARTTLS"):
        await channel(server, tls="starttls").handle(write())
    assert server.senders == []


async def test_a_server_that_wants_starttls_is_not_a_dead_letter(mail_server, channel, write, certificate):
    server = await mail_server(tls_context=certificate.server_context(), require_starttls=True)
    with pytest.raises(Transient, match="530"):
        await channel(server).handle(write())


async def test_logging_in(mail_server, channel, write, certificate):
    server = await mail_server(tls_context=certificate.server_context(), auth_required=True)
    options = {"tls": "starttls", "ca_file": certificate.cert_file, "username": "ulak"}
    await channel(server, **options, password="correct").handle(write())
    assert server.logins == [(b"ulak", b"correct")]
    assert len(server.letters) == 1


async def test_a_wrong_password_is_our_fault_and_not_the_letters(mail_server, channel, write, certificate):
    server = await mail_server(tls_context=certificate.server_context(), auth_required=True)
    options = {"tls": "starttls", "ca_file": certificate.cert_file, "username": "ulak"}
    with pytest.raises(Transient, match=r"channels\.email\.username") as caught:
        await channel(server, **options, password="wr0ng-password").handle(write())
    assert "wr0ng" not in str(caught.value)
    with pytest.raises(Transient, match="530"):
        await channel(server, tls="starttls", ca_file=certificate.cert_file).handle(write())


def test_a_password_is_never_sent_in_the_clear_to_another_machine():
    with pytest.raises(Misconfigured, match="plain text"):
        EmailChannel(EmailOptions(host="mail.example.org", tls="none", username="ulak", password="secret"))
    assert "secret" not in repr(EmailOptions(host="x", password="secret"))


@pytest.mark.parametrize("sender", ["", "nobody", "a@b@c", "Ulak <>"])
def test_a_wrong_sender_stops_the_start(sender):
    with pytest.raises(Misconfigured, match=r"channels\.email\.sender"):
        EmailChannel(EmailOptions(host="127.0.0.1", sender=sender))


async def test_it_carries_mail_only(mail_server, channel):
    mailer = channel(await mail_server())
    assert mailer.can_handle("EMAIL")
    assert not mailer.can_handle("SMS")


HOSTILE = [
    "=?utf-8?q?a=0D=0ABcc:_evil@x.org?=",
    "=?utf-8?b?YQ0KQ29udGVudC1UeXBlOiB0ZXh0L2h0bWwNCg0KPGgxPmZha2U8L2gxPg==?=",
    "=?us-ascii?Q?=0A=0A?=",
    "Re: =?iso-8859-9?q?=0D=0A=0D=0A?= x",
    " " * 200 + "Bcc: evil@x.org",
]
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=60) | st.lists(st.sampled_from(HOSTILE)).map(" ".join)


ADDRESSES = st.lists(
    st.sampled_from(["@", "[", "]", '"', "(", "<", ",", ".", "-", "=?", "?=", " ", "x.org", "ş", *HOSTILE]) | TEXTS,
    max_size=8,
).map("".join)
STRUCTURED = ("Reply-To", "References", "In-Reply-To", "List-Unsubscribe", "List-Unsubscribe-Post")
OURS = {"auto-submitted", "content-type", "date", "from", "message-id", "mime-version", "subject", "to"}


def header_lines(data: bytes) -> list[tuple[str, str]]:
    """The header block by RFC 5322's own rule, told by nobody's mail library: up to the first empty line, unfolded."""
    lines = data.split(b"\r\n\r\n", 1)[0].decode("utf-8").split("\r\n")
    assert all(map(str.strip, lines))  # a server that trims a line of spaces would end the headers there
    return [tuple(line.split(":", 1)) for line in "\r\n".join(lines).replace("\r\n ", " ").split("\r\n")]


def http_names(data: bytes) -> list[str]:
    """The names of the headers as h11 reads them: HTTP has the same lines, and other authors."""
    reader = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    reader.receive_data(b"GET / HTTP/1.0\r\n" + data.split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n")
    return [name.decode() for name, _ in reader.next_event().headers]


@given(
    subject=TEXTS,
    headers=st.dictionaries(st.sampled_from(STRUCTURED) | st.just("X-Tag") | TEXTS, TEXTS | ADDRESSES, max_size=3),
    recipient=st.just("ada@example.org") | st.text(max_size=40) | ADDRESSES,
    body=TEXTS,
    html=st.none() | TEXTS,
)
@example(subject="Hi", headers={"Reply-To": HOSTILE[-1]}, recipient="ada@example.org", body="Hi", html=None)
def test_no_text_can_add_a_header_or_a_recipient(subject, headers, recipient, body, html) -> None:
    message = Message(
        id="1",
        notification_type="EMAIL",
        recipient=recipient,
        subject=subject,
        body=body,
        html=html,
        created_millis=0,
        idempotency_key="k",
        metadata={"headers": headers},
    )
    try:
        letter = write_letter(message, parse_sender("ulak@example.org"))
    except Permanent:
        return
    assert b"\n" not in letter.data.replace(b"\r\n", b"")  # nor can it end the letter early (SMTP smuggling)
    assert b"\r" not in letter.data.replace(b"\r\n", b"")
    expected = OURS | {name.lower() for name in headers} | ({"content-transfer-encoding"} if html is None else set())
    assert sorted(name.lower() for name, _ in header_lines(letter.data)) == sorted(expected)
    read = email.message_from_bytes(letter.data)
    assert sorted(name.lower() for name in read) == sorted(expected)
    assert len(list(read.walk())) == (1 if html is None else 3)
    if not letter.utf8:  # HTTP has no letters beyond ASCII
        assert sorted(http_names(letter.data)) == sorted(expected)


@pytest.mark.parametrize("field", ["body", "html"])
def test_a_text_that_names_the_boundary_adds_no_part(write, field):
    def parts_of(**fields):
        letter = write_letter(write(**{"body": "a", "html": "<p>a</p>", **fields}), parse_sender("ulak@example.org"))
        return email.message_from_bytes(letter.data)

    boundary = parts_of().get_boundary()
    planted = f"a\r\n--{boundary}\r\nContent-Type: text/html\r\n\r\n<h1>fake</h1>\r\n--{boundary}--\r\n"
    types = [part.get_content_type() for part in parts_of(**{field: planted}).walk()]
    assert types == ["multipart/alternative", "text/plain", "text/html"]


@pytest.mark.parametrize("text", HOSTILE)
async def test_an_encoded_word_arrives_as_the_text_that_it_is(mail_server, channel, write, text):
    server = await mail_server()
    await channel(server).handle(write(subject=text, metadata={"headers": {"X-A": text}}))
    letter = email.message_from_bytes(server.letters[0].original_content)
    for name in ("Subject", "X-A"):
        decoded = "".join(
            part.decode(charset or "ascii") if isinstance(part, bytes) else part
            for part, charset in email.header.decode_header(letter[name])
        )
        assert decoded == text
    assert letter["Bcc"] is None


@pytest.mark.parametrize("name", ["Reply-To", "References", "List-Unsubscribe", "In-Reply-To"])
async def test_a_structured_header_takes_no_encoded_words(mail_server, channel, write, name):
    with pytest.raises(Permanent, match=r"metadata\.headers"):
        await channel(await mail_server()).handle(write(metadata={"headers": {name: HOSTILE[0]}}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Reply-To", "ada@[x"),
        ("Reply-To", "<"),
        ("Reply-To", '"'),
        ("Reply-To", "support"),
        ("Reply-To", "ada@example.org, eve@-x"),
        ("Reply-To", "ayşe@example.org"),
        ("References", "ş"),
        ("References", " "),
        ("List-Unsubscribe", f"<https://example.org/{'u' * 975}>"),
    ],
)
def test_a_structured_header_that_can_not_be_written_is_refused_when_it_is_read(name, value):
    with pytest.raises(Permanent, match=rf"metadata\.headers\.{name}"):
        own_headers({"headers": {name: value}})


async def test_addresses_and_long_words_of_a_header_arrive_as_they_are(mail_server, channel, write):
    words = " ".join(f"<{number}.{'w' * 60}@example.org>" for number in range(9))
    headers = {
        "Reply-To": "Ayşe Yılmaz <ayse@example.org>, bora@çiçek.example",
        "References": words,
        "List-Unsubscribe": f"<https://example.org/u?token={'t' * 300}>",
    }
    server = await mail_server()
    await channel(server).handle(write(metadata={"headers": headers}))
    assert max(map(len, server.letters[0].original_content.split(b"\r\n"))) < 400
    letter = parsed(server.letters[0])
    assert [one.addr_spec for one in letter["Reply-To"].addresses] == ["ayse@example.org", "bora@xn--iek-1lab.example"]
    assert letter["Reply-To"].addresses[0].display_name == "Ayşe Yılmaz"
    raw = email.message_from_bytes(server.letters[0].original_content)
    assert " ".join(raw["References"].split()) == words
    assert raw["List-Unsubscribe"] == headers["List-Unsubscribe"]


async def test_letters_need_no_8bit_from_the_server(mail_server, channel, write):
    server = await mail_server()
    await channel(server).handle(write(body="Günaydın", html="<p>Günaydın ☀</p>"))
    assert server.letters[0].original_content.isascii()
    assert [part.get_content().strip() for part in parsed(server.letters[0]).iter_parts()] == [
        "Günaydın",
        "<p>Günaydın ☀</p>",
    ]


@pytest.mark.parametrize("fields", [{"subject": "a" * 998}, {"metadata": {"headers": {"X-Tag": "a" * 998}}}])
async def test_no_line_is_longer_than_mail_allows(mail_server, channel, write, fields):
    server = await mail_server()
    await channel(server).handle(write(**fields))
    assert max(map(len, server.letters[0].original_content.split(b"\r\n"))) <= 998
    letter = parsed(server.letters[0])
    assert "a" * 998 in (letter["Subject"], letter["X-Tag"])


def test_the_name_of_an_own_header_fits_into_a_line():
    with pytest.raises(Permanent, match="shorter than 76 characters"):
        own_headers({"headers": {"X-" + "a" * 74: "v"}})
