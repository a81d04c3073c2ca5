"""The recipient directory: profiles, their channels, and the routes that lead plans to them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from ulak import codec
from ulak.actions.directory.targets import problem_with
from ulak.actions.model import (
    ADDRESSED,
    MAX_DEVICE_ID,
    MAX_NAME,
    MAX_NUMBER,
    MAX_TARGET,
    PLAIN,
    ActionRoute,
    RecipientChannel,
    RecipientProfile,
    VerifyStatus,
)
from ulak.actions.plans.book import read_head
from ulak.actions.quiet import HOURS_FORM, parse_hours, zone_of
from ulak.actions.records import next_number, to_channel, to_profile, to_route
from ulak.actions.wire import faults
from ulak.errors import NotFound
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.actions")

MAX_META_BYTES = 16_384
F = TypeVar("F", bound=msgspec.Struct)

Id = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
AddressedType = Literal["push", "whatsapp", "email", "webhook", "sms", "slack"]
assert set(AddressedType.__args__) == set(ADDRESSED)  # type: ignore[attr-defined]


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
    if len(codec.encode(document.get("target_meta") or {})) > MAX_META_BYTES:
        problems.append(("target_meta", f"must take at most {MAX_META_BYTES:,} bytes as JSON"))
    return problems


_MORE: dict[type[msgspec.Struct], Any] = {
    ProfileForm: _more_of_profile,
    ChannelForm: _more_of_channel,
    RouteForm: lambda _: [],
}


# Profiles


def create_profile(tx: Tx, form: ProfileForm) -> RecipientProfile:
    identifier = next_number(tx, "profile")
    tx.execute(sql.insert_profile, id=identifier, created_at=tx.now, updated_at=tx.now, **msgspec.structs.asdict(form))
    return read_profile(tx, identifier)


def read_profile(tx: Tx, identifier: int) -> RecipientProfile:
    row = tx.row(sql.read_profile, id=identifier)
    if row is None:
        raise NotFound(f"no recipient profile {identifier}; it was never made, or is deleted")
    return to_profile(row)


def list_profiles(tx: Tx, after: int, limit: int) -> list[RecipientProfile]:
    return [to_profile(row) for row in tx.rows(sql.list_profiles, after=after, n=limit)]


def amend_profile(tx: Tx, identifier: int, changes: Any) -> RecipientProfile:
    form = parse_form(_merged(read_profile(tx, identifier), changes, ProfileForm), ProfileForm, "the profile")
    tx.execute(sql.update_profile, id=identifier, updated_at=tx.now, **msgspec.structs.asdict(form))
    return read_profile(tx, identifier)


def delete_profile(tx: Tx, identifier: int) -> None:
    """With its channels, and the routes that lead to it."""
    read_profile(tx, identifier)
    tx.execute(sql.delete_routes_of_profile, profile=identifier)
    tx.execute(sql.delete_channels_of_profile, profile=identifier)
    tx.execute(sql.delete_profile, id=identifier)


def forget_profile(tx: Tx, identifier: int) -> None:
    """Erase a person: the profile, its channels, and what runs were told about it. Ledger and chain keep the ids."""
    delete_profile(tx, identifier)
    tx.execute(sql.erase_variables, profile=identifier)


# Channels


def create_channel(tx: Tx, form: ChannelForm) -> RecipientChannel:
    if problems := _problems_with_profile(tx, "profile_id", form.profile_id):
        raise faults.refusal("the channel", problems)
    identifier = next_number(tx, "channel")
    tx.execute(
        sql.insert_channel,
        id=identifier,
        profile_id=form.profile_id,
        channel_type=form.channel_type,
        target=form.target,
        target_meta=codec.encode_text(form.target_meta or {}),
        enabled=form.enabled,
        verify_status=VerifyStatus.PENDING.value,
        created_at=tx.now,
        updated_at=tx.now,
    )
    return read_channel(tx, identifier)


def read_channel(tx: Tx, identifier: int) -> RecipientChannel:
    row = tx.row(sql.read_channel, id=identifier)
    if row is None:
        raise NotFound(f"no recipient channel {identifier}; it was never made, or is deleted")
    return to_channel(row)


def list_channels(tx: Tx, profile: int | None, after: int, limit: int) -> list[RecipientChannel]:
    low, high = (0, MAX_NUMBER) if profile is None else (profile, profile)
    return [to_channel(row) for row in tx.rows(sql.list_channels, after=after, low=low, high=high, n=limit)]


def amend_channel(tx: Tx, identifier: int, changes: Any) -> RecipientChannel:
    """A new target has to be verified anew. A channel keeps its type and its profile."""
    known = read_channel(tx, identifier)
    form = parse_form(_merged(known, changes, ChannelForm), ChannelForm, "the channel")
    fixed = [
        (name, "can't be changed; make another channel")
        for name in ("profile_id", "channel_type")
        if getattr(form, name) != getattr(known, name)
    ]
    if fixed:
        raise faults.refusal("the channel", fixed)
    status = known.verify_status if form.target == known.target else VerifyStatus.PENDING.value
    return save_channel(
        tx,
        msgspec.structs.replace(
            known,
            target=form.target,
            target_meta=form.target_meta or {},
            enabled=form.enabled,
            verify_status=status,
        ),
    )


def save_channel(tx: Tx, channel: RecipientChannel) -> RecipientChannel:
    tx.execute(
        sql.update_channel,
        id=channel.id,
        target=channel.target,
        target_meta=codec.encode_text(channel.target_meta),
        enabled=channel.enabled,
        verify_status=channel.verify_status,
        updated_at=tx.now,
    )
    return read_channel(tx, channel.id)


def delete_channel(tx: Tx, identifier: int) -> None:
    if not tx.execute(sql.delete_channel, id=identifier):
        raise NotFound(f"no recipient channel {identifier}; it was never made, or is deleted")


# Routes


def create_route(tx: Tx, form: RouteForm) -> ActionRoute:
    _need_ends(tx, form)
    identifier = next_number(tx, "route")
    tx.execute(sql.insert_route, id=identifier, created_at=tx.now, updated_at=tx.now, **msgspec.structs.asdict(form))
    return read_route(tx, identifier)


def read_route(tx: Tx, identifier: int) -> ActionRoute:
    row = tx.row(sql.read_route, id=identifier)
    if row is None:
        raise NotFound(f"no action route {identifier}; it was never made, or is deleted")
    return to_route(row)


def list_routes(tx: Tx, plan: int | None, after: int, limit: int) -> list[ActionRoute]:
    low, high = (0, MAX_NUMBER) if plan is None else (plan, plan)
    return [to_route(row) for row in tx.rows(sql.list_routes, after=after, low=low, high=high, n=limit)]


def amend_route(tx: Tx, identifier: int, changes: Any) -> ActionRoute:
    known = read_route(tx, identifier)
    form = parse_form(_merged(known, changes, RouteForm), RouteForm, "the route")
    if form.action_plan_id != known.action_plan_id:
        raise faults.refusal("the route", [("action_plan_id", "can't be changed; make another route")])
    _need_ends(tx, form)
    given = msgspec.structs.asdict(form)
    del given["action_plan_id"]
    tx.execute(sql.update_route, id=identifier, updated_at=tx.now, **given)
    return read_route(tx, identifier)


def delete_route(tx: Tx, identifier: int) -> None:
    if not tx.execute(sql.delete_route, id=identifier):
        raise NotFound(f"no action route {identifier}; it was never made, or is deleted")


def _need_ends(tx: Tx, form: RouteForm) -> None:
    head = read_head(tx, form.action_plan_id)
    problems = _problems_with_profile(tx, "recipient_profile_id", form.recipient_profile_id)
    if head is None or head.deleted_at is not None:
        problems.insert(0, ("action_plan_id", f"there is no action plan {form.action_plan_id}"))
    if problems:
        raise faults.refusal("the route", problems)


def _problems_with_profile(tx: Tx, name: str, identifier: int) -> faults.Problems:
    known = tx.row(sql.read_profile, id=identifier) is not None
    return [] if known else [(name, f"there is no recipient profile {identifier}")]


def _merged(known: msgspec.Struct, changes: Any, shape: type[msgspec.Struct]) -> Any:
    """Return the entry with the changes laid over it, as a form."""
    if not isinstance(changes, dict):
        return changes
    kept = {name: getattr(known, name) for name in shape.__struct_fields__}
    return {**kept, **changes}


def list_unreachable(tx: Tx, after: int, limit: int) -> list[tuple[int, str]]:
    """Profiles that plans lead to, and that have no channel left by which they could be reached."""
    return [(identifier, name) for identifier, name in tx.rows(sql.list_unreachable, after=after, n=limit)]
