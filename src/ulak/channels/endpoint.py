"""Webhook endpoints that are known: their secrets, rotated with an overlap, and whether they want messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ulak import codec
from ulak.channels.signature import Secret, new_key_pair, new_secret, public_half
from ulak.channels.ssrf import is_url, normal_url
from ulak.clock import maybe_datetime, to_datetime, to_millis
from ulak.errors import Conflict, Invalid, NotFound, Permanent, Transient
from ulak.spine.query import Queries
from ulak.spine.room import Host
from ulak.spine.store import Tx

sql = Queries(__package__)

OVERLAP_SECONDS = 86_400.0
MAX_SECRETS = 10  # of an endpoint at a time: each adds a signature to the header of every message
REOWNER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    url: str
    secrets: tuple[Secret, ...] = field(default=(), repr=False)
    disabled_at: datetime | None = None
    reason: str | None = None
    requires_secret: bool = False


def find(tx: Tx, url: str) -> Endpoint | None:
    row = tx.row(sql.read_endpoint, url=url)
    return None if row is None else _endpoint(row)


def find_all(tx: Tx) -> list[Endpoint]:
    return [_endpoint(row) for row in tx.rows(sql.list_endpoints)]


def _endpoint(row: tuple[str, str, int | None, str | None, int]) -> Endpoint:
    url, secrets, disabled, reason, requires_secret = row
    known = tuple(Secret(text, maybe_datetime(expires)) for text, expires in codec.decode(secrets))
    return Endpoint(url, known, maybe_datetime(disabled), reason, bool(requires_secret))


def _save(tx: Tx, endpoint: Endpoint) -> Endpoint:
    kept = codec.encode_text([[secret.text, _millis(secret.expires_at)] for secret in endpoint.secrets])
    tx.execute(
        sql.save_endpoint,
        url=endpoint.url,
        secrets=kept,
        disabled_at=_millis(endpoint.disabled_at),
        reason=endpoint.reason,
        requires_secret=int(endpoint.requires_secret),
    )
    return endpoint


def _millis(instant: datetime | None) -> int | None:
    return None if instant is None else to_millis(instant)


def register(tx: Tx, url: str, secret: str | None, *, requires_secret: bool) -> tuple[Endpoint, str | None]:
    """Make an endpoint known, or rotate its secret: the old one signs beside the new one until the overlap ends.

    One that requires a secret waits for the receiver's own: none is made for it.
    """
    known = find(tx, url) or Endpoint(url)
    text = secret or (None if requires_secret else new_secret())
    secrets = known.secrets if text is None else (Secret(text), *_ending(known.secrets, to_datetime(tx.now)))
    return _save(tx, Endpoint(url, secrets, requires_secret=requires_secret)), text


def rotate(tx: Tx, url: str) -> tuple[Endpoint, str]:
    """A new secret for an endpoint that is known; everything else of it stays as it is."""
    known = find(tx, url)
    if known is None:
        raise NotFound("no such endpoint is registered; register it first")
    text = new_secret()
    return _save(tx, replace(known, secrets=(Secret(text), *_ending(known.secrets, to_datetime(tx.now))))), text


def _ending(secrets: Sequence[Secret], now: datetime) -> tuple[Secret, ...]:
    live = [one for one in secrets if one.is_live(now)]
    if len(live) >= MAX_SECRETS:
        raise Conflict(f"an endpoint has at most {MAX_SECRETS} secrets at a time; wait until the older ones have ended")
    ends_at = now + timedelta(seconds=OVERLAP_SECONDS)
    return tuple(replace(one, expires_at=min(one.expires_at or ends_at, ends_at)) for one in live)


def own_key(tx: Tx) -> str:
    """The installation's signing key, made when it is first asked for."""
    row = tx.row(sql.read_key)
    if row is None:
        tx.execute(sql.keep_key, secret=new_key_pair()[0])
        row = tx.row(sql.read_key)
    assert row is not None
    return str(row[0])


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
    if not tx.execute(sql.delete_endpoint, url=url):
        raise NotFound("no such endpoint is registered")


class Endpoints:
    """The endpoints as the deliveries need them: remembered, and looked up again every few seconds."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[str, Endpoint] = {}
        self._read_at: float | None = None
        self._own: Secret | None = None

    async def find(self, url: str) -> Endpoint | None:
        now = self._host.store.clock.monotonic()
        if self._read_at is None or now - self._read_at > REOWNER_SECONDS:
            self._read_at = now
            self._known = {one.url: one for one in await self._host.store.read(find_all)}
        return self._known.get(normal_url(url))

    async def secrets(self, url: str) -> Sequence[Secret]:
        """The endpoint's own secrets, or the installation's key where it has none: nothing leaves unsigned."""
        known = await self.find(url)
        if known is not None and known.secrets:
            return known.secrets
        if known is not None and known.requires_secret:
            raise Transient(
                "The webhook endpoint requires a secret of its own and has none; register one with its URL.",
                code="WEBHOOK_SECRET_MISSING",
                unsent=True,
            )
        return (await self._own_secret(),)

    async def _own_secret(self) -> Secret:
        if self._own is None:
            self._own = Secret(await self._host.store.write(own_key))
        return self._own

    async def public_key(self) -> str:
        """Return the key by which a receiver without a secret of its own verifies: `whpk_…`."""
        return public_half(await self._own_secret())

    async def all(self) -> list[Endpoint]:
        return await self._host.store.read(find_all)

    async def register(self, url: str, secret: str | None = None, *, requires_secret: bool = False) -> str | None:
        """Make an endpoint known or rotate its secret; returns the secret, which is shown this once."""
        check_endpoint(url)
        endpoint, text = await self._host.store.write(
            register, normal_url(url), secret, requires_secret=requires_secret
        )
        self._known[endpoint.url] = endpoint
        return text

    async def rotate(self, url: str) -> str:
        """Give a known endpoint a new secret, which is shown this once; the old one signs beside it for a day."""
        endpoint, text = await self._host.store.write(rotate, _known_form(url))
        self._known[endpoint.url] = endpoint
        return text

    async def disable(self, url: str, reason: str) -> None:
        self._known[normal_url(url)] = await self._host.store.write(disable, normal_url(url), reason)

    async def enable(self, url: str) -> None:
        known = _known_form(url)
        self._known[known] = await self._host.store.write(enable, known)

    async def forget(self, url: str) -> None:
        known = _known_form(url)
        await self._host.store.write(forget, known)
        self._known.pop(known, None)


def check_endpoint(url: str) -> None:
    """Raise Invalid for a URL that no endpoint can have."""
    if not is_url(url):
        why = "must be an http or https URL without a user name or password"
        raise Invalid(f"the endpoint's url {why}", fields=[("url", why)])


def _known_form(url: str) -> str:
    try:
        return normal_url(url)
    except Permanent:
        raise NotFound("no such endpoint is registered") from None
