"""Who makes a request, and what that one may do."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from ulak.http.failure import Forbidden

# What each scope opens; the reference page says the same.
SCOPES = {
    "notify": "send notifications and look at them",
    "dispatch": "offer tasks and answer offers",
    "compute": "run scripts",
    "changes": "publish lists and follow their changes",
    "actions": "run action plans",
    "jobs": "enqueue, look at, cancel and redrive jobs of every kind",
    "metrics": "read /metrics",
    "admin": "everything but reveal, and besides it API keys, breakers and backups",
    "reveal": "see payloads unmasked (besides the scope that shows them masked)",
}
SCOPE_OF_CALLER = "ulak.caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of an API key, or `loopback`: who is on this machine and needs none."""

    id: str
    name: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        return scope in self.scopes or (scope != "reveal" and "admin" in self.scopes)

    def need(self, scope: str) -> None:
        if not self.may(scope):
            raise Forbidden(
                f"the API key {self.name} lacks the scope {scope}; make one that has it: "
                f"ulak keys create NAME --scope {scope}"
            )


LOOPBACK = Caller("", "loopback", frozenset(SCOPES))
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
