"""Cuts an XML list at the end of each record, without parsing it; what stands between records must be nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from ulak.changes.sources.source import Unfit

CHUNK_BYTES = 1 << 20
MAX_BLOCK_BYTES = 16 << 20
_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([^"']+)["'][^>]*\?>""")
_OPEN = re.compile(rb"<([A-Za-z_][\w.:-]*)[^<>]*?(/?)>")
_NOT_A_TAG = re.compile(rb"<\?.*?\?>|<!--.*?-->", re.DOTALL)


def cut(stream: BinaryIO, record: str, root: str | None) -> Iterator[bytes]:
    """Each block from `<record` to `</record>`. The list's own beginning and end are checked on the way."""
    begin = re.compile(rb"<%s[\s/>]" % re.escape(record.encode()))
    end = f"</{record}>".encode()
    head, rest = _head(stream, begin)
    opened = _check_head(head, root)
    if rest is None:
        _check_end(head, [], opened, empty=True)
        return
    tail = b""
    for chunk in _chunks(stream, rest):
        *blocks, tail = (tail + chunk).split(end)
        for block in blocks:
            yield _checked(block.lstrip(), begin) + end
        if len(tail) > MAX_BLOCK_BYTES:
            raise Unfit(f"a record has more than {MAX_BLOCK_BYTES} bytes, or never ends")
    if begin.match(tail.lstrip()):
        raise Unfit("the list is truncated: its last record does not end")
    _check_end(tail, opened, opened, empty=False)


def _head(stream: BinaryIO, begin: re.Pattern[bytes]) -> tuple[bytes, bytes | None]:
    """What stands before the first record, and the rest of what was read; None when no record comes."""
    head = b""
    while chunk := stream.read(CHUNK_BYTES):
        head += chunk
        if found := begin.search(head):
            return head[: found.start()], head[found.start() :]
        if len(head) > MAX_BLOCK_BYTES:
            raise Unfit("no record comes in its first megabytes; it is not such a list")
    return head, None


def _chunks(stream: BinaryIO, first: bytes) -> Iterator[bytes]:
    yield first
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _check_head(head: bytes, root: str | None) -> list[bytes]:
    if head.startswith(_WIDE):
        raise Unfit("it is not UTF-8")
    text = head.removeprefix(_BOM)
    declared = _DECLARED.match(text)
    if declared and declared[1].lower() not in {b"utf-8", b"utf8", b"us-ascii"}:
        raise Unfit(f"its encoding is {declared[1].decode('ascii', 'replace')}, not UTF-8")
    plain = _NOT_A_TAG.sub(b"", text)
    if b"<!" in plain:
        raise Unfit("it has a DTD or an entity; no list of this kind has one")
    tags = [found[1] for found in _OPEN.finditer(plain)]
    if not tags:
        raise Unfit("it is not an XML list: it has no root element")
    if root is not None and tags[0] != root.encode():
        raise Unfit(f"its root is {tags[0].decode('utf-8', 'replace')}, not {root}")
    return tags


def _checked(block: bytes, begin: re.Pattern[bytes]) -> bytes:
    if not begin.match(block):
        raise Unfit(f"something stands between its records: {block[:40]!r}")
    if b"<!" in block and (b"<!DOCTYPE" in block or b"<!ENTITY" in block):
        raise Unfit("it has a DTD or an entity; no list of this kind has one")
    return block


def _check_end(tail: bytes, opened: list[bytes], tags: list[bytes], *, empty: bool) -> None:
    if empty:
        raise Unfit(f"it has 0 records below {tags[0].decode('utf-8', 'replace')}")
    closing = re.findall(rb"</([\w.:-]+)\s*>", tail)
    left = _NOT_A_TAG.sub(b"", re.sub(rb"</[\w.:-]+\s*>", b"", tail)).strip()
    if closing != opened[::-1]:
        raise Unfit("the list is truncated: its root element is not closed")
    if left:
        raise Unfit(f"something stands after its last record: {left[:40]!r}")
