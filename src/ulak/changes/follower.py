"""Follows a feed of another Ulak into a SQLite file: bootstraps, applies the log, proves the copy, mends it.

Everything of a page is one transaction with its cursor, so a kill at any moment loses and doubles nothing.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from ulak.changes.archive import read_archive
from ulak.changes.fields import record_hash
from ulak.changes.state import EMPTY, Sums, bucket_hashes, range_of, state_hash, to_identifier, to_key
from ulak.clock import Clock, SystemClock
from ulak.errors import Invalid, Unavailable

PAGE = 1000
BATCH = 2000
PAUSE_SECONDS = 5.0
MAX_PAUSE_SECONDS = 60.0
_TABLES = """
CREATE TABLE IF NOT EXISTS record (key TEXT PRIMARY KEY, hash BLOB NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fresh (key TEXT PRIMARY KEY, hash BLOB NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS records AS SELECT substr(key, 3) AS identifier, body FROM record;
"""
_WORDS = ("changeType", "changedAt", "identifier", "before", "changedFields", "cursor", "aliasChanges")
_MORE_WORDS = ("reason", "cause", "contentHash")

Told = Callable[[str, Mapping[str, Any]], None]


class Copy:
    """The file: records, the cursor behind them, and the sums that prove them."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; {_TABLES}")
        self._sums = Sums(self._meta("sums") or EMPTY)

    def close(self) -> None:
        self._db.close()

    def _meta(self, name: str) -> Any:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    @property
    def cursor(self) -> str | None:
        found: str | None = self._meta("cursor")
        return found

    @property
    def feed(self) -> str | None:
        found: str | None = self._meta("feed")
        return found

    def state_hash(self) -> str:
        return state_hash(self._sums.packed())

    def bucket_hashes(self) -> list[str]:
        return bucket_hashes(self._sums.packed())

    def count(self) -> int:
        return int(self._db.execute("SELECT COUNT(*) FROM record").fetchone()[0])

    def get(self, identifier: str) -> dict[str, Any] | None:
        row = self._db.execute("SELECT body FROM record WHERE key = ?", (to_key(identifier),)).fetchone()
        return None if row is None else msgspec.json.decode(row[0])

    def begin_anew(self) -> None:
        self._db.execute("DELETE FROM fresh")

    def load(self, rows: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Records of an archive; they count when the archive is whole."""
        self._db.execute("BEGIN")
        self._db.executemany("INSERT OR REPLACE INTO fresh VALUES (?, ?, ?)", (_row(*row) for row in rows))
        self._db.execute("COMMIT")

    def finish_load(self, feed: str, cursor: str) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("DELETE FROM record")
        self._db.execute("INSERT INTO record SELECT * FROM fresh")
        self._db.execute("DELETE FROM fresh")
        sums = Sums()
        for key, own in self._db.execute("SELECT key, hash FROM record"):
            sums.add(key, own)
        self._commit(sums, feed=feed, cursor=cursor)

    def apply(self, changes: Iterable[Mapping[str, Any]], cursor: str) -> None:
        sums = Sums(self._sums.packed())
        self._db.execute("BEGIN IMMEDIATE")
        for change in changes:
            fields = {name: value for name, value in change.items() if name not in _WORDS + _MORE_WORDS}
            self._put(sums, change["identifier"], None if change["changeType"] == "removed" else fields)
        self._commit(sums, cursor=cursor)

    def replace_bucket(self, number: int, items: Iterable[dict[str, Any]]) -> None:
        """Another content for one bucket, whatever it has now."""
        sums, (first, beyond) = Sums(self._sums.packed()), range_of(number)
        self._db.execute("BEGIN IMMEDIATE")
        own = [row[0] for row in self._db.execute("SELECT key FROM record WHERE key >= ? AND key < ?", (first, beyond))]
        for key in own:
            self._put(sums, to_identifier(key), None)
        sums.values[number] = 0
        for item in items:
            self._put(sums, item.pop("identifier"), item)
        self._commit(sums)

    def recount(self) -> None:
        """Sums of what the file really has, for a file that somebody else has touched."""
        sums = Sums()
        for key, body in self._db.execute("SELECT key, body FROM record"):
            sums.add(key, record_hash(to_identifier(key), msgspec.json.decode(body)))
        self._db.execute("BEGIN IMMEDIATE")
        self._commit(sums)

    def _put(self, sums: Sums, identifier: str, fields: dict[str, Any] | None) -> None:
        key = to_key(identifier)
        old = self._db.execute("SELECT hash FROM record WHERE key = ?", (key,)).fetchone()
        if old is not None:
            sums.take(key, old[0])
        if fields is None:
            self._db.execute("DELETE FROM record WHERE key = ?", (key,))
            return
        row = _row(identifier, fields)
        sums.add(key, row[1])
        self._db.execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?)", row)

    def _commit(self, sums: Sums, **meta: str) -> None:
        for name, value in {**meta, "sums": sums.packed()}.items():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
        self._db.execute("COMMIT")
        self._sums = sums


def _row(identifier: str, fields: dict[str, Any]) -> tuple[str, bytes, str]:
    return to_key(identifier), record_hash(identifier, fields), msgspec.json.encode(fields).decode()


class LogGone(Exception):
    """The log does not reach back to the cursor; a bootstrap follows."""


class Follower:
    """`Follower("http://host:8080/api/v1/einvoice", "copy.db")`; then `await follower.catch_up()`, or `follow()`."""

    def __init__(
        self,
        url: str,
        into: str | Path,
        *,
        key: str = "",
        clock: Clock | None = None,
        tell: Told = lambda _word, _facts: None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or "/api/v1/" not in parts.path:
            raise Invalid("the URL of a feed is like http://host:8080/api/v1/einvoice")
        self._url = url.rstrip("/")
        self._feed = self._url.rpartition("/")[2]
        self._key = key
        self._clock = clock or SystemClock()
        self._tell = tell
        self._path = Path(into)
        self.copy = Copy(self._path)
        self._has_counted = False
        if self.copy.feed not in {None, self._feed}:
            raise Invalid(f"{into} is a copy of {self.copy.feed}, not of {self._feed}; give another file")

    def close(self) -> None:
        self.copy.close()

    async def follow(self, *, wait_seconds: float = 30.0) -> None:
        """For ever. Whatever the server does, it goes on from the last cursor."""
        pause = PAUSE_SECONDS
        while True:
            try:
                await self.catch_up(wait_seconds=wait_seconds)
                pause = PAUSE_SECONDS
            except Unavailable as error:
                self._tell("waits", {"error": str(error), "seconds": pause})
                await self._clock.wait(asyncio.Event(), pause)
                pause = min(pause * 2, MAX_PAUSE_SECONDS)

    async def catch_up(self, *, wait_seconds: float = 0.0) -> str:
        """Up to the head, proven; returns the state hash that both sides have."""
        async with self._session() as session:
            if self.copy.cursor is None:
                await self._bootstrap(session)
            while True:
                try:
                    page = await self._page(session, wait_seconds)
                except LogGone as gone:
                    self._tell("gone", {"reason": str(gone)})
                    await self._bootstrap(session)
                    continue
                self.copy.apply(page["changes"], page["cursor"])
                if page["changes"]:
                    self._tell("applied", {"changes": len(page["changes"]), "cursor": page["cursor"]})
                if not page["more"] and await self._prove(session, page["stateHash"]):
                    return self.copy.state_hash()

    async def _page(self, session: aiohttp.ClientSession, wait_seconds: float) -> dict[str, Any]:
        cursor = quote(str(self.copy.cursor))
        return await self._get(session, f"/log?after={cursor}&limit={PAGE}&wait={wait_seconds:g}")

    async def _prove(self, session: aiohttp.ClientSession, wanted: str) -> bool:
        """Whether the copy equals the feed, repaired if need be; False when the feed moved on meanwhile."""
        if self.copy.state_hash() != wanted or not self._has_counted:
            self.copy.recount()  # at first in every process: somebody else may have touched the file meanwhile
            self._has_counted = True
        return self.copy.state_hash() == wanted or await self._repair(session)

    async def _repair(self, session: aiohttp.ClientSession) -> bool:
        """Bucket by bucket; when the feed moves meanwhile, what is left is mended at the next proof."""
        found = await self._get(session, "/buckets")
        pairs = enumerate(zip(self.copy.bucket_hashes(), found["buckets"], strict=True))
        wrong = [number for number, (own, theirs) in pairs if own != theirs]
        for number in wrong:
            bucket = await self._get(session, f"/buckets/{number}")
            if bucket["cursor"] != self.copy.cursor:
                return False
            self.copy.replace_bucket(number, bucket["items"])
        self._tell("repaired", {"buckets": wrong})
        if self.copy.state_hash() != found["stateHash"]:
            raise Unavailable(f"the copy still differs from {self._url} after a repair; it will be compared again")
        return True

    async def _bootstrap(self, session: aiohttp.ClientSession) -> None:
        part = self._path.with_name(f"{self._path.name}.archive")
        rows = read_archive(part, await self._download(session, part))
        _, head = next(rows)
        self.copy.begin_anew()
        waiting: list[tuple[str, dict[str, Any]]] = []
        for row in rows:
            waiting.append(row)
            if len(waiting) == BATCH:
                self.copy.load(waiting)
                waiting = []
        self.copy.load(waiting)
        self.copy.finish_load(self._feed, head["cursor"])
        part.unlink(missing_ok=True)
        if self.copy.state_hash() != head["stateHash"]:
            raise Unavailable("the archive does not match its state hash; it will be fetched again")
        self._tell("bootstrapped", {"records": self.copy.count(), "cursor": head["cursor"]})

    async def _download(self, session: aiohttp.ClientSession, path: Path) -> list[str]:
        """Returns the fields of the feed: an archive leaves out what is null."""
        try:
            async with session.get(f"{self._url}/archives/latest") as answer:
                await self._check(answer)
                with path.open("wb") as file:
                    async for chunk in answer.content.iter_chunked(1 << 18):
                        file.write(chunk)
                return [name for name in answer.headers.get("X-Ulak-Fields", "").split(",") if name]
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unavailable(f"{self._url} does not answer ({type(error).__name__})") from error

    async def _get(self, session: aiohttp.ClientSession, path: str) -> dict[str, Any]:
        try:
            async with session.get(self._url + path) as answer:
                await self._check(answer)
                found: dict[str, Any] = msgspec.json.decode(await answer.read())
                return found
        except (aiohttp.ClientError, OSError, TimeoutError, msgspec.DecodeError) as error:
            raise Unavailable(f"{self._url} does not answer ({type(error).__name__})") from error

    async def _check(self, answer: aiohttp.ClientResponse) -> None:
        if answer.status == 200:
            return
        body = await answer.read()
        try:
            told = msgspec.json.decode(body)
        except msgspec.DecodeError:
            told = {}
        if answer.status == 410:
            raise LogGone(told.get("reason", "expired"))
        if answer.status in {400, 401, 403, 404}:
            raise Invalid(f"{self._url} answered {answer.status}: {told.get('message', '')}")
        raise Unavailable(f"{self._url} answered {answer.status}: {told.get('message', '')}")

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=120)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
            yield session
