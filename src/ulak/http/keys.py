"""API keys: made once and shown once, kept as a hash, looked up in memory. A revoked key stays listed."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from ulak.errors import Invalid, NotFound
from ulak.http.caller import SCOPES, Caller
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx

sql = Queries(__package__)

PREFIX = b"ulak_"
MOST_NAME = 100


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is kept. The digest is of a 256-bit random secret, so it needs no salt and no slow hash."""

    id: str
    name: str
    digest: str
    scopes: frozenset[str]
    made_at: int
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key at its making: the only moment at which the token exists outside its owner's hands."""

    key: Key
    token: str


def make_key(name: str, scopes: list[str], now: int) -> NewKey:
    _check(name, scopes)
    identifier, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
    key = Key(identifier, name, _digest(secret.encode()), frozenset(scopes), now, None)
    return NewKey(key, f"{PREFIX.decode()}{identifier}_{secret}")


def _check(name: str, scopes: list[str]) -> None:
    if not 0 < len(name) <= MOST_NAME or not name.isprintable():
        raise Invalid(
            f"a key's name has 1 to {MOST_NAME} printable characters",
            fields=[("name", f"must have 1 to {MOST_NAME} printable characters")],
        )
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        said = f"no scope {unknown[0]!r}" if unknown else "a key without a scope opens nothing"
        raise Invalid(
            f"{said}; there are: {', '.join(SCOPES)}", fields=[("scopes", f"must be of: {', '.join(SCOPES)}")]
        )


def _digest(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()


def keep_key(tx: Tx, key: Key) -> None:
    tx.run(
        sql.insert_key,
        id=key.id,
        name=key.name,
        digest=key.digest,
        scopes=" ".join(sorted(key.scopes)),
        made_at=key.made_at,
    )
    tx.emit("key.created", 0, key.name, [key.id, sorted(key.scopes)])


def revoke_key(tx: Tx, identifier: str) -> None:
    if not tx.run(sql.revoke_key, id=identifier, now=tx.now):
        raise NotFound(f"no usable key {identifier}; `ulak keys list` shows which there are")
    tx.emit("key.revoked", 0, identifier)


def list_keys(tx: Tx) -> list[Key]:
    return [
        Key(identifier, name, digest, frozenset(scopes.split()), made_at, revoked_at)
        for identifier, name, digest, scopes, made_at, revoked_at in tx.all(sql.list_keys)
    ]


class KeyRing:
    """The usable keys in memory. Changes made here show at once, those of other processes at the next `load`.

    `local` is a key that is in no store: this process makes it at its start for the command line beside it.
    """

    def __init__(self, local: Key | None = None) -> None:
        self._local = [] if local is None else [local]
        self._keys: dict[bytes, tuple[str, Caller]] = {}
        self.usable = 0

    async def load(self, store: Store) -> None:
        found = [key for key in await store.read(list_keys) if key.revoked_at is None]
        self._keys = {
            key.id.encode(): (key.digest, Caller(key.id, key.name, key.scopes)) for key in [*found, *self._local]
        }
        self.usable = len(found)

    def find(self, token: bytes) -> Caller | None:
        identifier, _, secret = token.removeprefix(PREFIX).partition(b"_")
        found = self._keys.get(identifier)
        if found is None:
            return None
        digest, caller = found
        return caller if hmac.compare_digest(_digest(secret), digest) else None
