"""Asks the API inside the process, as the caller who looks: a page shows what a public route answers, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode

import msgspec
from fastapi import FastAPI

from ulak.access.caller import SCOPE_OF_CALLER, Caller

_HEADERS = [(b"host", b"console"), (b"accept", b"application/json")]


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    document: Any

    @property
    def failure(self) -> str | None:
        """Why there is nothing to show; None when there is."""
        if self.status < 400:
            return None
        return str(self.document.get("message", self.status)) if isinstance(self.document, dict) else str(self.status)


async def ask(api: FastAPI, caller: Caller, path: str, query: Mapping[str, str] | None = None) -> Reply:
    """GET a public route. The path is quoted, as in a request's first line."""
    status, body = 500, bytearray()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            body.extend(message.get("body", b""))

    await api(_scope(caller, path, query or {}), receive, send)
    return Reply(status, msgspec.json.decode(bytes(body)) if body else None)


def _scope(caller: Caller, path: str, query: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": urlencode(query).encode(),
        "headers": _HEADERS,
        "client": None,
        "server": ("console", 80),
        "state": {},
        SCOPE_OF_CALLER: caller,
    }
