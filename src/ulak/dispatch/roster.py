"""Decisions about helpers, pure: create, change, move, forget, and end a pause."""

from __future__ import annotations

from copy import copy

from ulak.dispatch.command import Forget, HelperCommand, HelperVerdict, Missing, Move, Place, Pull, Put
from ulak.dispatch.model import Contact, Helper
from ulak.dispatch.world import World


def apply_to_helper(world: World, command: HelperCommand) -> HelperVerdict | Missing:
    helper = world.named(command.helper)
    if isinstance(command, Put):
        return _put(world, helper, command)
    if helper is None:
        return Missing("helper")
    match command:
        case Move():
            _place(world, helper, command.place)
        case Forget():
            return _forget(world, helper)
        case Pull():
            _wake(world, helper)
    return HelperVerdict(copy(helper))


def _put(world: World, known: Helper | None, command: Put) -> HelperVerdict:
    helper = known or _create(world, command.helper)
    if command.name is not None:
        helper.name = command.name
    if command.skills is not None:
        helper.skills = command.skills
    if command.language is not None:
        helper.language = command.language
    if command.contact is not None:
        helper.contact = command.contact
    if command.active is not None:
        helper.active = command.active
    if command.active:
        helper.timeouts = 0
    if command.place is not None:
        _place(world, helper, command.place)
    changed = world.changes.new_helpers if known is None else world.changes.helpers
    changed[helper.id] = helper
    return HelperVerdict(copy(helper))


def _create(world: World, name: str) -> Helper:
    helper = Helper(world.take_id(), name, contact=Contact("IN_APP", name), served_at=world.now)
    world.names[name] = helper.id
    world.helpers[helper.id] = helper
    world.seen.add(helper.id)
    return helper


def _place(world: World, helper: Helper, place: Place) -> None:
    if helper.position_at is None or helper.position_at <= place.at:
        helper.latitude, helper.longitude = place.latitude, place.longitude
        helper.point, helper.position_at = place.point, place.at
        world.changes.moved.add(helper.id)


def _wake(world: World, helper: Helper) -> None:
    if helper.timeouts:
        helper.timeouts = 0
        world.changes.helpers[helper.id] = helper


def _forget(world: World, helper: Helper) -> HelperVerdict:
    if helper.doing:
        return HelperVerdict(copy(helper), refused=True)
    for changed in (world.changes.helpers, world.changes.new_helpers):
        changed.pop(helper.id, None)
    world.changes.moved.discard(helper.id)
    world.changes.forgotten.append(helper.id)
    del world.names[helper.helper], world.helpers[helper.id]
    return HelperVerdict(copy(helper))
