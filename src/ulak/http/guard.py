"""The guard before every request: not too many at once, from a known caller, not too often, not too large."""

from __future__ import annotations

from ulak.access.caller import NOBODY, SIGNED, Caller
from ulak.clock import Clock
from ulak.http.access import Access
from ulak.http.failure import BodyTooLarge, Busy, Stopping, Unauthenticated
from ulak.http.hot_routes import Scope
from ulak.http.rate import Rates
from ulak.settings import Http

SIGN_IN = "/console/login"
# A probe must get its answer when nobody else does, and it tells nothing but yes or no.
PROBES = frozenset({"/healthz", "/readyz"})
WHILE_STOPPING = PROBES | {"/metrics"}


class RequestGuard:
    def __init__(self, access: Access, settings: Http, clock: Clock) -> None:
        self._access = access
        self._rates = Rates(settings.rate_per_key_per_second, clock)
        self._most_at_once = settings.max_concurrent_requests
        self.max_body = settings.max_body_bytes
        self.stopping = False
        self.check_still_known = access.check_still_known

    def _caller(self, head: dict[bytes, bytes], scope: Scope) -> Caller:
        try:
            if scope["path"] == SIGN_IN and scope.get("method") == "POST":
                self._access.check_sign_in(head)
                return NOBODY
            return self._access.caller(head, scope.get("method", ""))  # a socket has no method
        except Unauthenticated:
            if _is_page(scope["path"], head):  # it leads to the form that asks for a key
                return NOBODY
            raise

    def admit(
        self, scope: Scope, at_once: int, max_body: int | None = None, *, is_signed: bool = False
    ) -> tuple[Caller, bool]:
        """The caller, and whether the body's size is known and allowed: by the setting, or by a route's own limit.

        `at_once` counts requests of its sort: those that hand in work may wait for capacity, and must not keep out a
        caller who looks why, or makes some.
        """
        path = scope["path"]
        if path in PROBES:
            return NOBODY, True
        if self.stopping and path not in WHILE_STOPPING:
            raise Stopping
        if at_once > self._most_at_once:
            raise Busy
        head = dict(scope["headers"])
        caller = SIGNED if is_signed else self._caller(head, scope)
        self._rates.take(caller)
        if b"transfer-encoding" in head:
            return caller, False
        length = head.get(b"content-length")
        if length is not None and int(length) > (max_body or self.max_body):
            raise BodyTooLarge
        return caller, True


def _is_page(path: str, head: dict[bytes, bytes]) -> bool:
    """Return whether a person opens this in a browser. The root leads to the console, whoever asks."""
    if path == "/docs":
        return b"text/html" in head.get(b"accept", b"")
    return path == "/" or path.startswith("/console/")
