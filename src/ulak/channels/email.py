"""EMAIL over SMTP. Knows at which step a delivery broke: only after the final dot may the server have the letter."""

from __future__ import annotations

import asyncio
import re
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Literal

from aiosmtplib import (
    SMTP,
    SMTPAuthenticationError,
    SMTPConnectResponseError,
    SMTPDataError,
    SMTPException,
    SMTPHeloError,
    SMTPRecipientRefused,
    SMTPResponse,
    SMTPResponseException,
    SMTPServerDisconnected,
)

from ulak.channels.channel import Message, NotificationType, Receipt, RecipientGone, Uncertain, seconds_for
from ulak.channels.letter import Letter, parse_sender, write
from ulak.channels.smtp import Connections, Server
from ulak.clock import Clock, SystemClock
from ulak.errors import Failure, Misconfigured, Permanent, PutOff, Transient
from ulak.masking import mask_text

_GO_AHEAD = 354
_DONE = 250
_LINE_START_DOT = re.compile(rb"(?m)^\.")
# Said about us, not about the letter: authentication or encryption wanted or refused.
_ABOUT_US = frozenset({530, 534, 535, 538})
_REPLY_CHARS = 200
_NOBODY = re.compile(r"5\.1\.(1|10)\b|5\.2\.1\b")  # RFC 3463: no such mailbox, null MX, mailbox disabled
_SUBCODE = re.compile(r"\d\.\d+\.\d+\b")
_NOBODY_IN_WORDS = re.compile(
    r"\b(no such|unknown|invalid) (user|mailbox|recipient|address)\b"
    r"|\b(user|mailbox|recipient|address) (is )?(unknown|not found|unavailable|disabled|inactive)\b"
    r"|\b(does not|doesn't) exist\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class EmailOptions:
    host: str
    port: int = 587
    tls: Literal["none", "starttls", "tls"] = "starttls"
    username: str = ""
    password: str = field(default="", repr=False)
    sender: str = "ulak@localhost"
    timeout_seconds: float = 30.0
    connections: int = 10
    idle_seconds: float = 60.0
    ca_file: str | None = None
    local_hostname: str | None = None


@dataclass(slots=True)
class _Progress:
    handed_over: bool = False


class EmailChannel:
    name = "email"

    def __init__(self, options: EmailOptions, *, clock: Clock | None = None) -> None:
        _refuse_open_password(options)
        self._options = options
        self._sender = parse_sender(options.sender)
        server = Server(
            options.host,
            options.port,
            options.tls,
            options.username,
            options.password,
            options.ca_file,
            options.local_hostname,
        )
        self._connections = Connections(
            server, clock or SystemClock(), limit=options.connections, idle_seconds=options.idle_seconds
        )

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == NotificationType.EMAIL

    async def handle(self, message: Message) -> Receipt:
        seconds = seconds_for(message, self._options.timeout_seconds, "SMTP")
        letter = write(message, self._sender)
        progress = _Progress()
        try:
            async with asyncio.timeout(seconds), self._connections.borrow() as smtp:
                reply = await _transmit(smtp, letter, progress)
        except (SMTPException, OSError, TimeoutError) as error:
            raise _failure(error, progress, letter) from None  # the original names the recipient
        return Receipt(f"smtp:{letter.message_id}", {"reply": f"{reply.code} {_shown(reply.message, letter)}"})

    async def close(self) -> None:
        await self._connections.close()


async def _transmit(smtp: SMTP, letter: Letter, progress: _Progress) -> SMTPResponse:
    encoding = "utf-8" if letter.utf8 else "ascii"
    await smtp.mail(letter.sender, options=_mail_options(smtp, letter), encoding=encoding)
    await smtp.rcpt(letter.recipient, encoding=encoding)
    _expect(_GO_AHEAD, await smtp.execute_command(b"DATA"))
    return _expect(_DONE, await _hand_over(smtp, letter, progress))


def _mail_options(smtp: SMTP, letter: Letter) -> list[str]:
    if letter.utf8 and not smtp.supports_extension("smtputf8"):
        raise Permanent(
            "The mail server takes no addresses beyond ASCII (SMTPUTF8); send through one that does.",
            code="SMTP_NO_SMTPUTF8",
        )
    size = [f"SIZE={len(letter.data)}"] if smtp.supports_extension("size") else []
    return [*size, "SMTPUTF8", "BODY=8BITMIME"] if letter.utf8 else size


async def _hand_over(smtp: SMTP, letter: Letter, progress: _Progress) -> SMTPResponse:
    """Sends the text up to the final dot. Done here and not by `SMTP.data`, which hides whether the dot was sent."""
    protocol = smtp.protocol
    if protocol is None:
        raise SMTPServerDisconnected("Connection lost")
    protocol.write(_LINE_START_DOT.sub(b"..", letter.data) + b".\r\n")
    progress.handed_over = True
    return await protocol.read_response()


def _expect(code: int, reply: SMTPResponse) -> SMTPResponse:
    if reply.code != code:
        raise SMTPDataError(reply.code, reply.message)
    return reply


def _failure(error: Exception, progress: _Progress, letter: Letter) -> Failure:
    if isinstance(error, SMTPResponseException) and (400 <= error.code < 600 or not progress.handed_over):
        return _refusal(error, letter)
    late = isinstance(error, TimeoutError)
    if progress.handed_over:
        return Uncertain(
            "The mail server gave no proper answer after the whole letter was sent; it may have accepted it.",
            code="SMTP_TIMEOUT" if late else "SMTP_NO_ANSWER",
        )
    if isinstance(error.__cause__ or error, ssl.SSLError):
        return Transient(
            "The mail server's certificate is not trusted; check channels.email.host and the certificate.",
            code="SMTP_TLS",
        )
    if late:
        return Transient("The mail server did not answer in time.", code="SMTP_TIMEOUT")
    return Transient(f"The mail server can't be used ({_shown(str(error), letter)}).", code="SMTP_UNREACHABLE")


def _refusal(error: SMTPResponseException, letter: Letter) -> Failure:
    """Only a 5xx about this letter is final. One about our session would send every letter to the dead at once."""
    reply, code = f"{error.code} {_shown(error.message, letter)}", f"SMTP_{error.code}"
    if isinstance(error, SMTPAuthenticationError) or error.code in _ABOUT_US:
        return Transient(
            f"The mail server does not let us in ({reply}); check channels.email.username, password and tls.",
            code="SMTP_AUTH",
        )
    if isinstance(error, SMTPConnectResponseError | SMTPHeloError):
        return Transient(f"The mail server does not talk to us ({reply}).", code=code)
    if isinstance(error, SMTPRecipientRefused) and error.code >= 500 and _knows_nobody(error.message):
        return RecipientGone(
            f"The mail server knows nobody at this address: {reply}. Correct the recipient.", code=code
        )
    if 500 <= error.code < 600:
        return Permanent(
            f"The mail server refused the letter: {reply}. Correct the recipient or the content.", code=code
        )
    # A 4xx about one recipient (greylisting, a full mailbox) says nothing about the next letter.
    about_one = isinstance(error, SMTPRecipientRefused)
    return (PutOff if about_one else Transient)(f"The mail server put us off: {reply}.", code=code)


def _knows_nobody(said: str) -> bool:
    """By its enhanced status code; only a server that sends none is judged by its words."""
    return bool(_NOBODY.match(said) if _SUBCODE.match(said) else _NOBODY_IN_WORDS.search(said))


def _shown(text: str, letter: Letter) -> str:
    """A server's words, as one short line and without the person in them."""
    line = " ".join(text.split())
    for person in (letter.recipient, letter.recipient.rpartition("@")[0]):
        line = re.sub(rf"(?<!\w){re.escape(person)}(?!\w)", "…", line, flags=re.IGNORECASE)
    return mask_text(line[:_REPLY_CHARS])


def _refuse_open_password(options: EmailOptions) -> None:
    if options.username and options.tls == "none" and not _is_local(options.host):
        raise Misconfigured(
            f"channels.email would send its password to {options.host} in plain text; "
            "set channels.email.tls to starttls or tls."
        )


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def from_settings(settings: Any) -> EmailChannel | None:
    section = settings.channels.email
    if section.simulated:
        return None
    return EmailChannel(
        EmailOptions(
            host=section.host,
            port=section.port,
            tls=section.tls,
            username=section.username,
            password=section.password.get_secret_value(),
            sender=section.sender,
            timeout_seconds=section.timeout_seconds,
            connections=section.slots_per_destination,
        )
    )
