"""Webhook endpoints that are known: their secrets, rotated with an overlap, and whether they want messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ulak import codec
from ulak.channels.signature import Secret, new_secret
from ulak.clock import maybe_datetime, to_datetime, to_millis
from ulak.errors import Invalid, NotFound
from ulak.notify.decide import looks_like_url
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx

sql = Queries(__package__)

OVERLAP_SECONDS = 86_400.0
REMEMBER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    url: str
    secrets: tuple[Secret, ...] = field(default=(), repr=False)
    disabled_at: datetime | None = None
    reason: str | None = None


def find(tx: Tx, url: str) -> Endpoint | None:
    row = tx.one(sql.read_endpoint, url=url)
    return None if row is None else _endpoint(row)


def find_all(tx: Tx) -> list[Endpoint]:
    return [_endpoint(row) for row in tx.all(sql.list_endpoints)]


def _endpoint(row: tuple[str, str, int | None, str | None]) -> Endpoint:
    url, secrets, disabled, reason = row
    known = tuple(Secret(text, maybe_datetime(expires)) for text, expires in codec.decode(secrets))
    return Endpoint(url, known, maybe_datetime(disabled), reason)


def _save(tx: Tx, endpoint: Endpoint) -> Endpoint:
    kept = codec.encode_text([[secret.text, _millis(secret.expires_at)] for secret in endpoint.secrets])
    disabled = _millis(endpoint.disabled_at)
    tx.run(sql.save_endpoint, url=endpoint.url, secrets=kept, disabled_at=disabled, reason=endpoint.reason)
    return endpoint


def _millis(instant: datetime | None) -> int | None:
    return None if instant is None else to_millis(instant)


def register(tx: Tx, url: str, secret: str | None) -> tuple[Endpoint, str]:
    """Make an endpoint known, or rotate its secret: the old one signs beside the new one until the overlap ends."""
    text = secret or new_secret()
    now = to_datetime(tx.now)
    ends_at = now + timedelta(seconds=OVERLAP_SECONDS)
    known = find(tx, url)
    old = (
        ()
        if known is None
        else tuple(
            replace(one, expires_at=min(one.expires_at or ends_at, ends_at))
            for one in known.secrets
            if one.is_live(now)
        )
    )
    return _save(tx, Endpoint(url, (Secret(text), *old))), text


def disable(tx: Tx, url: str, reason: str) -> Endpoint:
    known = find(tx, url) or Endpoint(url)
    if known.disabled_at is None:
        tx.emit("notify.endpoint.disabled", 0, "notify.webhook", reason)
    return _save(tx, replace(known, disabled_at=known.disabled_at or to_datetime(tx.now), reason=reason))


def enable(tx: Tx, url: str) -> Endpoint:
    known = find(tx, url)
    if known is None:
        raise NotFound("no such endpoint is registered; register it first")
    return _save(tx, replace(known, disabled_at=None, reason=None))


def forget(tx: Tx, url: str) -> None:
    if not tx.run(sql.delete_endpoint, url=url):
        raise NotFound("no such endpoint is registered")


class Endpoints:
    """The endpoints as the deliveries need them: remembered, and looked up again every few seconds."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._store = open_store
        self._known: dict[str, Endpoint] = {}
        self._read_at: float | None = None

    async def find(self, url: str) -> Endpoint | None:
        now = self._store().clock.monotonic()
        if self._read_at is None or now - self._read_at > REMEMBER_SECONDS:
            self._read_at = now
            self._known = {one.url: one for one in await self._store().read(find_all)}
        return self._known.get(url)

    async def secrets(self, url: str) -> Sequence[Secret]:
        known = await self.find(url)
        return () if known is None else known.secrets

    async def all(self) -> list[Endpoint]:
        return await self._store().read(find_all)

    async def register(self, url: str, secret: str | None = None) -> str:
        """Make an endpoint known or rotate its secret; answers the secret, which is shown this once."""
        if not looks_like_url(url):
            raise Invalid("an endpoint is an http or https URL", fields=[("url", "must be an http or https URL")])
        endpoint, text = await self._store().write(register, url, secret)
        self._known[url] = endpoint
        return text

    async def disable(self, url: str, reason: str) -> None:
        self._known[url] = await self._store().write(disable, url, reason)

    async def enable(self, url: str) -> None:
        self._known[url] = await self._store().write(enable, url)

    async def forget(self, url: str) -> None:
        await self._store().write(forget, url)
        self._known.pop(url, None)
