"""Brings a list's file here: over HTTP with its validators, or from a file. Addresses come from the settings alone."""

from __future__ import annotations

import asyncio
import email.utils
import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aiohttp

from ulak.changes.sources.source import Unfit

CHUNK_BYTES = 1 << 18
# A server's clock has whole seconds: a file that is as young as its answer may have changed within that second.
SETTLED_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """`known`: what the next request may ask by. None as a path: the server says that nothing changed."""

    path: Path | None
    digest: str = ""
    known: dict[str, str] = field(default_factory=dict)


async def fetch(url: str, path: Path, seconds: float, last: dict[str, str]) -> Fetched:
    """Raises Unfit when there is no whole file to be had, or one that is older than the last."""
    if url.startswith("file://"):
        return await asyncio.to_thread(_copy, Path(unquote(urlsplit(url).path)), path, last)
    try:
        async with (
            asyncio.timeout(seconds),
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
        ):
            return await _get(session, url, path, last)
    except TimeoutError as error:
        raise Unfit(f"the download took longer than {seconds:g} s") from error
    except aiohttp.ClientPayloadError as error:
        raise Unfit(f"the download ended early: its body is short ({type(error).__name__})") from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unfit(f"the download failed: {type(error).__name__}") from error


async def _get(session: aiohttp.ClientSession, url: str, path: Path, last: dict[str, str]) -> Fetched:
    asked = {}
    if last.get("etag"):
        asked["If-None-Match"] = last["etag"]
    if last.get("settled"):
        asked["If-Modified-Since"] = last["modified"]
    async with session.get(url, headers=asked) as answer:
        if answer.status == 304 and asked:
            return Fetched(None, last.get("digest", ""), last)
        if answer.status != 200:
            raise Unfit(f"the server answered HTTP {answer.status}")
        known = _validators(answer)
        _refuse_older(known.get("modified"), last.get("modified"))
        digest = hashlib.sha256()
        with path.open("wb") as file:
            async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
    return _fetched(path, digest.hexdigest(), known)


def _validators(answer: aiohttp.ClientResponse) -> dict[str, str]:
    known = {}
    if etag := answer.headers.get("ETag"):
        known["etag"] = etag
    if modified := answer.headers.get("Last-Modified"):
        known["modified"] = modified
        age = _seconds(answer.headers.get("Date")) - _seconds(modified)
        known["settled"] = "yes" if age >= SETTLED_SECONDS else ""
    return known


def _seconds(text: str | None) -> float:
    try:
        return email.utils.parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _refuse_older(now: str | None, last: str | None) -> None:
    if now and last and 0 < _seconds(now) < _seconds(last):
        raise Unfit(f"it is older than the last: of {now}, after {last}")


def _copy(origin: Path, path: Path, last: dict[str, str]) -> Fetched:
    try:
        changed = origin.stat().st_mtime
        shutil.copyfile(origin, path)
    except OSError as error:
        raise Unfit(f"there is no such file: {error.strerror}") from error
    modified = email.utils.formatdate(changed, usegmt=True)
    _refuse_older(modified, last.get("modified"))
    return _fetched(path, digest_of(path), {"modified": modified})


def take_copy(origin: Path, path: Path) -> Fetched:
    """A file that a person has named: however old it is."""
    shutil.copyfile(origin, path)
    return _fetched(path, digest_of(path), {})


def _fetched(path: Path, digest: str, known: dict[str, str]) -> Fetched:
    return Fetched(path, digest, {**known, "digest": digest})


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
