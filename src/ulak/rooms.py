"""The one central list of rooms, a typed line each, and the lines of migrations. A room's wiring is in its room.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from ulak.stores.migrate import SPINE, Line

if TYPE_CHECKING:  # a command that only asks for their names does not load them
    from ulak.actions.service import Actions
    from ulak.changes.service import Changes
    from ulak.compute.service import Compute
    from ulak.dispatch.service import Dispatch
    from ulak.notify.service import Notify
    from ulak.spine.room import Host, Room

S = TypeVar("S")


class Namespace(Generic[S]):
    """The service of the room that the attribute is named after; found once, and then a plain attribute."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, ulak: None, owner: type) -> Self: ...

    @overload
    def __get__(self, ulak: Namespaces, owner: type) -> S: ...

    def __get__(self, ulak: Namespaces | None, owner: type) -> Self | S:
        if ulak is None:
            return self
        service: S = ulak.rooms[self._name].service
        return vars(ulak).setdefault(self._name, service)  # type: ignore[no-any-return]


class Namespaces(ABC):
    """`ulak.notify` and the others, in the order of menus. `<name>_room(host)` in `ulak.<name>.room` makes each."""

    notify: Namespace[Notify] = Namespace()
    dispatch: Namespace[Dispatch] = Namespace()
    compute: Namespace[Compute] = Namespace()
    changes: Namespace[Changes] = Namespace()
    actions: Namespace[Actions] = Namespace()

    @property
    @abstractmethod
    def rooms(self) -> Rooms: ...


NAMES = tuple(Namespaces.__annotations__)
LINES = (
    SPINE,
    Line("access", "ulak.access"),
    Line("channels", "ulak.channels"),
    Line("buses", "ulak.buses"),
    *(Line(name, f"ulak.{name}") for name in NAMES),
)


class Rooms:
    """The rooms of one Ulak."""

    def __init__(self, host: Host) -> None:
        self._made: dict[str, Room[Any]] = {
            name: getattr(import_module(f"ulak.{name}.room"), f"{name}_room")(host) for name in NAMES
        }

    def __getitem__(self, name: str) -> Room[Any]:
        return self._made[name]

    def __iter__(self) -> Iterator[Room[Any]]:
        return iter(self._made.values())

    def port(self, name: str) -> Callable[..., Any]:
        """Return a port that one of them offers to the others."""
        return next(room.ports[name] for room in self if name in room.ports)
