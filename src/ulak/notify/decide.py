"""The room's decisions, pure: is a request acceptable, and where does its notification stand in line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from ulak import faults
from ulak.channels.destination import Destinations
from ulak.channels.letter import own_headers
from ulak.channels.recipient import problem_with
from ulak.channels.webhook import address_headers
from ulak.errors import Invalid, Permanent
from ulak.faults import Problems
from ulak.notify.model import PRIORITIES, Notification, Request, Status

MAX_SUBJECT = 998
MAX_BODY = 262_144
MAX_ORDER_KEY = 150
MAX_REFERENCE = 200
_EVENT_TYPE = re.compile(r"[A-Za-z0-9._:/-]{1,200}")
MAX_TIMEOUT_SECONDS = 600
_ORDERED = "order:"  # before an order key that is the key of a job
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LINE_END = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # what a subject can't have: it would end its header


def check(request: Request, known_types: frozenset[str]) -> None:
    """Raise one Invalid that names every field that is wrong."""
    problems = problems_of(request, known_types)
    if problems:
        raise refusal(problems)


def problems_of(request: Request, known_types: frozenset[str]) -> Problems:
    problems: Problems = []
    _check_type(request, known_types, problems)
    if why := problem_with(request.notification_type, request.recipient):
        problems.append(("recipient", why))
    _check_content(request, problems)
    _check_choices(request, problems)
    return problems


def refusal(problems: Problems) -> Invalid:
    return faults.refusal("the notification", problems)


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


def _check_content(request: Request, problems: Problems) -> None:
    if request.template is not None:
        problems += [
            (name, "must be left out when template is given")
            for name in ("body", "html")
            if getattr(request, name) is not None
        ]
    elif request.payload is None and (not request.body or not request.body.strip()):
        problems.append(("body", "is required and must not be blank (or give template and variables)"))
    elif request.body is not None and (len(request.body) > MAX_BODY or "\x00" in request.body):
        problems.append(("body", f"must have at most {MAX_BODY} characters and no NUL"))
    if request.html is not None and (
        request.notification_type != "EMAIL" or len(request.html) > MAX_BODY or "\x00" in request.html
    ):
        problems.append(("html", f"is for EMAIL and must have at most {MAX_BODY} characters and no NUL"))
    if request.subject is not None and (len(request.subject) > MAX_SUBJECT or _LINE_END.search(request.subject)):
        problems.append(("subject", f"must have at most {MAX_SUBJECT} characters and no control characters"))
    if request.variables is not None and request.template is None:
        problems.append(("variables", "need a template"))
    if request.notification_type == "EMAIL" and request.metadata is not None and "headers" in request.metadata:
        _check_headers("metadata", own_headers, request.metadata, problems)
    if request.notification_type == "WEBHOOK" and request.target_meta is not None:
        _check_headers("targetMeta", address_headers, request.target_meta, problems)


def check_rendered(subject: str | None, body: str, html: str | None) -> None:
    """Hold a template's texts, with their variables in them, to the rules of texts that are given as they are."""
    problems: Problems = []
    if subject is not None and (len(subject) > MAX_SUBJECT or _LINE_END.search(subject)):
        problems.append(
            ("variables", f"make a subject with control characters, or with more than {MAX_SUBJECT} characters")
        )
    if "\x00" in body or "\x00" in (html or ""):
        problems.append(("variables", "put a NUL into the text"))
    if problems:
        raise refusal(problems)


def _check_event(request: Request, problems: Problems) -> None:
    """A webhook's own event: its type, and a payload instead of a text."""
    for name, value in (("type", request.type), ("payload", request.payload)):
        if value is not None and request.notification_type != "WEBHOOK":
            problems.append((name, "is for WEBHOOK"))
    if request.type is not None and not _EVENT_TYPE.fullmatch(request.type):
        problems.append(("type", "must be 1 to 200 letters, digits and . _ : / -"))
    if request.payload is not None and request.type is None:
        problems.append(("type", "is required beside payload"))
    if request.payload is not None and request.body is not None:
        problems.append(("body", "must be left out when payload is given"))


def _check_headers(
    field: str, read: Callable[[dict[str, Any]], object], value: dict[str, Any], problems: Problems
) -> None:
    try:
        read(value)
    except Permanent as error:
        problems.append((field, str(error)))


def _check_choices(request: Request, problems: Problems) -> None:
    if request.priority is not None and request.priority not in PRIORITIES:
        problems.append(("priority", f"must be one of {', '.join(reversed(PRIORITIES))}"))
    if request.on_uncertain not in (None, "resend", "hold"):
        problems.append(("onUncertain", "must be resend or hold"))
    if request.order_key is not None and (
        not 0 < len(request.order_key) <= MAX_ORDER_KEY or _CONTROL.search(request.order_key)
    ):
        problems.append(("orderKey", f"must have 1 to {MAX_ORDER_KEY} characters and no control characters"))
    if request.reference is not None and (
        not 0 < len(request.reference) <= MAX_REFERENCE or _CONTROL.search(request.reference)
    ):
        problems.append(("reference", f"must have 1 to {MAX_REFERENCE} characters and no control characters"))
    if request.type is not None or request.payload is not None:
        _check_event(request, problems)
    if request.expires_at is not None or request.send_at is not None:
        _check_times(request, problems)
    seconds = request.timeout_seconds
    if seconds is not None and not 0 < seconds <= MAX_TIMEOUT_SECONDS:
        problems.append(("timeoutSeconds", f"must be above 0 and at most {MAX_TIMEOUT_SECONDS}"))


def _check_times(request: Request, problems: Problems) -> None:
    expires_at, send_at = request.expires_at, request.send_at
    given = [(name, instant) for name, instant in (("expiresAt", expires_at), ("sendAt", send_at)) if instant]
    without_zone = [name for name, instant in given if instant.tzinfo is None]
    problems += [(name, "needs a time zone, like 2030-01-31T10:30:00Z") for name in without_zone]
    if not without_zone and expires_at is not None and send_at is not None and expires_at <= send_at:
        problems.append(("expiresAt", "must be after sendAt"))


def line_of(notification: Notification, order_key: str | None, destinations: Destinations) -> tuple[str | None, int]:
    """(key, slots): in order with its order key, or within its destination's bulkhead, or on its own."""
    if order_key is not None:
        return f"{_ORDERED}{order_key}", 1
    return destinations.find(notification.notification_type, notification.recipient) or (None, 1)


def destination_of(destinations: Destinations, key: str, payload: Any) -> tuple[str, int] | None:
    """The destination of a message that has an order key in its place, with its slots; None for any other."""
    if not key.startswith(_ORDERED) or not isinstance(payload, dict):
        return None
    return destinations.find(str(payload.get("notificationType")), str(payload.get("recipient")))


def explain(document: Any, known_types: frozenset[str]) -> Problems:
    """Every field of a document that is wrong, for a decoder that only tells the first."""
    problems = faults.of_document(document, Request)
    if not isinstance(document, dict):
        return problems
    wrong = {name for name, _ in problems}
    readable = {name: value for name, value in document.items() if name not in wrong}
    others = problems_of(msgspec.convert(readable, Request), known_types)
    return [*problems, *((name, why) for name, why in others if name not in wrong)]
