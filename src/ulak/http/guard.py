"""What every request must pass before anything is done for it: not too many, known, not too often, not too large."""

from __future__ import annotations

from ulak.clock import Clock
from ulak.http.access import Access
from ulak.http.caller import NOBODY, Caller
from ulak.http.failure import BodyTooLarge, Busy, Stopping
from ulak.http.hot import Scope
from ulak.http.rate import Rates
from ulak.settings import Http

# A probe must get its answer when nobody else does, and it tells nothing but yes or no.
PROBES = frozenset({"/healthz", "/readyz"})
WHILE_STOPPING = PROBES | {"/metrics"}


class Guard:
    def __init__(self, access: Access, settings: Http, clock: Clock) -> None:
        self._access = access
        self._rates = Rates(settings.rate_per_key_per_second, clock)
        self._most_at_once = settings.max_concurrent_requests
        self.max_body = settings.max_body_bytes
        self.stopping = False

    def admit(self, scope: Scope, at_once: int) -> tuple[Caller, bool]:
        """The caller, and whether the body's size is known and allowed.

        `at_once` counts requests of its sort: those that hand in work may wait for room, and must not keep out who
        looks why, or makes some.
        """
        path = scope["path"]
        if path in PROBES:
            return NOBODY, True
        if self.stopping and path not in WHILE_STOPPING:
            raise Stopping
        if at_once > self._most_at_once:
            raise Busy
        head = dict(scope["headers"])
        caller = self._access.caller(head)
        self._rates.take(caller)
        if b"transfer-encoding" in head:
            return caller, False
        length = head.get(b"content-length")
        if length is not None and int(length) > self.max_body:
            raise BodyTooLarge
        return caller, True
