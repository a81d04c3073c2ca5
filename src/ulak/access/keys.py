"""API keys: made once and shown once, kept as a hash, looked up in memory. A revoked key stays listed."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ulak.access.caller import Caller, Scopes
from ulak.errors import Invalid, NotFound
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx
from ulak.spine.units import audit

sql = Queries(__package__)

PREFIX = b"ulak_"
MAX_NAME = 100


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
    identifier, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
    key = Key(identifier, name, _digest(secret.encode()), frozenset(scopes), now, None)
    return NewKey(key, f"{PREFIX.decode()}{identifier}_{secret}")


def check_key(name: str, scopes: list[str], known: Scopes) -> None:
    """Refuse a name that can't be shown, and scopes that do not exist."""
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise Invalid(
            f"a key's name has 1 to {MAX_NAME} printable characters",
            fields=[("name", f"must have 1 to {MAX_NAME} printable characters")],
        )
    unknown, there_are = known.unknown(scopes), ", ".join(known.texts)
    if unknown or not scopes:
        said = f"no scope {unknown[0]!r}" if unknown else "a key without a scope opens nothing"
        raise Invalid(f"{said}; there are: {there_are}", fields=[("scopes", f"must be of: {there_are}")])


def _digest(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()


def keep_key(tx: Tx, key: Key, who: str = "python") -> None:
    tx.execute(
        sql.insert_key,
        id=key.id,
        name=key.name,
        digest=key.digest,
        scopes=" ".join(sorted(key.scopes)),
        made_at=key.made_at,
    )
    tx.emit("key.created", 0, key.name, [key.id, sorted(key.scopes)])
    audit.record(tx, who, "keys.create", key.id, {"name": key.name, "scopes": sorted(key.scopes)})


def revoke_key(tx: Tx, identifier: str, who: str = "python") -> None:
    if not tx.execute(sql.revoke_key, id=identifier, now=tx.now):
        raise NotFound(f"no usable key {identifier}; `ulak keys list` shows which there are")
    tx.emit("key.revoked", 0, identifier)
    audit.record(tx, who, "keys.revoke", identifier)


def list_keys(tx: Tx) -> list[Key]:
    return [
        Key(identifier, name, digest, frozenset(scopes.split()), made_at, revoked_at)
        for identifier, name, digest, scopes, made_at, revoked_at in tx.rows(sql.list_keys)
    ]


class KeyRing:
    """The usable keys in memory. Changes made here show at once, those of other processes at the next `load`.

    `local` is a key that is in no store: this process makes it at its start for the command line beside it, and it
    opens everything.
    """

    def __init__(self, known: Scopes, local: Key | None = None) -> None:
        self._known = known
        self._local = (
            {} if local is None else {local.id.encode(): (local.digest, self._caller(local, set(known.texts)))}
        )
        self._keys: dict[bytes, tuple[str, Caller]] = {}
        self.usable = 0

    async def load(self, store: Store) -> None:
        found = [key for key in await store.read(list_keys) if key.revoked_at is None]
        self._keys = {key.id.encode(): (key.digest, self._caller(key, key.scopes)) for key in found} | self._local
        self.usable = len(found)

    def _caller(self, key: Key, scopes: AbstractSet[str]) -> Caller:
        return Caller(key.id, key.name, frozenset(scopes), self._known)

    def by_id(self, identifier: str) -> Caller | None:
        found = self._keys.get(identifier.encode())
        return None if found is None else found[1]

    def find(self, token: bytes) -> Caller | None:
        identifier, _, secret = token.removeprefix(PREFIX).partition(b"_")
        found = self._keys.get(identifier)
        if found is None:
            return None
        digest, caller = found
        return caller if hmac.compare_digest(_digest(secret), digest) else None
