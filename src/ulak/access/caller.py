"""The caller of a request, and its rights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ulak.errors import Error

SCOPE_OF_CALLER = "ulak.caller"  # the name in an ASGI scope under which the door leaves the caller


class Forbidden(Error):
    """This API key may not do that."""


@dataclass(frozen=True, slots=True)
class Scopes:
    """The scopes that there are, each with what it opens. Those `by_name` are never given by `admin`.

    `rooms` are those that are a room's name.
    """

    texts: Mapping[str, str]
    by_name: frozenset[str] = frozenset()
    rooms: frozenset[str] = frozenset()

    def unknown(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.texts]


NONE = Scopes({})


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of an API key, or `loopback`: a caller on this machine, who needs none."""

    id: str
    name: str
    scopes: frozenset[str]
    known: Scopes = field(default=NONE, repr=False, compare=False)

    def may(self, scope: str) -> bool:
        return scope in self.scopes or (scope not in self.known.by_name and "admin" in self.scopes)

    def need(self, scope: str, *, looking: bool = False) -> None:
        """Refuse a caller who may not do this. `look` opens every look, of any scope, but reveals nothing."""
        if not self.may(scope) and not (looking and scope != "reveal" and self.may("look")):
            who = f"the API key {self.name} lacks the scope {scope}" if self.id else f"{scope} needs an API key"
            raise Forbidden(f"{who}; make one that has it: ulak keys create NAME --scope {scope}")

    def need_for_kind(self, kind: str) -> None:
        """A kind that bears a room's name is that room's work, by whichever door it comes in."""
        room = kind.partition(".")[0]
        if room in self.known.rooms:
            self.need(room)


NOBODY = Caller("", "nobody", frozenset())
# Whoever sent it is known by a signature, which the route checks: a provider that reports what became of a message.
SIGNED = Caller("signed", "a signed request", frozenset())


def caller_in(scope: Mapping[str, Any]) -> Caller:
    """Return the caller that the door has left in an ASGI scope."""
    found = scope[SCOPE_OF_CALLER]
    assert isinstance(found, Caller)
    return found
