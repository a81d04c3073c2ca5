"""Receipts of providers about a message: sent, delivered, read, failed. Each one's proof is checked first."""

from __future__ import annotations

import hmac
from typing import Literal

import msgspec

from ulak.errors import Invalid

ReceiptStatus = Literal["sent", "delivered", "read", "failed"]


class Unproven(Invalid):
    """The request is not signed by the provider whose name it uses."""


def fits(expected: str, given: str) -> bool:
    """Whether two signatures are the same, in a time that tells nothing about where they differ."""
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))


class DeliveryReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """One word of a provider about one message. `gone`: the address should be taken out of use."""

    provider_id: str
    status: ReceiptStatus
    at_millis: int
    code: str | None = None
    gone: bool = False


class Tap(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody pressed a button under a message: which one, with what value, and who."""

    action: str
    value: str
    user: str
