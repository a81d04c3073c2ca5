"""Archives: a whole feed at one head as XML.GZ, with the cursor from which to read on."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import msgspec

from ulak.changes.pipeline.differ import Current
from ulak.changes.pipeline.spill import read_frames
from ulak.changes.sources.source import FeedForm
from ulak.changes.state import Sums, state_hash, to_identifier

ROOT = "GibUserList"
GZIP_LEVEL = 4  # half of level 6's time for an eighth more bytes
_BATCH = 500
_NAMES = {
    "title": "Title",
    "accountType": "AccountType",
    "type": "Type",
    "firstCreationTime": "FirstCreationTime",
}
_special = re.compile("[&<>\r]").search
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class ArchiveHead:
    """The attributes of the root element."""

    document: str
    generated_at: str
    count: int
    cursor: str
    until: str
    state_hash: str


@dataclass(frozen=True, slots=True)
class Written:
    """A finished file; `state_hash` is that of what was really written."""

    bytes: int
    digest: str
    count: int
    state_hash: str


def write_archive(form: FeedForm, head: ArchiveHead, rows: str, path: str) -> Written:
    """Render the exported records of a feed. Runs on an engine process."""
    sums, count = Sums(), 0
    target = Path(path)
    with target.open("wb") as raw, gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0) as file:
        file.write(_opening(head).encode())
        waiting: list[str] = []
        for record in read_frames([rows], Current):
            fields = _decode(record.body)
            identifier = to_identifier(record.key)
            sums.add(record.key, record.hash)
            count += 1
            waiting.append(_user(form, identifier, fields))
            if len(waiting) == _BATCH:
                file.write("".join(waiting).encode())
                waiting = []
        file.write("".join([*waiting, f"</{ROOT}>\n"]).encode())
    with target.open("rb") as whole:
        digest = hashlib.file_digest(whole, "sha256").hexdigest()
    return Written(target.stat().st_size, digest, count, state_hash(sums.packed()))


def _opening(head: ArchiveHead) -> str:
    attributes = {
        "documentType": head.document,
        "generatedAt": head.generated_at,
        "count": str(head.count),
        "cursor": head.cursor,
        "until": head.until,
        "stateHash": head.state_hash,
    }
    told = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{ROOT}{told}>\n'


def _user(form: FeedForm, identifier: str, fields: Mapping[str, Any]) -> str:
    inner = "".join(_element(name, fields.get(name)) for name in form.fields)
    return f"<User><Identifier>{_text(identifier)}</Identifier>{inner}</User>\n"


def _element(name: str, value: Any) -> str:
    """A field that is null has no element."""
    if name == "aliases":
        return f"<Aliases>{''.join(_alias(one) for one in value or [])}</Aliases>"
    if value is None:
        return ""
    known = _NAMES.get(name)
    return f"<{known}>{_text(value)}</{known}>" if known else f"<Field name={quoteattr(name)}>{_text(value)}</Field>"


def _alias(alias: Mapping[str, Any]) -> str:
    created = alias["creationTime"]
    time = "" if created is None else f"<CreationTime>{_text(created)}</CreationTime>"
    return f"<Alias><Name>{_text(alias['alias'])}</Name><Type>{_text(alias['type'])}</Type>{time}</Alias>"


def _text(value: str) -> str:
    """Line ends that an XML reader would change are written as references."""
    return escape(value, {"\r": "&#13;"}) if _special(value) else value


def read_archive(path: Path, form_fields: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """(identifier, fields) of every record; the first item is ("", the root's attributes)."""
    from xml.etree import ElementTree as ET

    wire = {element: name for name, element in _NAMES.items()}
    with gzip.open(path, "rb") as file:
        events = ET.iterparse(file, ("start", "end"))  # noqa: S314 - our own file, checked by its state hash
        _, root = next(events)
        yield "", dict(root.attrib)
        for event, element in events:
            if event == "end" and element.tag == "User":
                yield _read_user(element, wire, form_fields)
                root.clear()


def _read_user(element: Any, wire: Mapping[str, str], names: Iterable[str] | None) -> tuple[str, dict[str, Any]]:
    fields: dict[str, Any] = dict.fromkeys(names or ())
    identifier = ""
    for part in element:
        if part.tag == "Identifier":
            identifier = part.text or ""
        elif part.tag == "Aliases":
            fields["aliases"] = [
                {
                    "alias": one.findtext("Name") or "",
                    "type": one.findtext("Type") or "",
                    "creationTime": one.findtext("CreationTime"),
                }
                for one in part
            ]
        else:
            fields[part.get("name") if part.tag == "Field" else wire[part.tag]] = part.text or ""
    return identifier, fields
