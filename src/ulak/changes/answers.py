"""Versions, records and archives in the words of the wire: the seed's fields exactly; `detail` adds the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ulak import codec
from ulak.changes import istanbul
from ulak.changes.fields import alias_changes, changed_fields
from ulak.changes.model import ChangeType, Cursor, Version
from ulak.changes.records import ArchiveRow
from ulak.changes.sources.source import FeedForm
from ulak.changes.state import to_identifier

Answer = dict[str, Any]
WORDS = {int(one): one.name.lower() for one in ChangeType}


def record(key: str, body: str) -> Answer:
    return {"identifier": to_identifier(key), **codec.decode(body)}


def change(form: FeedForm, version: Version) -> Answer:
    found: Answer = codec.decode(change_text(form, version))
    return found


def change_text(form: FeedForm, version: Version) -> str:
    """Return a change as JSON. Its stored parts are JSON already, and are put in as they are."""
    fields = _nulls(form) if version.body is None else version.body
    return (
        f'{{"identifier":{codec.encode_text(to_identifier(version.key))},"changeType":"{WORDS[version.change]}",'
        f'"changedAt":"{istanbul.shown(version.stamp)}",{fields[1:]}'
    )


@cache
def _nulls(form: FeedForm) -> str:
    return codec.encode_text(dict.fromkeys(form.fields))


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


def archive(row: ArchiveRow, epoch: str) -> Answer:
    return {
        "fileName": row.name,
        "cursor": str(Cursor(epoch, row.pos)),
        "until": istanbul.shown(row.stamp),
        "count": row.count,
        "stateHash": row.state_hash,
        "bytes": row.bytes,
        "sha256": row.digest,
        "generatedAt": istanbul.shown(row.made_at // 1000),
    }


def collapsed(versions: Sequence[Version]) -> list[Version]:
    """Return the last version of each key, in the order of the log."""
    last = {version.key: version for version in versions}
    return sorted(last.values(), key=lambda version: version.pos)
