"""Standard Webhooks signatures: v1 (HMAC-SHA256, `whsec_`) and v1a (Ed25519, `whsk_` signs, `whpk_` verifies).

Several secrets may be live at once: during a rotation both the old and the new one sign, until the old one expires.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ulak.clock import given_millis
from ulak.errors import Invalid

TOLERANCE_SECONDS = 300.0
_SHARED_BYTES = range(24, 65)


class BadSignature(Invalid):
    """The webhook's signature does not hold."""


class _Key(Protocol):
    version: ClassVar[str]

    def sign(self, content: bytes) -> bytes: ...

    def matches(self, content: bytes, signature: bytes) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Shared:
    version: ClassVar[str] = "v1"
    secret: bytes

    def sign(self, content: bytes) -> bytes:
        return hmac.digest(self.secret, content, "sha256")

    def matches(self, content: bytes, signature: bytes) -> bool:
        return hmac.compare_digest(self.sign(content), signature)


@dataclass(frozen=True, slots=True)
class _Pair:
    version: ClassVar[str] = "v1a"
    private: Ed25519PrivateKey | None
    public: Ed25519PublicKey

    def sign(self, content: bytes) -> bytes:
        if self.private is None:
            raise Invalid("A whpk_ key can only verify; sign with the whsk_ key that belongs to it.")
        return self.private.sign(content)

    def matches(self, content: bytes, signature: bytes) -> bool:
        try:
            self.public.verify(signature, content)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Secret:
    """One key of an endpoint in its text form. After `expires_at` it neither signs nor verifies."""

    text: str = field(repr=False)
    expires_at: datetime | None = None
    key: _Key = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _parse(self.text))
        if self.expires_at is not None:
            given_millis("expires_at", self.expires_at)  # one without a time zone is refused here, not at a delivery

    def is_live(self, now: datetime) -> bool:
        return self.expires_at is None or now < self.expires_at


def new_secret() -> str:
    """A fresh shared secret."""
    return "whsec_" + _encode(os.urandom(32))


def new_key_pair() -> tuple[str, str]:
    """A fresh signing key (keep it) and the public key that belongs to it (give it to the receiver)."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    return "whsk_" + _encode(private.private_bytes_raw() + public), "whpk_" + _encode(public)


def public_half(secret: Secret) -> str:
    """The whpk_ key that verifies what a whsk_ key signs."""
    if not isinstance(secret.key, _Pair):
        raise Invalid("A whsec_ secret has no public half; it is shared by both sides.")
    return "whpk_" + _encode(secret.key.public.public_bytes_raw())


def sign(secrets: Iterable[Secret], message_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """The three headers for a body that leaves now, signed by every live secret."""
    seconds = given_millis("now", now) // 1000
    content = f"{message_id}.{seconds}.".encode() + body
    marks = [f"{secret.key.version},{_encode(secret.key.sign(content))}" for secret in secrets if secret.is_live(now)]
    headers = {"webhook-id": message_id, "webhook-timestamp": str(seconds)}
    return headers | {"webhook-signature": " ".join(marks)} if marks else headers


def verify(
    secrets: Iterable[Secret],
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
    tolerance_seconds: float = TOLERANCE_SECONDS,
) -> str:
    """The message's id when a live secret made one of the signatures a short while ago; BadSignature otherwise."""
    lower = {name.lower(): value for name, value in headers.items()}
    message_id, seconds, marks = (_header(lower, name) for name in ("id", "timestamp", "signature"))
    _check_age(seconds, given_millis("now", now), tolerance_seconds)
    content = f"{message_id}.{seconds}.".encode() + body
    live = [secret.key for secret in secrets if secret.is_live(now)]
    if not any(_holds(live, content, mark) for mark in marks.split(" ")):
        raise BadSignature("No signature in webhook-signature was made with a live secret of this endpoint.")
    return message_id


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(f"webhook-{name}")
    if not value:
        raise BadSignature(f"The header webhook-{name} is missing.")
    return value


def _check_age(seconds: str, now: int, tolerance_seconds: float) -> None:
    if not (seconds.isascii() and seconds.isdigit() and len(seconds) <= 12):
        raise BadSignature("The header webhook-timestamp is not a number of seconds since 1970.")
    age = now / 1000 - int(seconds)
    if abs(age) > tolerance_seconds:
        where = "in the past" if age > 0 else "in the future"
        raise BadSignature(f"The webhook's timestamp is more than {tolerance_seconds:g} seconds {where}.")


def _holds(keys: list[_Key], content: bytes, mark: str) -> bool:
    version, _, text = mark.partition(",")
    try:
        signature = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return any(key.matches(content, signature) for key in keys if key.version == version)


def _parse(text: str) -> _Key:
    prefix, _, rest = text.partition("_")
    try:
        raw = base64.b64decode(rest, validate=True)
    except (binascii.Error, ValueError):
        raise _unfit("The webhook secret is not valid base64 behind its prefix.") from None
    if prefix == "whsec":
        return _shared(raw)
    if prefix in ("whsk", "whpk"):
        return _signing(raw) if prefix == "whsk" else _verifying(raw)
    raise _unfit("A webhook secret starts with whsec_ (shared), whsk_ (signing) or whpk_ (verifying).")


def _shared(raw: bytes) -> _Key:
    if len(raw) not in _SHARED_BYTES:
        raise _unfit(f"A whsec_ secret has 24 to 64 bytes, this one has {len(raw)}; make one with new_secret().")
    return _Shared(raw)


def _signing(raw: bytes) -> _Key:
    # 32 bytes of seed, as Standard Webhooks has it, or the seed and its public key, as most key makers write it.
    private = Ed25519PrivateKey.from_private_bytes(raw[:32]) if len(raw) in (32, 64) else None
    if private is None or raw[32:] not in (b"", private.public_key().public_bytes_raw()):
        raise _unfit("A whsk_ key has 32 bytes, or 64 with its own public key behind; make one with new_key_pair().")
    return _Pair(private, private.public_key())


def _verifying(raw: bytes) -> _Key:
    if len(raw) != 32:
        raise _unfit(f"A whpk_ key has 32 bytes, this one has {len(raw)}.")
    return _Pair(None, Ed25519PublicKey.from_public_bytes(raw))


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _unfit(text: str) -> Invalid:
    return Invalid(text, fields=[("secret", text)])
