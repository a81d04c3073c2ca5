"""Forms that callers hand in, checked whole: one Invalid names every field that is wrong."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

from ulak import codec, complaint, faults
from ulak.dispatch.command import Place
from ulak.dispatch.model import MAX_WIDTH, Contact
from ulak.dispatch.nearby.geo import point_at, to_nano
from ulak.errors import Invalid
from ulak.faults import Problems

_HELPER_ID = r"^[A-Za-z0-9._:@-]{1,100}"
HELPER_ID = f"{_HELPER_ID}$"
HELPER_ID_RULE = "1 to 100 letters, digits and ._:@-"
MAX_SKILLS = 50
MAX_TOLD = 20  # problems of a long list

HelperId = Annotated[str, Meta(pattern=_HELPER_ID + codec.END, description=f"Yours: {HELPER_ID_RULE}")]
Latitude = Annotated[float, Meta(ge=-90, le=90)]
Longitude = Annotated[float, Meta(ge=-180, le=180)]
# Quotes and backslashes would be escaped where skills are kept, and then not be found.
Skill = Annotated[str, Meta(min_length=1, max_length=50, pattern=r'^[^"\\\x00-\x1f\x7f]+' + codec.END)]
Skills = Annotated[list[Skill], Meta(max_length=MAX_SKILLS)]
Language = Literal["tr", "en"]
Text = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+" + codec.END)]

# Returns the problems of a document beyond the types of its fields; those that have their type come as values, too.
Check = Callable[[Mapping[str, Any], Mapping[str, Any]], Problems]
F = TypeVar("F", bound=msgspec.Struct)


class ContactForm(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """How somebody is reached."""

    notification_type: Annotated[str, Meta(description="IN_APP, PUSH, SMS, EMAIL or WEBHOOK.")]
    recipient: Annotated[str, Meta(min_length=1, max_length=2048, description="Under which name there.")]


class HelperForm(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A helper to create or to change: a field that is left out keeps its value."""

    name: Text | None = None
    is_active: Annotated[bool | None, Meta(description="true if never given.")] = None
    latitude: Latitude | None = None
    longitude: Longitude | None = None
    skills: Skills | None = None
    language: Annotated[Language | None, Meta(description="Of messages: tr or en.")] = None
    contact: Annotated[ContactForm | None, Meta(description="IN_APP and the helper's id if never given.")] = None


class PositionForm(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Where a helper is."""

    latitude: Latitude
    longitude: Longitude


class NamedPosition(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """Where one helper of many is."""

    id: HelperId
    latitude: Latitude
    longitude: Longitude


class TaskForm(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Somebody needs help: what for, and where."""

    requester_id: Text
    category: Text
    latitude: Latitude
    longitude: Longitude
    radius_meters: Annotated[float | None, Meta(description="How far away a helper may be.")] = None
    deadline_seconds: Annotated[float, Meta(ge=1, le=86_400, description="How long an offer stands.")] | None = None
    width: Annotated[int, Meta(ge=1, le=MAX_WIDTH, description="How many are asked at once.")] | None = None
    skills: Annotated[Skills | None, Meta(description="All of them are needed.")] = None
    description: Annotated[str, Meta(max_length=4000)] | None = None
    contact: Annotated[ContactForm | None, Meta(description="Of the requester; IN_APP, requesterId if left out.")] = (
        None
    )
    language: Annotated[Language | None, Meta(description="Of messages to the requester: tr or en.")] = None


class AnswerForm(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A helper answers."""

    helper_id: HelperId


class ReleaseForm(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A helper gives a task back."""

    helper_id: HelperId
    reason: Annotated[str, Meta(max_length=1000)] | None = None


class CancelForm(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The requester needs no help any more."""

    reason: Annotated[str, Meta(max_length=1000)] | None = None


def document_of(body: bytes) -> Any:
    """Return a decoded body. NaN and Infinity are not JSON, but are read, so that the field at fault can be named."""
    if not body.strip():
        return {}
    if repeated := complaint.of_repeated(body):
        raise refusal(repeated)
    try:
        return codec.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        try:
            found = json.loads(body)
            json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is not text
        except (ValueError, RecursionError):
            why = faults.of_json(body, error)
            raise Invalid(f"the body is not JSON: {why}", fields=[("body", "must be JSON")]) from None
        return found


def document_with(document: Any, fields: Mapping[str, Any]) -> Any:
    """A document, with Python's keywords under the names that they have on the wire."""
    given = {re.sub(r"_(\w)", lambda found: found[1].upper(), name): value for name, value in fields.items()}
    if document is None or isinstance(document, dict):
        return {**(document or {}), **given}
    return document


def read_form(form: type[F], document: Any, *checks: Check) -> F:
    """A form from a JSON document. `checks` add what goes beyond a single field's type."""
    if not isinstance(document, dict):
        raise refusal([("body", "must be a JSON object")])
    fields = _fields_of(form)
    problems = [
        (str(name), f"is not a field; there are: {', '.join(fields)}") for name in document if name not in fields
    ]
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if document.get(name) is None:
            problems += [(name, "is required")] if field.required else []
            continue
        try:
            values[field.name] = _converted(field.type, document[name])
        except msgspec.ValidationError as error:
            problems.append(_told(name, error, field.type))
    problems += [problem for check in checks for problem in check(document, values)]
    if problems:
        raise refusal(problems)
    return form(**values)


@cache
def _fields_of(form: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    return {one.encode_name: one for one in msgspec.structs.fields(form)}


def _converted(wanted: Any, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise msgspec.ValidationError("must be finite")
    if isinstance(value, str) and "\0" in value:  # PostgreSQL can't keep it
        raise msgspec.ValidationError("must have no NUL character")
    return msgspec.convert(value, wanted)


def _told(name: str, error: msgspec.ValidationError, wanted: Any) -> tuple[str, str]:
    reason, _, place = str(error).partition(" - at ")
    inner = re.sub(r"^`\$\.?|`$", "", place)
    where = name if not inner else f"{name}{'' if inner.startswith('[') else '.'}{inner}"
    missing = re.fullmatch(r"Object (missing required|contains unknown) field `(\w+)`", reason)
    if missing:
        return f"{where}.{missing[2]}", "is required" if missing[1].startswith("missing") else "is not a field"
    if "matching regex" in reason:
        is_id = name in {"id", "helperId"}
        return where, f"must be {HELPER_ID_RULE}" if is_id else "has characters that are not allowed"
    return where, complaint.of_decoder(reason, wanted)


def refusal(problems: Problems) -> Invalid:
    return faults.refusal("the request", problems)


def both_or_none(document: Mapping[str, Any], _values: Mapping[str, Any]) -> Problems:
    """A latitude needs its longitude."""
    given = {name for name in ("latitude", "longitude") if document.get(name) is not None}
    if len(given) != 1:
        return []
    other = "longitude" if given == {"latitude"} else "latitude"
    return [(other, f"is required with {given.pop()}")]


def radius_within(largest: float) -> Check:
    def check(_document: Mapping[str, Any], values: Mapping[str, Any]) -> Problems:
        radius = values.get("radius_meters")
        if radius is None or 1 <= radius <= largest:
            return []
        return [("radiusMeters", f"must be 1 to {complaint.grouped(f'{largest:g}')}")]

    return check


def is_helper_id(text: str) -> bool:
    return re.fullmatch(HELPER_ID, text) is not None


def place_at(latitude: float, longitude: float, now: int) -> Place:
    return Place(to_nano(latitude), to_nano(longitude), point_at(latitude, longitude), now)


class _AnyPosition(NamedPosition, rename="camel", forbid_unknown_fields=True, gc=False):
    """A position whose id is looked at later, together with all others."""

    id: Annotated[str, Meta(min_length=1, max_length=100)]


_positions = msgspec.json.Decoder(list[_AnyPosition])
_QUOTES = 2 * len(NamedPosition.__struct_encode_fields__) + 2  # in the JSON of one: around its keys and its id
_ALL_IDS = re.compile(r"[A-Za-z0-9._:@-]*")


def read_positions(body: bytes, most: int) -> Sequence[NamedPosition]:
    """Many at once, by one typed decoder; only what does not fit is looked at one by one."""
    try:
        found = _positions.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise _refused_positions(document_of(body)) from None
    if not _ALL_IDS.fullmatch("".join([one.id for one in found])):
        raise _refused_positions(document_of(body))
    if len(found) > most:
        raise refusal([("body", f"must have at most {complaint.grouped(str(most))} positions, not {len(found)}")])
    if body.count(b'"') != _QUOTES * len(found) and (repeated := complaint.of_repeated(body)):
        raise refusal(repeated)
    return found


def _refused_positions(document: Any) -> Invalid:
    if not isinstance(document, list):
        return refusal([("body", "must be a list of positions")])
    problems: Problems = []
    for place, one in enumerate(document):
        try:
            read_form(NamedPosition, one)
        except Invalid as error:
            problems += [
                (f"[{place}]" if field == "body" else f"[{place}].{field}", why) for field, why in error.fields
            ]
        if len(problems) >= MAX_TOLD:
            break
    return refusal(problems)


def contact_of(form: ContactForm | None) -> Contact | None:
    return None if form is None else Contact(form.notification_type, form.recipient)


def reachable(check: Callable[[Contact], None]) -> Check:
    """Refuse a contact that can never be sent to: a message that is owed can't be refused later."""

    def problems(_document: Mapping[str, Any], values: Mapping[str, Any]) -> Problems:
        contact = contact_of(values.get("contact"))
        if contact is None:
            return []
        try:
            check(contact)
        except Invalid as error:
            return [(f"contact.{field}", why) for field, why in error.fields]
        return []

    return problems
