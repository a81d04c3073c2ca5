"""Versions and records in the words of the wire. What the seed shows is exactly that; `detail` adds the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ulak import codec
from ulak.changes import istanbul
from ulak.changes.fields import alias_changes, changed_fields
from ulak.changes.model import ChangeType, Cursor, Version
from ulak.changes.sources.source import FeedForm
from ulak.changes.state import to_identifier

Answer = dict[str, Any]


def record(key: str, body: str) -> Answer:
    return {"identifier": to_identifier(key), **codec.decode(body)}


def change(form: FeedForm, version: Version) -> Answer:
    fields = dict.fromkeys(form.fields) if version.body is None else codec.decode(version.body)
    return {
        "identifier": to_identifier(version.key),
        "changeType": ChangeType(version.change).name.lower(),
        "changedAt": istanbul.shown(version.stamp),
        **fields,
    }


def detailed(form: FeedForm, version: Version, epoch: str) -> Answer:
    """A change with what it was before, what differs, where it stands, and why it came about."""
    after = None if version.body is None else codec.decode(version.body)
    before = None if version.before is None else codec.decode(version.before)
    removed = version.change == ChangeType.REMOVED
    return {
        **change(form, version),
        "before": before,
        "changedFields": changed_fields(before, after),
        "cursor": str(Cursor(epoch, version.pos)),
        "aliasChanges": alias_changes(before, after),
        "reason": codec.decode(version.parts)["reason"] if removed and version.parts else None,
        "cause": version.cause,
        "contentHash": version.content_hash,
    }


def collapsed(versions: Sequence[Version]) -> list[Version]:
    """Of each key the last version, in the order of the log."""
    last = {version.key: version for version in versions}
    return sorted(last.values(), key=lambda version: version.pos)
