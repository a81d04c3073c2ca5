"""The recipient directory: profiles, their channels, and the routes that lead plans to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ulak import codec, faults
from ulak.actions.dead import forget_mending
from ulak.actions.directory.forms import ChannelForm, ProfileForm, RouteForm, merged, parse_form
from ulak.actions.model import (
    MAX_NUMBER,
    NOT_A_PLAN,
    NOT_A_PROFILE,
    ActionRoute,
    RecipientChannel,
    RecipientProfile,
    VerifyStatus,
)
from ulak.actions.plans.book import read_head
from ulak.actions.records import next_number, to_channel, to_profile, to_route
from ulak.errors import NotFound
from ulak.spine.query import Queries, Query
from ulak.spine.store import Tx

sql = Queries("ulak.actions")

E = TypeVar("E")


def _read(tx: Tx, query: Query, identifier: int, shape: Callable[[tuple[object, ...]], E], what: str) -> E:
    row = tx.row(query, id=identifier)
    if row is None:
        raise _missing(what, identifier)
    return shape(row)


def _delete(tx: Tx, query: Query, identifier: int, what: str) -> None:
    if not tx.execute(query, id=identifier):
        raise _missing(what, identifier)


def _missing(what: str, identifier: int) -> NotFound:
    return NotFound(f"no {what} {identifier:,}; it was never made, or is deleted")


# Profiles


def create_profile(tx: Tx, form: ProfileForm) -> RecipientProfile:
    identifier = next_number(tx, "profile")
    tx.execute(sql.insert_profile, id=identifier, created_at=tx.now, updated_at=tx.now, **msgspec.structs.asdict(form))
    return read_profile(tx, identifier)


def read_profile(tx: Tx, identifier: int) -> RecipientProfile:
    return _read(tx, sql.read_profile, identifier, to_profile, "recipient profile")


def list_profiles(tx: Tx, after: int, limit: int) -> list[RecipientProfile]:
    return [to_profile(row) for row in tx.rows(sql.list_profiles, after=after, n=limit)]


def amend_profile(tx: Tx, identifier: int, changes: Any) -> RecipientProfile:
    form = parse_form(merged(read_profile(tx, identifier), changes, ProfileForm), ProfileForm, "the profile")
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
    runs = [run for (run,) in tx.rows(sql.find_runs_of_profile, profile=identifier)]
    delete_profile(tx, identifier)
    for (job,) in tx.rows(sql.find_dead_of_runs, runs=runs):
        forget_mending(tx, job)
    tx.execute(sql.erase_variables, runs=runs)


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
    return _read(tx, sql.read_channel, identifier, to_channel, "recipient channel")


def list_channels(tx: Tx, profile: int | None, after: int, limit: int) -> list[RecipientChannel]:
    low, high = (0, MAX_NUMBER) if profile is None else (profile, profile)
    return [to_channel(row) for row in tx.rows(sql.list_channels, after=after, low=low, high=high, n=limit)]


def amend_channel(tx: Tx, identifier: int, changes: Any) -> RecipientChannel:
    """A new target has to be verified anew. A channel keeps its type and its profile."""
    known = read_channel(tx, identifier)
    form = parse_form(merged(known, changes, ChannelForm), ChannelForm, "the channel")
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
    _delete(tx, sql.delete_channel, identifier, "recipient channel")


# Routes


def create_route(tx: Tx, form: RouteForm) -> ActionRoute:
    _need_ends(tx, form)
    identifier = next_number(tx, "route")
    tx.execute(sql.insert_route, id=identifier, created_at=tx.now, updated_at=tx.now, **msgspec.structs.asdict(form))
    return read_route(tx, identifier)


def read_route(tx: Tx, identifier: int) -> ActionRoute:
    return _read(tx, sql.read_route, identifier, to_route, "action route")


def list_routes(tx: Tx, plan: int | None, after: int, limit: int) -> list[ActionRoute]:
    low, high = (0, MAX_NUMBER) if plan is None else (plan, plan)
    return [to_route(row) for row in tx.rows(sql.list_routes, after=after, low=low, high=high, n=limit)]


def amend_route(tx: Tx, identifier: int, changes: Any) -> ActionRoute:
    known = read_route(tx, identifier)
    form = parse_form(merged(known, changes, RouteForm), RouteForm, "the route")
    if form.action_plan_id != known.action_plan_id:
        raise faults.refusal("the route", [("action_plan_id", "can't be changed; make another route")])
    _need_ends(tx, form)
    given = msgspec.structs.asdict(form)
    del given["action_plan_id"]
    tx.execute(sql.update_route, id=identifier, updated_at=tx.now, **given)
    return read_route(tx, identifier)


def delete_route(tx: Tx, identifier: int) -> None:
    _delete(tx, sql.delete_route, identifier, "action route")


def _need_ends(tx: Tx, form: RouteForm) -> None:
    head = read_head(tx, form.action_plan_id)
    problems = _problems_with_profile(tx, "recipient_profile_id", form.recipient_profile_id)
    if head is None or head.deleted_at is not None:
        problems.insert(0, ("action_plan_id", NOT_A_PLAN))
    if problems:
        raise faults.refusal("the route", problems)


def _problems_with_profile(tx: Tx, name: str, identifier: int) -> faults.Problems:
    known = tx.row(sql.read_profile, id=identifier) is not None
    return [] if known else [(name, NOT_A_PROFILE)]


def list_unreachable(tx: Tx, after: int, limit: int) -> list[tuple[int, str]]:
    """Profiles that plans lead to, and that have no channel left by which they could be reached."""
    return [(identifier, name) for identifier, name in tx.rows(sql.list_unreachable, after=after, n=limit)]
