"""Writes a message as an RFC 5322 letter. The same message always gives the same bytes, so a resend is recognisable."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.errors import MessageError
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime, getaddresses, parseaddr
from typing import TypeGuard

from ulak.channels.channel import Message
from ulak.errors import Misconfigured, Permanent

_ADDRESS_LIMIT = 254  # RFC 5321: a path of 256 octets with its angle brackets
_MAX_LOCAL = 64
# One address by RFC 5321 and 6531, without comments: the standard library's parser decodes encoded words in an address,
# drops comments from it, and fails on a bracket that is left open.
_ATEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u00a1-\U0010ffff-]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])+"'
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_ADDRESS = re.compile(
    rf"({_ATEXT}(?:\.{_ATEXT})*|{_QUOTED})@({_LABEL}(?:\.{_LABEL})*|\[(?:IPv6:)?[0-9A-Fa-f:.]{{2,45}}\])"
)
_WORD_HEADERS = frozenset({"in-reply-to", "references", "list-unsubscribe", "list-unsubscribe-post"})
_STRUCTURED_HEADERS = _WORD_HEADERS | {"reply-to"}
_MAX_LINE = 998  # characters: RFC 5322's longest
_FOLD_AT = 76
# Bodies are quoted-printable or base64: a server need not offer 8BITMIME.
_ASCII, _UTF8 = SMTP.clone(cte_type="7bit"), SMTPUTF8.clone(cte_type="7bit")


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
        return Address(name, *_parts(spec))
    except (ValueError, MessageError, IndexError):
        raise Misconfigured(
            f"channels.email.sender {text!r} is not an address; write it like Ulak <ulak@example.org>."
        ) from None


def write(message: Message, sender: Address) -> Letter:
    recipient = mail_address(message.recipient)
    mark = hashlib.sha256(message.idempotency_key.encode()).hexdigest()[:32]
    message_id = f"<{mark}@{sender.domain}>"
    utf8 = not recipient.addr_spec.isascii()
    try:
        letter = EmailMessage(policy=_UTF8 if utf8 else _ASCII)
        for name, value in _headers(message, sender, recipient, message_id):
            letter[name] = value
        _fill(letter, message, mark)
        data = _texts(message) + letter.as_bytes()
        return Letter(sender.addr_spec, recipient.addr_spec, message_id, data, utf8)
    except (ValueError, MessageError):
        # The original quotes the text at fault, and that is personal.
        raise _unfit("The mail can't be written: a header or the body has characters that mail can't carry.") from None


def _headers(
    message: Message, sender: Address, recipient: Address, message_id: str
) -> Iterator[tuple[str, str | Address | list[Address]]]:
    yield "From", sender
    yield "To", recipient
    yield "Date", format_datetime(message.created_at)
    yield "Message-ID", message_id
    yield "Auto-Submitted", "auto-generated"  # so that nobody's holiday note answers us
    for name, value in own_headers(message.metadata):
        if name.lower() not in _WORD_HEADERS and name.lower() in _STRUCTURED_HEADERS:
            yield name, _addresses(value)


def _texts(message: Message) -> bytes:
    """The headers that hold free text or words, as lines.

    EmailMessage would decode encoded words in them and write a line break that they carry as it is, so that a subject
    could add headers and a body; and it would encode a long address on the web, which nobody could then call.
    """
    lines = [f"Subject: {_encoded('Subject', one_line('subject', message.subject or ''))}"]
    for name, value in own_headers(message.metadata):
        if name.lower() in _WORD_HEADERS:
            lines.append(_folded(name, value))
        elif name.lower() not in _STRUCTURED_HEADERS:
            lines.append(f"{name}: {_encoded(name, value)}")
    return "".join(f"{line}\r\n" for line in lines).encode("ascii")


def _folded(name: str, value: str) -> str:
    """Words as they are, in lines that end between them."""
    lines = [f"{name}:"]
    for word in value.split():
        if len(lines[-1]) + 1 + len(word) > _FOLD_AT and not lines[-1].endswith(":"):
            lines.append("")
        lines[-1] += f" {word}"
    return "\r\n".join(lines)


def _encoded(name: str, text: str) -> str:
    # Runs of spaces could fold into a blank line, which would end the headers. A folded word has a space before it.
    words = text.split()
    fits = max(map(len, words), default=0) < _MAX_LINE
    is_plain = fits and text.isascii() and "=?" not in text and text == " ".join(words)
    charset = "us-ascii" if is_plain else "utf-8"
    return Header(text, charset, header_name=name, maxlinelen=_FOLD_AT).encode(linesep="\r\n")


def own_headers(metadata: Mapping[str, object]) -> list[tuple[str, str]]:
    """Headers from `metadata.headers`: X-… and a few that do not touch the envelope or the content."""
    headers = metadata.get("headers", {})
    if not isinstance(headers, Mapping):
        raise _unfit("metadata.headers must be an object of header names and texts.")
    found = [(name, _own_value(name, value)) for name, value in headers.items()]
    if len({name.lower() for name, _ in found}) < len(found):
        raise _unfit("metadata.headers has a header more than once, in capitals and in small letters; keep one.")
    return found


def _own_value(name: object, value: object) -> str:
    if not _is_free(name) or not isinstance(value, str):
        allowed = ", ".join(sorted(_STRUCTURED_HEADERS))
        raise _unfit(
            f"metadata.headers may set X-… (shorter than {_FOLD_AT} characters) and {allowed} to texts, nothing else."
        )
    one_line(f"metadata.headers.{name}", value)
    if len(value) > _MAX_LINE or (name.lower() in _STRUCTURED_HEADERS and "=?" in value):
        raise _unfit(
            f"metadata.headers.{name} must have at most {_MAX_LINE} characters and no encoded words; shorten it."
        )
    if name.lower() in _WORD_HEADERS:
        _check_words(name, value)
    elif name.lower() in _STRUCTURED_HEADERS:
        _addresses(value)
    return value


def _check_words(name: str, value: str) -> None:
    longest = max(map(len, value.split()), default=0)
    if not value.isascii() or not longest or len(name) + 2 + longest > _MAX_LINE:
        raise _unfit(f"metadata.headers.{name} must have words in ASCII, each of which fits into a line.")


def _addresses(value: str) -> list[Address]:
    """The addresses of a Reply-To, each of them as `name@example.org` or `Name <name@example.org>`."""
    try:
        found = [Address(name, *_parts(spec)) for name, spec in getaddresses([value])]
    except ValueError:
        found = []
    if not found or not all(one.addr_spec.isascii() for one in found):
        raise _unfit("metadata.headers.Reply-To must be one or more e-mail addresses with commas between.")
    return found


def _is_free(name: object) -> TypeGuard[str]:
    if not isinstance(name, str) or not (name.isascii() and name.replace("-", "").isalnum() and len(name) < _FOLD_AT):
        return False
    return name.lower() in _STRUCTURED_HEADERS or name.lower().startswith("x-")


def one_line(field: str, text: str) -> str:
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text) or len(text.splitlines()) > 1:
        raise _unfit(
            f"The mail's {field} has a line break or control character in it, which could add headers; "
            "take it out and send again."
        )
    return text


def mail_address(text: str) -> Address:
    one_line("recipient", text)
    try:
        return Address("", *_parts(text))
    except ValueError:
        raise _unfit("The mail's recipient is not one e-mail address, without a name or brackets.") from None


def _parts(text: str) -> tuple[str, str]:
    """The name before the @, unquoted, and the domain in ASCII; a ValueError when this is not one address."""
    local, at, domain = text.rpartition("@")
    spec = f"{local}{at}{domain if domain.isascii() else domain.encode('idna').decode()}"
    found = _ADDRESS.fullmatch(spec)
    if found is None or "=?" in spec or not spec.isprintable():
        raise ValueError("not one address")
    if len(local.encode()) > _MAX_LOCAL or len(spec.encode()) > _ADDRESS_LIMIT:
        raise ValueError("too long")
    return re.sub(r"\\(.)", r"\1", local[1:-1]) if local.startswith('"') else local, found[2]


def _fill(letter: EmailMessage, message: Message, mark: str) -> None:
    letter.set_content(message.body)
    if message.html is not None:
        letter.add_alternative(message.html, subtype="html")
        letter.set_boundary(_boundary(mark, message.body, message.html))


def _boundary(mark: str, *parts: str) -> str:
    """A line that no part has: ids can be guessed, and a text that names the boundary would add parts of its own."""
    boundary = f"=_{mark}"
    while any(boundary in part for part in parts):
        boundary += "_"
    return boundary


def _unfit(message: str) -> Permanent:
    return Permanent(message, code="SMTP_INVALID_LETTER", unsent=True)
