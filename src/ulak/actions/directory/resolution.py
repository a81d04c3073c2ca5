"""The recipients of steps: enabled routes to active profiles, else the device's own profiles, and their channels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from ulak.actions.model import UNADDRESSED, StepTarget
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.actions")

Row = tuple[Any, ...]


class Ask(NamedTuple):
    """A step of a plan, for a device."""

    plan: int
    step_order: int
    channel_type: str
    device: str | None


class Directions(NamedTuple):
    """How many active profiles a step is for, and the channels of its type that they have."""

    profiles: int
    targets: list[StepTarget]


def find_targets(tx: Tx, asks: Iterable[Ask]) -> dict[Ask, Directions]:
    """Two statements at most, however many ask."""
    wanted = {ask for ask in asks if ask.channel_type not in UNADDRESSED}
    if not wanted:
        return {}
    routed = _routed(tx, wanted)
    found = {ask: _of_rows(routed[ask.plan, ask.step_order], ask) for ask in wanted}
    alone = [ask for ask, one in found.items() if not one.profiles and ask.device is not None]
    if alone:
        own = _of_devices(tx, {ask.device for ask in alone if ask.device is not None})
        found |= {ask: _of_rows(own[ask.device], ask) for ask in alone}
    return found


def _routed(tx: Tx, wanted: set[Ask]) -> dict[tuple[int, int], list[Row]]:
    plans = sorted({ask.plan for ask in wanted})
    devices = sorted({ask.device for ask in wanted if ask.device is not None})
    found: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for plan, step_order, *row in tx.rows(sql.find_routed, plans=plans, devices=devices):
        found[plan, step_order].append(tuple(row))
    return found


def _of_devices(tx: Tx, devices: set[str]) -> dict[str | None, list[Row]]:
    found: dict[str | None, list[Row]] = defaultdict(list)
    for row in tx.rows(sql.find_device_profiles, devices=sorted(devices)):
        found[row[2]].append((None, None, *row))
    return found


def _of_rows(rows: Iterable[Row], ask: Ask) -> Directions:
    profiles: set[int] = set()
    targets = []
    for row in rows:
        route, override, profile, priority, device, zone, quiet, channel, kind, target, meta, enabled, verified = row
        if device not in (None, ask.device):
            continue
        profiles.add(profile)
        if channel is not None and kind == (override or ask.channel_type):
            usable = bool(enabled) and verified == "verified"
            targets.append(StepTarget(route, profile, priority, channel, kind, target, meta, usable, zone, quiet))
    return Directions(len(profiles), targets)
