"""GİB's user lists: PK (mailboxes) and GB (senders), merged per document type by the seed's rules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ulak.changes import turkish
from ulak.changes.sources import gib_block
from ulak.changes.sources.cut import cut
from ulak.changes.sources.source import FeedForm, Merged, Opened, Parsed, Unfit

_FIELDS = ("title", "accountType", "type", "firstCreationTime", "aliases")
_DOCUMENTS = {"Invoice": "einvoice", "DespatchAdvice": "edespatch"}
FEEDS = (
    FeedForm("einvoice", _FIELDS, "title", "Invoice", 1),
    FeedForm("edespatch", _FIELDS, "title", "DespatchAdvice", 2),
)

# Of a file: account type, first creation time, title, type; then the aliases, (name, creation time).
Part = tuple[list[str | None], list[tuple[str, str | None]]]
_SCALARS = ("accountType", "firstCreationTime", "title", "type")


@dataclass(frozen=True, slots=True)
class GibSource:
    registry: str = "gib"
    roles: tuple[str, ...] = ("PK", "GB")
    feeds: tuple[FeedForm, ...] = FEEDS
    compression: str = "zip"
    version: ClassVar[str] = "gib-1"

    def blocks(self, role: str, opened: Opened) -> Iterator[list[bytes]]:
        other = "gb" if role == "PK" else "pk"
        if f"user{other}list" in opened.member.lower():
            raise Unfit(f"its member is {opened.member}: the two files are swapped")
        return cut(opened.stream, "User", "UserList")

    def repeats(self, block: bytes) -> bool:
        return b"<Documents" not in block

    def parse(self, role: str, block: bytes) -> Parsed:
        user = gib_block.read_user(block)
        scalars = [user.account_type, user.first_creation_time, user.title, user.type]
        parts: dict[str, Part | None] = {}
        for document, live in user.documents.items():
            feed = _DOCUMENTS.get(document)
            if feed is not None:
                parts[feed] = (scalars, live) if live else None
        return Parsed(user.identifier, parts)

    def identify(self, block: bytes) -> str | None:
        return gib_block.identify(block)

    def join(self, first: Part, second: Part) -> Part:
        scalars = [_largest(pair) for pair in zip(first[0], second[0], strict=True)]
        return scalars, [*first[1], *second[1]]

    def merge(self, feed: str, identifier: str, parts: Mapping[str, Part]) -> Merged:
        rows = [scalars for scalars, _ in parts.values()]
        if len(rows) == 1 or rows[0] == rows[1]:
            merged, lowered, own = rows[0], turkish.lower(rows[0][2] or ""), {}
        else:
            merged = [_largest(column) for column in zip(*rows, strict=True)]
            lowered = max((turkish.lower(row[2]) for row in rows if row[2] is not None), default="")
            own = {role: parts[role][0] for role in self.roles if parts[role][0] != merged}
        account, first, title, kind = merged
        aliases = sorted((name, role, created or "") for role, (_, live) in parts.items() for name, created in live)
        signature = ",".join([f"{name}:{role}" for name, role, _ in aliases])
        spaced = (first or "").replace("T", " ")
        text = f"{identifier}{lowered}{account or ''}{kind or ''}{spaced}{signature}"
        return Merged(
            {
                "title": title,
                "accountType": account,
                "type": kind,
                "firstCreationTime": first,
                "aliases": [{"alias": n, "type": r, "creationTime": c or None} for n, r, c in aliases],
            },
            hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
            lowered,
            own or None,
            {role: len(live) for role, (_, live) in parts.items()},
            mixed=len(own) == len(rows),
        )

    def part_of(self, role: str, fields: Mapping[str, Any], parts: Mapping[str, Any] | None) -> Part | None:
        live = [(one["alias"], one["creationTime"]) for one in fields["aliases"] if one["type"] == role]
        if not live:
            return None
        return (parts or {}).get(role) or [fields[name] for name in _SCALARS], live


def _largest(column: tuple[str | None, ...]) -> str | None:
    """The seed's MAX, by code point: whatever is null does not count."""
    return max((value for value in column if value is not None), default=None)
