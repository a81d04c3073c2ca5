"""Hides people and secrets in what is logged, listed or reported. Decides nothing about who may see the original."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, MutableMapping
from typing import Any

HIDDEN = "***"

# A fresh key per process: marks of one body can be compared, but a short body can't be guessed from its mark.
_MARK_KEY = secrets.token_bytes(16)

_RECIPIENT_NAMES = frozenset({"recipient", "recipients", "to", "cc", "bcc", "email", "phone", "url", "device_token"})
_BODY_NAMES = frozenset(
    {"body", "subject", "html", "text", "variables", "metadata", "payload", "target_meta", "targetmeta"}
)
_SENSITIVE = r"passwo?r?d|secret|token|api[_-]?key|authorization|credential|signature|private[_-]?key|cookie"
_SECRET_NAME = re.compile(_SENSITIVE, re.IGNORECASE)
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\\\".*?\\\""

# What only looks like a phone number or a token: instants, UUIDs, ids and traces of ours, addresses of machines.
_KEPT = (
    r"(?<!\d)(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?"
    r"|(?<![\w-])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\w-])"
    r"|(?<![\w-])act-[0-9a-f]{16}(?![\w-])"
    r"|(?<!\d)\d{18,19}(?!\d)"
    r"|(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])"
)
_LINK = r"(?<![a-z0-9])[a-z][a-z0-9+.-]{0,20}://[^\s\"'<>`]+"
# `password=…`, `"token": "…"`, `Authorization: Bearer …`; names are bounded so that the search stays linear.
_ASSIGNED = (
    rf"(?<![\w-])(?P<name>[\w-]{{0,40}}(?:{_SENSITIVE})[\w-]{{0,40}}\\?[\"']?\s{{0,8}}[:=]\s{{0,8}})"
    rf"(?:(?:bearer|basic|digest)\s+)?(?:{_QUOTED}|[^\s,;&}}\]]+)"
)
_BEARER = r"\bbearer\s+[^\s\"',;]{6,}"
_RANDOM = (
    r"(?<![a-z0-9_-])(?:(?=[a-z_-]*\d)[a-z0-9_-]{32,}"
    r"|eyJ[\w-]{5,}\.[\w.-]+|(?:whsec|whsk|whpk|sk|ghp|xox[abp])[_-][\w+/=.-]{8,})"
)
_LOCAL = r"[^\s@<>\"(),:;=/\[\]\\]"
_EMAIL = rf"(?<!{_LOCAL})(?P<local>{_LOCAL}+(?:@{_LOCAL}+)*|\"(?:[^\"\\\n]|\\.){{1,64}}\")@(?P<domain>[\w.-]+)"
_PHONE = r"(?<!\d)\+?\d(?:[ \t\u00a0()./-]{0,3}\d){6,}"

# One pass, so that what one rule has masked is not masked again by the next; the first rule that fits wins.
_FOUND = re.compile(
    rf"(?P<kept>{_KEPT})|(?P<link>{_LINK})|(?P<assigned>{_ASSIGNED})|(?P<bearer>{_BEARER})"
    rf"|(?P<email>{_EMAIL})|(?P<token>{_RANDOM})|(?P<phone>{_PHONE})",
    re.IGNORECASE | re.DOTALL,
)
_PHONE_ALONE = re.compile(r"\+?[\d \t\u00a0()./-]{7,}")
_PLAIN_SEGMENT = re.compile(r"[a-z._-]*|[0-9a-f-]{36}|\d{18,19}|.{0,15}")


def mask_recipient(recipient: str) -> str:
    """An e-mail address, phone number, URL, device token or user id, recognisable only to who knows it."""
    if "://" in recipient:
        return _mask_destination(recipient)
    local, at, domain = recipient.rpartition("@")
    if at:
        return _mask_email(local, domain)
    if _PHONE_ALONE.fullmatch(recipient):
        return _mask_phone(recipient)
    return f"{recipient[:4]}{HIDDEN}" if len(recipient) >= 20 else f"{recipient[:1] if recipient[1:] else ''}{HIDDEN}"


def mask_body(body: str) -> str:
    """A text's length and mark: enough to tell two bodies apart in one process's log."""
    mark = hashlib.blake2b(body.encode("utf-8", "surrogatepass"), key=_MARK_KEY, digest_size=4).hexdigest()
    return f"[{len(body)} characters, mark {mark}]"


def mask_url(url: str) -> str:
    """An address without credentials, query and fragment. Text that is no URL comes back as it is."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    user, at, place = rest.rpartition("@")
    if "/" in user:  # an unescaped password, or an @ in the path: can't be told apart
        return f"{scheme}://{HIDDEN}"
    path, question, _ = place.partition("?")
    path, fragment, _ = path.partition("#")
    return f"{scheme}://{HIDDEN + at if at else ''}{path}{question or fragment}{HIDDEN if question or fragment else ''}"


def mask_text(text: str) -> str:
    """Any log or error text, with the addresses, numbers, tokens and secrets in it masked."""
    return _FOUND.sub(_mask_found, text)


def mask_value(name: str, value: Any) -> Any:
    """A named value: by what its name says it is, or by what is found in it."""
    if isinstance(value, Mapping):
        if name in _BODY_NAMES:
            return mask_body(str(value))
        return {mask_text(str(key)): mask_value(str(key), value[key]) for key in value}
    if isinstance(value, list | tuple | set | frozenset):
        return [mask_value(name, item) for item in value]
    if isinstance(value, bool | float | None):
        return value
    if isinstance(value, int):
        return _mask_number(name.lower(), value)
    return _mask_named(name.lower(), value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))


def mask_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """A structlog processor. Comes after the one that formats exceptions, since it masks their text too."""
    return {name: value if _is_plain(name, value) else mask_value(name, value) for name, value in event.items()}


def _is_plain(name: str, value: Any) -> bool:
    """A log line's own numbers are counts, sizes and instants of who wrote it, unless the name says otherwise."""
    return name == "exc_info" or (isinstance(value, int) and name.lower() not in _RECIPIENT_NAMES)


def _mask_number(name: str, number: int) -> int | str:
    """Phone numbers come as numbers too. One that tells nothing stays a number; a masked one is text."""
    if number.bit_length() > 128:  # nobody's number, and Python refuses to write the longest ones
        return HIDDEN
    masked = _mask_named(name, str(int(number)))
    return number if masked == str(int(number)) else masked


def _mask_named(name: str, text: str) -> str:
    if name in _RECIPIENT_NAMES:
        return mask_recipient(text)
    if name in _BODY_NAMES:
        return mask_body(text)
    return HIDDEN if _SECRET_NAME.search(name) else mask_text(text)


def _mask_found(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "kept":
            return found[0]
        case "link":
            return _mask_link(found[0])
        case "assigned":
            return found["name"] + HIDDEN
        case "bearer":
            return f"{found[0].split()[0]} {HIDDEN}"
        case "email":
            return _mask_email(found["local"], found["domain"])
        case "phone":
            return _mask_phone(found[0])
        case _:
            return HIDDEN


def _mask_link(url: str) -> str:
    scheme, _, rest = mask_url(url).partition("://")
    host, *segments = rest.split("/")
    return f"{scheme}://{'/'.join([host, *map(_mask_segment, segments)])}"


def _mask_segment(segment: str) -> str:
    """Keys and tokens hide in paths too: what is long and not a plain word, an id or a UUID is masked."""
    return mask_text(segment) if _PLAIN_SEGMENT.fullmatch(segment) and "%40" not in segment else HIDDEN


def _mask_destination(url: str) -> str:
    """A recipient's URL down to scheme and host: the path of a webhook is often its secret."""
    scheme, _, rest = mask_url(url).partition("://")
    host, slash, _ = rest.partition("/")
    return f"{scheme}://{host.partition('?')[0]}{slash and '/' + HIDDEN}"


def _mask_email(local: str, domain: str) -> str:
    first = local[0] if len(local) > 2 and local[0].isalnum() else ""
    return f"{first}{HIDDEN}@{domain}"


def _mask_phone(number: str) -> str:
    return HIDDEN + number.rstrip()[-2:]
