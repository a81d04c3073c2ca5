"""The caller of a request, and the scopes of a door: its own, and one of each room."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Request

from ulak.access.caller import SCOPE_OF_CALLER, Caller, Scopes, caller_in

__all__ = ["OWN_SCOPES", "SCOPE_OF_CALLER", "Needs", "caller_of", "loopback", "scopes_with"]

# The reference page says the same. A room's scope comes with its routes.
OWN_SCOPES = {
    "jobs": "enqueue, look at, cancel and redrive jobs of every kind",
    "metrics": "read /metrics",
    "look": "see everything that a GET shows, masked, and change nothing",
    "admin": "everything but compute and reveal, and besides it API keys, breakers and backups",
    "reveal": "see payloads unmasked (besides the scope that shows them masked)",
}


def scopes_with(rooms: Mapping[str, str], by_name: frozenset[str]) -> Scopes:
    """Running code and seeing what is masked are given by name only: rooms say which of them, `reveal` is ours."""
    return Scopes({**rooms, **OWN_SCOPES}, by_name | {"reveal"}, frozenset(rooms))


def loopback(known: Scopes) -> Caller:
    """A caller on this machine may do all but run code."""
    return Caller("", "loopback", frozenset(known.texts) - (known.by_name & known.rooms), known)


def caller_of(request: Request) -> Caller:
    return caller_in(request.scope)


class Needs:
    """A route's dependency: the caller, who must have a scope."""

    def __init__(self, scope: str) -> None:
        self.scope = scope

    async def __call__(self, request: Request) -> Caller:
        caller = caller_of(request)
        caller.need(self.scope, looking=request.method == "GET")
        return caller
