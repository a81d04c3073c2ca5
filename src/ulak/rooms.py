"""The one central list of rooms, a typed line each, and the lines of migrations. A room's wiring is in its room.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ulak.stores.migrate import SPINE, Line

if TYPE_CHECKING:  # a command that only asks for their names does not load them
    from ulak.actions.service import Actions
    from ulak.changes.service import Changes
    from ulak.compute.service import Compute
    from ulak.dispatch.service import Dispatch
    from ulak.notify.service import Notify
    from ulak.spine.room import Host, Room


class Rooms:
    """The rooms of one Ulak. `<name>_room(host)` in `ulak.<name>.room` makes each."""

    notify: Room[Notify]
    compute: Room[Compute]
    actions: Room[Actions]
    dispatch: Room[Dispatch]
    changes: Room[Changes]

    def __init__(self, host: Host) -> None:
        for name in NAMES:
            setattr(self, name, getattr(import_module(f"ulak.{name}.room"), f"{name}_room")(host))

    def __iter__(self) -> Iterator[Room[Any]]:
        return (getattr(self, name) for name in NAMES)

    def port(self, name: str) -> Callable[..., Any]:
        """Return a port that one of them offers to the others."""
        return next(room.ports[name] for room in self if name in room.ports)


NAMES = tuple(Rooms.__annotations__)
LINES = (
    SPINE,
    Line("access", "ulak.access"),
    Line("channels", "ulak.channels"),
    Line("buses", "ulak.buses"),
    *(Line(name, f"ulak.{name}") for name in NAMES),
)
