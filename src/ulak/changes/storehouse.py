"""Where archives are kept: a folder and, if the settings name one, an S3 bucket beside it."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ulak.errors import Misconfigured, NotFound, Unavailable


class Storehouse:
    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder / "archives"
        self._url = urlsplit(url) if url else None
        self._client: Any = None

    def path(self, feed: str, name: str) -> Path:
        return self._folder / feed / name

    async def keep(self, feed: str, fresh: Path, name: str) -> None:
        """Put a finished file in its place; with a bucket it is there before anybody is told of it."""
        target = self.path(feed, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if self._url is not None:
            await asyncio.to_thread(self._s3().upload_file, str(fresh), self._url.netloc, self._key(feed, name))
        await asyncio.to_thread(fresh.replace, target)

    async def find(self, feed: str, name: str) -> Path:
        """The file, brought from the bucket if this machine does not have it."""
        path = self.path(feed, name)
        if path.is_file():
            return path
        if self._url is None:
            raise NotFound(f"the file of archive {name} is gone; the next sync with changes writes a new one")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{name}.{secrets.token_hex(4)}.part")
        try:
            await asyncio.to_thread(self._s3().download_file, self._url.netloc, self._key(feed, name), str(part))
        except Exception as error:
            raise Unavailable(f"archive {name} can't be brought from its bucket ({type(error).__name__})") from error
        part.replace(path)
        return path

    async def drop(self, feed: str, name: str) -> None:
        self.path(feed, name).unlink(missing_ok=True)
        if self._url is not None:
            await asyncio.to_thread(self._s3().delete_object, Bucket=self._url.netloc, Key=self._key(feed, name))

    def _key(self, feed: str, name: str) -> str:
        assert self._url is not None
        prefix = self._url.path.strip("/")
        return f"{prefix}/{feed}/{name}" if prefix else f"{feed}/{name}"

    def _s3(self) -> Any:
        if self._client is None:
            try:
                import boto3
            except ImportError as error:
                raise Misconfigured("changes.archive_url needs boto3; install ulak[s3]") from error
            self._client = boto3.client("s3")
        return self._client
