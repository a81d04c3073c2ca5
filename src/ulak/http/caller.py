"""Who makes a request, and what that one may do."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from ulak.http.failure import Forbidden

# What each scope opens; the reference page says the same.
SCOPES = {
    "notify": "send notifications and look at them",
    "dispatch": "offer tasks and answer offers",
    "compute": "run scripts; always with a key of its own, never by admin or by being on this machine",
    "changes": "publish lists and follow their changes",
    "actions": "run action plans",
    "jobs": "enqueue, look at, cancel and redrive jobs of every kind",
    "metrics": "read /metrics",
    "admin": "everything but compute and reveal, and besides it API keys, breakers and backups",
    "reveal": "see payloads unmasked (besides the scope that shows them masked)",
}
ROOMS = frozenset({"notify", "dispatch", "compute", "changes", "actions"})
# Running code and seeing what is masked are given by name only.
_BY_NAME = frozenset({"compute", "reveal"})
SCOPE_OF_CALLER = "ulak.caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of an API key, or `loopback`: who is on this machine and needs none."""

    id: str
    name: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        return scope in self.scopes or (scope not in _BY_NAME and "admin" in self.scopes)

    def need(self, scope: str) -> None:
        if not self.may(scope):
            who = f"the API key {self.name} lacks the scope {scope}" if self.id else f"{scope} needs an API key"
            raise Forbidden(f"{who}; make one that has it: ulak keys create NAME --scope {scope}")

    def need_for_kind(self, kind: str) -> None:
        """A kind that bears a room's name is that room's work, by whichever door it comes in."""
        room = kind.partition(".")[0]
        if room in ROOMS:
            self.need(room)


LOOPBACK = Caller("", "loopback", frozenset(SCOPES) - {"compute"})
NOBODY = Caller("", "nobody", frozenset())


def caller_of(request: Request) -> Caller:
    found = request.scope[SCOPE_OF_CALLER]
    assert isinstance(found, Caller)
    return found


class Needs:
    """A route's dependency: the caller, who must have a scope."""

    def __init__(self, scope: str) -> None:
        self.scope = scope

    async def __call__(self, request: Request) -> Caller:
        caller = caller_of(request)
        caller.need(self.scope)
        return caller
