"""Opens a downloaded file: one member of a ZIP, a gzip stream, or the bytes as they are; bombs are refused."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ulak.changes.sources.source import Opened, Unfit

MAX_BYTES = 4 * 1024**3
MAX_RATIO = 200
# Below this size a large ratio harms nobody: short lists of like records pack well.
RATIO_FROM_BYTES = 1024**2
_ENCRYPTED = 0x1


class _Measured(io.RawIOBase):
    """Counts what comes out, and refuses what no list can be."""

    def __init__(self, inner: BinaryIO, packed_bytes: int, limit: int) -> None:
        self._inner = inner
        self._packed = max(packed_bytes, 1)
        self._limit = limit
        self._count = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            chunk = self._inner.read(size)
        except (zipfile.BadZipFile, zlib.error, gzip.BadGzipFile) as error:
            raise Unfit(f"the packed data is damaged: {error}") from error
        except EOFError as error:
            raise Unfit("the packed data is truncated") from error
        except (NotImplementedError, RuntimeError) as error:
            raise Unfit(f"the packed data can't be read: {error}") from error
        self._count += len(chunk)
        if self._count > self._limit:
            raise Unfit(f"it unpacks to more than {self._limit} bytes; that is a bomb, not a list")
        if self._count > RATIO_FROM_BYTES and self._count > MAX_RATIO * self._packed:
            raise Unfit(f"it unpacks to more than {MAX_RATIO} times its size; that is a bomb, not a list")
        return chunk


@contextmanager
def unpacked(path: Path, compression: str, ending: str, limit: int = MAX_BYTES) -> Iterator[Opened]:
    """`ending` picks the member of a ZIP; there must be exactly one such."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if compression == "zip":
            with _zip(file) as archive:
                member = _only(archive, ending)
                with archive.open(member) as stream:
                    packed = member.compress_size
                    yield _opened(cast("BinaryIO", stream), packed, member.filename, limit)
        elif compression == "gzip":
            with gzip.GzipFile(fileobj=file) as stream:
                yield _opened(cast("BinaryIO", stream), size, path.name, limit)
        else:
            yield _opened(file, size, path.name, limit)


def _opened(stream: BinaryIO, packed: int, member: str, limit: int) -> Opened:
    return Opened(cast("BinaryIO", _Measured(stream, packed, limit)), member)


def _zip(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise Unfit(f"it is not a whole ZIP file: {error}") from error


def _only(archive: zipfile.ZipFile, ending: str) -> zipfile.ZipInfo:
    members = [member for member in archive.infolist() if member.filename.lower().endswith(ending)]
    if len(members) != 1:
        raise Unfit(f"it has {len(members)} members that end in {ending}; there must be exactly one")
    if members[0].flag_bits & _ENCRYPTED:
        raise Unfit("it is encrypted")
    return members[0]
