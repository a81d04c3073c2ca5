"""The seam of a source: which files and feeds a registry has, and how a block of a file becomes part of a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, Protocol

from ulak.errors import Error


class Unfit(Error):
    """The list is not as it should be; nothing of it is published."""


class BadRecord(Error):
    """One record can't be read; it is carried over and counted."""


@dataclass(frozen=True, slots=True)
class FeedForm:
    """The form of a feed. `document` is its name in archives, `number` its document type in the seed's tables."""

    name: str
    fields: tuple[str, ...]
    title: str
    document: str = ""
    number: int = 0


class Opened(NamedTuple):
    """An unpacked file: its bytes, and the name of the member that they come from."""

    stream: BinaryIO
    member: str


class Parsed(NamedTuple):
    """A block: its identifier, and its part in each feed. None: named there, but not live."""

    identifier: str
    parts: Mapping[str, Any]


class Merged(NamedTuple):
    """A record as it is published, and what is needed to merge it again when one of its files changes."""

    fields: dict[str, Any]
    content_hash: str
    title: str
    parts: dict[str, Any] | None = None
    aliases: Mapping[str, int] = {}
    mixed: bool = False


class Source(Protocol):
    """Frozen and picklable: it is sent to the engine's processes."""

    @property
    def registry(self) -> str: ...

    @property
    def roles(self) -> tuple[str, ...]:
        """Its files, by the role that each plays."""

    @property
    def feeds(self) -> tuple[FeedForm, ...]: ...

    @property
    def version(self) -> str:
        """Changes when the same bytes would give other records."""

    @property
    def compression(self) -> str:
        """`zip`, `gzip` or `none`."""

    def blocks(self, role: str, opened: Opened) -> Iterator[Sequence[bytes]]:
        """The records of a file as raw blocks, in batches; raises Unfit for a file that is not such a list."""

    def repeats(self, block: bytes) -> bool:
        """Whether the file has several blocks for one identifier, so that a single one is not conclusive."""

    def parse(self, role: str, block: bytes) -> Parsed:
        """Raises BadRecord; Unfit when the block shows that the file is not such a list."""

    def identify(self, block: bytes) -> str | None:
        """The identifier of a block that can't be parsed, where it can be seen."""

    def join(self, first: Any, second: Any) -> Any:
        """One part of two blocks of the same file and identifier."""

    def merge(self, feed: str, identifier: str, parts: Mapping[str, Any]) -> Merged:
        """The record of the parts of each role; at least one is there."""

    def part_of(self, role: str, fields: Mapping[str, Any], parts: Mapping[str, Any] | None) -> Any | None:
        """The part that a role has in a published record; None when it has none."""
