"""The room's decisions, pure: is a request acceptable, and where does its notification stand in line."""

from __future__ import annotations

import re
from functools import lru_cache
from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ulak import complaint
from ulak.errors import Invalid
from ulak.notify.model import PRIORITIES, Notification, Request, Status

MOST_RECIPIENT = 2048
MOST_SUBJECT = 998
MOST_BODY = 262_144
MOST_ORDER_KEY = 150
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

# What few requests have.
_RARE = attrgetter("template", "html", "variables", "order_key", "expires_at", "send_at", "on_uncertain")
_NOTHING = (None,) * 7

Problems = list[tuple[str, str]]


def check(request: Request, known_types: frozenset[str]) -> None:
    """Raise one Invalid that names every field that is wrong."""
    if _is_plain(request, known_types):
        return
    problems: Problems = []
    _check_type(request, known_types, problems)
    _check_recipient(request, problems)
    _check_content(request, problems)
    _check_choices(request, problems)
    if problems:
        raise refusal(problems)


def _is_plain(request: Request, known_types: frozenset[str]) -> bool:
    """The usual request, told by a few quick looks: nothing in it that needs to be looked at more closely."""
    recipient, body, subject = request.recipient, request.body, request.subject
    return (
        request.notification_type in known_types
        and recipient is not None
        and recipient.isprintable()
        and _suits(request.notification_type, recipient)
        and body is not None
        and 0 < len(body) <= MOST_BODY
        and not body.isspace()
        and "\x00" not in body
        and (subject is None or (len(subject) <= MOST_SUBJECT and subject.isprintable()))
        and (request.priority is None or request.priority in PRIORITIES)
        and _RARE(request) == _NOTHING
    )


@lru_cache(maxsize=4096)
def _suits(notification_type: str | None, recipient: str) -> bool:
    """Whether this is somebody whom that type can reach. The same ones are asked about again and again."""
    problems: Problems = []
    _check_recipient(Request(notification_type, recipient), problems)
    return not problems


def refusal(problems: Problems) -> Invalid:
    told = "; ".join(f"{field} {why}" if field else why for field, why in problems)
    return Invalid(f"the notification is not acceptable: {told}", fields=problems)


def known_status(name: str | None) -> Status | None:
    if name is None or name in Status.__members__:
        return None if name is None else Status(name)
    names = ", ".join(Status)
    raise Invalid(f"no status {name!r}; there are: {names}", fields=[("status", f"must be one of {names}")])


def _check_type(request: Request, known_types: frozenset[str], problems: Problems) -> None:
    if not request.notification_type:
        problems.append(("notificationType", "is required"))
    elif request.notification_type not in known_types:
        problems.append(("notificationType", f"must be one of {', '.join(sorted(known_types))}"))


def _check_recipient(request: Request, problems: Problems) -> None:
    recipient = request.recipient
    if not recipient or not recipient.strip():
        problems.append(("recipient", "is required and must not be blank"))
    elif len(recipient) > MOST_RECIPIENT or _CONTROL.search(recipient):
        problems.append(("recipient", f"must have at most {MOST_RECIPIENT} characters and no control characters"))
    elif request.notification_type == "EMAIL" and not _looks_like_address(recipient):
        problems.append(("recipient", "must be an e-mail address for EMAIL"))
    elif request.notification_type == "WEBHOOK" and not looks_like_url(recipient):
        problems.append(("recipient", "must be an http or https URL for WEBHOOK"))


def _looks_like_address(text: str) -> bool:
    local, at, domain = text.rpartition("@")
    return bool(at and local and domain) and " " not in text and len(text) <= 320


def looks_like_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _check_content(request: Request, problems: Problems) -> None:
    if request.template is not None:
        problems += [
            (name, "must be left out when template is given")
            for name in ("body", "html")
            if getattr(request, name) is not None
        ]
    elif not request.body or not request.body.strip():
        problems.append(("body", "is required and must not be blank (or give template and variables)"))
    elif len(request.body) > MOST_BODY or "\x00" in request.body:
        problems.append(("body", f"must have at most {MOST_BODY} characters and no NUL"))
    if request.html is not None and (request.notification_type != "EMAIL" or len(request.html) > MOST_BODY):
        problems.append(("html", f"is for EMAIL and must have at most {MOST_BODY} characters"))
    if request.subject is not None and (len(request.subject) > MOST_SUBJECT or _CONTROL.search(request.subject)):
        problems.append(("subject", f"must have at most {MOST_SUBJECT} characters and no control characters"))
    if request.variables is not None and request.template is None:
        problems.append(("variables", "need a template"))


def _check_choices(request: Request, problems: Problems) -> None:
    if request.priority is not None and request.priority not in PRIORITIES:
        problems.append(("priority", f"must be one of {', '.join(reversed(PRIORITIES))}"))
    if request.on_uncertain not in (None, "resend", "hold"):
        problems.append(("onUncertain", "must be resend or hold"))
    if request.order_key is not None and (
        not 0 < len(request.order_key) <= MOST_ORDER_KEY or _CONTROL.search(request.order_key)
    ):
        problems.append(("orderKey", f"must have 1 to {MOST_ORDER_KEY} characters and no control characters"))
    _check_times(request, problems)


def _check_times(request: Request, problems: Problems) -> None:
    expires_at, send_at = request.expires_at, request.send_at
    for name, instant in (("expiresAt", expires_at), ("sendAt", send_at)):
        if instant is not None and instant.tzinfo is None:
            problems.append((name, "needs a time zone, like 2030-01-31T10:30:00Z"))
            return
    if expires_at is not None and send_at is not None and expires_at <= send_at:
        problems.append(("expiresAt", "must be after sendAt"))


def line_of(notification: Notification, order_key: str | None, slots_per_destination: int) -> tuple[str | None, int]:
    """(key, slots): in order with its order key, or within its destination's bulkhead, or on its own."""
    if order_key is not None:
        return f"order:{order_key}", 1
    if notification.notification_type == "WEBHOOK":
        return _destination(notification.recipient), slots_per_destination
    return None, 1


@lru_cache(maxsize=4096)
def _destination(url: str) -> str:
    """Whose server it is: scheme, host and port."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"[:200]


def explain(document: Any) -> Problems:
    """Which fields of a document have the wrong type or name, for a decoder that only tells the first."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(Request)}
    if not isinstance(document, dict):
        return [("", "must be a JSON object")]
    unknown = [(name, f"is not a field; there are: {', '.join(fields)}") for name in document if name not in fields]
    return unknown + [
        (name, why)
        for name, value in document.items()
        if name in fields and (why := _wrong_type(fields[name].type, value))
    ]


def _wrong_type(expected: Any, value: Any) -> str | None:
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        return complaint.of_decoder(str(error))
    return None
