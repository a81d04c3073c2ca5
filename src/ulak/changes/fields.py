"""A record's published fields: their hash, what differs between two of them, and what became of each alias."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

Fields = Mapping[str, Any]

HASH_VERSION = "ulak-record-2"
_canonical = msgspec.msgpack.Encoder(order="sorted").encode


def record_hash(identifier: str, fields: Fields) -> bytes:
    """SHA-256 over every published field as MessagePack: each text is preceded by its length, names are sorted."""
    return hashlib.sha256(_canonical((HASH_VERSION, identifier, fields))).digest()


def changed_fields(before: Fields | None, after: Fields | None) -> list[str]:
    """Return the names of the fields that differ, in their order; none for a record that came or went."""
    if before is None or after is None:
        return []
    return [name for name in after if before.get(name) != after[name]]


def alias_changes(before: Fields | None, after: Fields | None) -> list[dict[str, Any]] | None:
    """Aliases that were added, removed or re-created; None where records have no aliases."""
    known = after if after is not None else before
    if known is None or "aliases" not in known:
        return None
    old, new = _by_name(before), _by_name(after)
    told: list[dict[str, Any]] = []
    for name, role in sorted(old.keys() | new.keys()):
        had, has = old.get((name, role)), new.get((name, role))
        if had == has:
            continue
        word = "added" if had is None else "removed" if has is None else "recreated"
        told.append({"alias": name, "type": role, "change": word, "creationTime": _last(has), "previous": _last(had)})
    return told


def _by_name(fields: Fields | None) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for alias in (fields or {}).get("aliases") or []:
        found.setdefault((alias["alias"], alias["type"]), []).append(alias["creationTime"] or "")
    return found


def _last(times: Sequence[str] | None) -> str | None:
    return times[-1] if times else None
