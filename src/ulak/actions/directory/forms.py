"""The directory's entries as they are written, and every field that is wrong with one."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from ulak import codec, faults
from ulak.actions.directory.targets import problem_with
from ulak.actions.model import MAX_DEVICE_ID, MAX_NAME, MAX_NUMBER, MAX_TARGET, PLAIN, AddressedType
from ulak.actions.quiet import HOURS_FORM, parse_hours, zone_of
from ulak.channels.webhook import address_headers
from ulak.errors import Permanent

MAX_META_BYTES = 16_384
F = TypeVar("F", bound=msgspec.Struct)

Id = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]


class ProfileForm(msgspec.Struct, forbid_unknown_fields=True):
    """A profile as it is written. `quiet_hours` is like 22:00-07:00, by the clock of `time_zone`."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME, pattern=PLAIN)]
    device_id: Annotated[str, Meta(min_length=1, max_length=MAX_DEVICE_ID, pattern=PLAIN)] | None = None
    status: bool = True
    priority: Annotated[int, Meta(ge=-1_000_000, le=1_000_000)] = 0
    time_zone: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    quiet_hours: Annotated[str, Meta(min_length=1, max_length=20)] | None = None


class ChannelForm(msgspec.Struct, forbid_unknown_fields=True):
    """A channel as it is written. Whether it is verified is found out, not written."""

    profile_id: Id
    channel_type: AddressedType
    target: Annotated[str, Meta(min_length=1, max_length=MAX_TARGET)]
    target_meta: dict[str, Any] | None = None
    enabled: bool = True


class RouteForm(msgspec.Struct, forbid_unknown_fields=True):
    """A route as it is written."""

    action_plan_id: Id
    step_order: Annotated[int, Meta(ge=1, le=10_000)]
    recipient_profile_id: Id
    channel_type: AddressedType | None = None
    enabled: bool = True


def parse_form(document: Any, shape: type[F], what: str) -> F:
    problems = faults.of_document(document, shape)
    problems += [] if problems else _MORE[shape](document)
    if problems:
        raise faults.refusal(what, problems)
    return msgspec.convert(document, shape)


def _more_of_profile(document: dict[str, Any]) -> faults.Problems:
    problems: faults.Problems = []
    zone, hours = document.get("time_zone"), document.get("quiet_hours")
    if zone is not None and zone_of(zone) is None:
        problems.append(("time_zone", "must be a time zone, like Europe/Istanbul"))
    if hours is not None and parse_hours(hours) is None:
        problems.append(("quiet_hours", HOURS_FORM))
    return problems


def _more_of_channel(document: dict[str, Any]) -> faults.Problems:
    why = problem_with(document["channel_type"], document["target"])
    problems = [] if why is None else [("target", why)]
    meta = document.get("target_meta") or {}
    if len(codec.encode(meta)) > MAX_META_BYTES:
        problems.append(("target_meta", f"must take at most {MAX_META_BYTES:,} bytes as JSON"))
    if document["channel_type"] == "webhook":
        try:
            address_headers(meta)
        except Permanent as error:
            problems.append(("target_meta", str(error)))
    return problems


_MORE: dict[type[msgspec.Struct], Any] = {
    ProfileForm: _more_of_profile,
    ChannelForm: _more_of_channel,
    RouteForm: lambda _: [],
}


def merged(known: msgspec.Struct, changes: Any, shape: type[msgspec.Struct]) -> Any:
    """Return the entry with the changes laid over it, as a form."""
    if not isinstance(changes, dict):
        return changes
    kept = {name: getattr(known, name) for name in shape.__struct_fields__}
    return {**kept, **changes}
