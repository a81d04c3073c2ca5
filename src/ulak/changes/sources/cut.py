"""Cuts an XML list at the end of each record, without parsing it; nothing may stand between records."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from ulak.changes.sources.source import Unfit

CHUNK_BYTES = 1 << 20
MAX_BLOCK_BYTES = 16 << 20
_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([^"']+)["'][^>]*\?>""")
_OPEN = re.compile(rb"<([A-Za-z_][\w.:-]*)[^<>]*?(/?)>")
_AFTER_NAME = (b">", b" ", b"\n", b"\t", b"\r", b"/")
_NOT_A_TAG = re.compile(rb"<\?.*?\?>|<!--.*?-->", re.DOTALL)


def cut(stream: BinaryIO, record: str, root: str | None, encoding: str = "utf-8") -> Iterator[list[bytes]]:
    """Yield batches of raw blocks in UTF-8. A block includes the text before it, which `bare_block` checks and removes.

    The beginning and the end of the list are checked on the way.
    """
    chunks = _chunks(stream) if encoding == "utf-8" else _recoded(_chunks(stream), encoding)
    begin = re.compile(rb"<%s[\s/>]" % re.escape(record.encode()))
    end = f"</{record}>".encode()
    head, rest = _head(chunks, begin)
    opened = _check_head(head, root, encoding)
    if rest is None:
        _check_end(head, [], opened, empty=True)
        return
    tail = b""
    for chunk in chain([rest], chunks):
        blocks = (tail + chunk).split(end)
        tail = blocks.pop()
        yield [block + end for block in blocks]
        if len(tail) > MAX_BLOCK_BYTES:
            raise Unfit(f"a record has more than {MAX_BLOCK_BYTES} bytes, or never ends")
    if begin.match(tail.lstrip()):
        raise Unfit("the list is truncated: its last record does not end")
    _check_end(tail, opened, opened, empty=False)


def bare_block(block: bytes, record: str) -> bytes:
    """Return a block from `<record` on; raises Unfit for any other text. A block that is known was checked before."""
    own, name = block.lstrip(), record.encode()
    if not own.startswith(b"<" + name) or own[len(name) + 1 : len(name) + 2] not in _AFTER_NAME:
        raise Unfit(f"something stands between its records: {own[:40]!r}")
    if b"!" in own and (b"<!DOCTYPE" in own or b"<!ENTITY" in own):
        raise Unfit("it has a DTD or an entity; no list of this kind has one")
    return own


def _head(chunks: Iterator[bytes], begin: re.Pattern[bytes]) -> tuple[bytes, bytes | None]:
    """Return the text before the first record, and the rest of the reading; None when no record comes."""
    head = b""
    for chunk in chunks:
        head += chunk
        if found := begin.search(head):
            return head[: found.start()], head[found.start() :]
        if len(head) > MAX_BLOCK_BYTES:
            raise Unfit("no record comes in its first megabytes; it is not such a list")
    return head, None


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _recoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    try:
        for text in codecs.iterdecode(chunks, encoding):
            yield text.encode()
    except UnicodeError as error:
        raise Unfit(f"it is not {encoding}: {error}") from error


def _check_head(head: bytes, root: str | None, encoding: str) -> list[bytes]:
    if head.startswith(_WIDE):
        raise Unfit("it is not UTF-8")
    text = head.removeprefix(_BOM)
    declared = _DECLARED.match(text)
    if declared and _codec(declared[1].decode("ascii", "replace")) not in {"ascii", _codec(encoding)}:
        raise Unfit(f"its encoding is {declared[1].decode('ascii', 'replace')}, not {encoding.upper()}")
    plain = _NOT_A_TAG.sub(b"", text)
    if b"<!" in plain:
        raise Unfit("it has a DTD or an entity; no list of this kind has one")
    tags = [found[1] for found in _OPEN.finditer(plain)]
    if not tags:
        raise Unfit("it is not an XML list: it has no root element")
    if root is not None and tags[0] != root.encode():
        raise Unfit(f"its root is {tags[0].decode('utf-8', 'replace')}, not {root}")
    return tags


def _codec(encoding: str) -> str:
    """Return the same name for every alias of an encoding; an unknown one keeps its own."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return encoding


def _check_end(tail: bytes, opened: list[bytes], tags: list[bytes], *, empty: bool) -> None:
    if empty:
        raise Unfit(f"it has 0 records below {tags[0].decode('utf-8', 'replace')}")
    closing = re.findall(rb"</([\w.:-]+)\s*>", tail)
    left = _NOT_A_TAG.sub(b"", re.sub(rb"</[\w.:-]+\s*>", b"", tail)).strip()
    if closing != opened[::-1]:
        raise Unfit("the list is truncated: its root element is not closed")
    if left:
        raise Unfit(f"something stands after its last record: {left[:40]!r}")
