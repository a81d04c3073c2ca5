"""Writes a message as an RFC 5322 letter. The same message always gives the same bytes, so a resend is recognisable."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime, parseaddr

from ulak.channels.channel import Message
from ulak.errors import Misconfigured, Permanent

_ADDRESS_LIMIT = 254  # RFC 5321: a path of 256 octets with its angle brackets
_FREE_HEADERS = frozenset({"reply-to", "in-reply-to", "references", "list-unsubscribe", "list-unsubscribe-post"})


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter and its envelope. `utf8` when the recipient's name before the @ is beyond ASCII (RFC 6531)."""

    sender: str
    recipient: str
    message_id: str
    data: bytes
    utf8: bool


def parse_sender(text: str) -> Address:
    """The From address out of `no-reply@example.org` or `Ulak <no-reply@example.org>`."""
    name, spec = parseaddr(text)
    try:
        return Address(display_name=name, addr_spec=_with_ascii_domain(spec))
    except (ValueError, MessageError, IndexError):
        raise Misconfigured(
            f"channels.email.sender {text!r} is not an address; write it like Ulak <ulak@example.org>."
        ) from None


def write(message: Message, sender: Address) -> Letter:
    recipient = _recipient(message.recipient)
    mark = hashlib.sha256(message.idempotency_key.encode()).hexdigest()[:32]
    message_id = f"<{mark}@{sender.domain}>"
    utf8 = not recipient.addr_spec.isascii()
    try:
        letter = EmailMessage(policy=SMTPUTF8 if utf8 else SMTP)
        for name, value in _headers(message, sender, recipient, message_id):
            letter[name] = value
        _fill(letter, message, mark)
        return Letter(sender.addr_spec, recipient.addr_spec, message_id, letter.as_bytes(), utf8)
    except (ValueError, MessageError):
        # The original quotes the text at fault, and that is personal.
        raise Permanent(
            "The mail can't be written: a header or the body has characters that mail can't carry."
        ) from None


def _headers(
    message: Message, sender: Address, recipient: Address, message_id: str
) -> Iterator[tuple[str, str | Address]]:
    yield "From", sender
    yield "To", recipient
    yield "Subject", _one_line("subject", message.subject or "")
    yield "Date", format_datetime(message.created_at)
    yield "Message-ID", message_id
    yield "Auto-Submitted", "auto-generated"  # so that nobody's holiday note answers us
    yield from _own_headers(message.metadata.get("headers", {}))


def _own_headers(headers: object) -> Iterator[tuple[str, str]]:
    """Headers from `metadata.headers`: X-… and a few that do not touch the envelope or the content."""
    if not isinstance(headers, Mapping):
        raise Permanent("metadata.headers must be an object of header names and texts.")
    for name, value in headers.items():
        if not _is_free(name) or not isinstance(value, str):
            raise Permanent(
                f"metadata.headers may set X-… and {', '.join(sorted(_FREE_HEADERS))} to texts, nothing else."
            )
        yield name, _one_line(f"metadata.headers.{name}", value)


def _is_free(name: object) -> bool:
    if not isinstance(name, str) or not (name.isascii() and name.replace("-", "").isalnum()):
        return False
    return name.lower() in _FREE_HEADERS or name.lower().startswith("x-")


def _one_line(field: str, text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in text) or len(text.splitlines()) > 1:
        raise Permanent(
            f"The mail's {field} has a line break or control character in it, which could add headers; "
            "take it out and send again."
        )
    return text


def _recipient(text: str) -> Address:
    _one_line("recipient", text)
    try:
        address = _address(_with_ascii_domain(text))
    except (ValueError, MessageError, IndexError):
        address = Address()
    if not address.username or not address.domain or len(address.addr_spec.encode()) > _ADDRESS_LIMIT:
        raise Permanent("The mail's recipient is not one e-mail address; write it like name@example.org.")
    return address


def _address(spec: str) -> Address:
    if spec.isascii():
        return Address(addr_spec=spec)
    # The parser knows no letters beyond ASCII; it judges the shape, with an x for each of them.
    Address(addr_spec="".join(letter if letter.isascii() else "x" for letter in spec))
    local, _, domain = spec.rpartition("@")
    return Address(username=local, domain=domain)


def _with_ascii_domain(spec: str) -> str:
    local, at, domain = spec.rpartition("@")
    return f"{local}{at}{domain if domain.isascii() else domain.encode('idna').decode()}"


def _fill(letter: EmailMessage, message: Message, mark: str) -> None:
    letter.set_content(message.body)
    if message.html is not None:
        letter.add_alternative(message.html, subtype="html")
        letter.set_boundary(f"=_{mark}")
