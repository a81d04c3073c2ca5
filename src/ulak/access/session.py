"""Sessions of the console: a cookie that names an API key and ends by itself, sealed with a secret of the store."""

from __future__ import annotations

import hmac
import secrets

from ulak.access.caller import Caller
from ulak.access.keys import KeyRing
from ulak.clock import Clock
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx

sql = Queries(__package__)

COOKIE = "ulak_session"
LIFETIME_SECONDS = 8 * 3600


def console_secret(tx: Tx) -> str:
    """Made when it is first asked for; all processes of a store share it."""
    tx.execute(sql.keep_secret, name="console", value=secrets.token_hex(32))
    row = tx.row(sql.read_secret, name="console")
    assert row is not None
    return str(row[0])


class Sessions:
    """A revoked key ends its sessions with the next load of the ring."""

    def __init__(self, ring: KeyRing, clock: Clock) -> None:
        self._ring = ring
        self._clock = clock
        self._secret = b""

    async def load(self, store: Store) -> None:
        if not self._secret:
            self._secret = bytes.fromhex(await store.write(console_secret))

    def begin(self, caller: Caller) -> str:
        ends_at = self._clock.now() // 1000 + LIFETIME_SECONDS
        content = f"{caller.id}.{ends_at}"
        return f"{content}.{self._seal(content)}"

    def caller(self, cookie: str) -> Caller | None:
        """Whose session it is; None when it has ended, or was never begun here."""
        content, _, seal = cookie.rpartition(".")
        identifier, _, ends_at = content.partition(".")
        if not self._secret or not hmac.compare_digest(seal.encode(), self._seal(content).encode()):
            return None
        return self._ring.by_id(identifier) if int(ends_at) > self._clock.now() // 1000 else None

    def _seal(self, content: str) -> str:
        return hmac.new(self._secret, content.encode(), "sha256").hexdigest()
