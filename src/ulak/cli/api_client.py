"""Where a command's request goes: to the server beside the store, to one that the settings name, or into this process.

All three speak the HTTP API, so a command is written once; in this process the application is called without a network.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import unquote, urlencode, urlsplit

import aiohttp
import msgspec

from ulak import errors
from ulak.access.keys import make_key
from ulak.app import Ulak
from ulak.cli.running_server import elsewhere, file_of, find_beside
from ulak.cli.schema import require_store
from ulak.http.app import Door, build_app
from ulak.http.failure import TABLE
from ulak.http.hot_routes import Message
from ulak.masking import mask_url
from ulak.settings import Settings

Query = Mapping[str, Any]
_KNOWN = {code: known for known, (_, code) in TABLE.items() if issubclass(known, errors.Error)}


class Carrier(Protocol):
    """Brings a request to the application; returns status and body."""

    async def __call__(self, method: str, target: str, body: bytes | None) -> tuple[int, bytes]: ...


class ApiClient:
    """A command's questions to a server. Errors come back as the errors that they were."""

    def __init__(self, carry: Carrier, place: str, *, is_served: bool) -> None:
        self._carry = carry
        self.place = place
        self.is_served = is_served

    async def ask(self, method: str, path: str, query: Query | None = None, body: Any = ...) -> Any:
        given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        try:
            target = f"{path}?{urlencode(given)}" if given else path
            sent = None if body is ... else msgspec.json.encode(body)
        except UnicodeEncodeError as error:
            raise errors.Invalid(
                f"{error.object!r:.50} is not UTF-8; check what the terminal or the file uses"
            ) from None
        status, answer = await self._carry(method, target, sent)
        decoded = _decode(answer)
        if status >= 400:
            raise _error(status, decoded)
        return decoded


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _decode(answer: bytes) -> Any:
    try:
        return msgspec.json.decode(answer) if answer else None
    except msgspec.DecodeError:
        return None


def _error(status: int, answer: Any) -> errors.Error:
    if not isinstance(answer, dict) or "error" not in answer:
        return errors.Unavailable(f"the server answered {status} without a reason; is it Ulak?")
    message, told = answer["message"], ((one["field"], one["message"]) for one in answer.get("fields", []))
    more = "".join(f"\n  {field}: {text}" for field, text in told if f"{field} {text}" not in message)
    return _KNOWN.get(answer["error"], errors.Error)(message + more)


@contextlib.asynccontextmanager
async def open_api(
    settings: Settings, *, may_make: bool = False, works: Sequence[str] = ()
) -> AsyncIterator[ApiClient]:
    """Unless it may make one, a store must be there: who looks does not begin a new one by a mistyped address."""
    client = settings.client
    if client.url:
        async with _over_http(client.url, client.key.get_secret_value(), settings) as carry:
            yield ApiClient(carry, mask_url(client.url), is_served=True)
        return
    beside = find_beside(settings.store)
    if beside is not None:
        async with _over_http(beside.address, beside.token, settings, f"process {beside.pid}") as carry:
            place = f"{beside.address}, process {beside.pid}, on {settings.store}"
            yield ApiClient(carry, place, is_served=True)
        return
    if not may_make and (database := file_of(settings.store)) is not None:
        require_store(database, elsewhere(settings.store))
    async with _in_process(settings, works) as carry:
        yield ApiClient(carry, mask_url(settings.store), is_served=False)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an IPv6 address that does not end, a port out of range
        return False


@contextlib.asynccontextmanager
async def _over_http(url: str, key: str, settings: Settings, who: str = "") -> AsyncIterator[Carrier]:
    if not _is_address(url):
        raise errors.Misconfigured("client.url must begin with http:// or https://, and name a host and no odd port")
    key = key.strip()  # of a file that ends its line
    if not key.isprintable():
        raise errors.Misconfigured("client.key has control characters; give the token as `ulak keys create` printed it")
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    timeout = aiohttp.ClientTimeout(total=settings.client.timeout_seconds)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:

        async def carry(method: str, target: str, body: bytes | None) -> tuple[int, bytes]:
            try:
                async with session.request(method, url.rstrip("/") + target, data=body) as answer:
                    return answer.status, await answer.read()
            except (OSError, TimeoutError, aiohttp.ClientError) as error:
                raise errors.Unavailable(
                    f"{who or url} does not answer ({type(error).__name__}); "
                    + ("stop it first, or try again" if who else "is client.url right, and does it run?")
                ) from error

        yield carry


@contextlib.asynccontextmanager
async def _in_process(settings: Settings, works: Sequence[str]) -> AsyncIterator[Carrier]:
    """Open the store here and call the application with a key of our own; a worker runs the kinds that it is for."""
    async with Ulak(settings=settings, work=works) as ulak:
        own = make_key("command line", [], ulak.clock.now())
        door = build_app(ulak, local=own.key)
        await door.ring.load(ulak.store)

        async def carry(method: str, target: str, body: bytes | None) -> tuple[int, bytes]:
            return await _call(door, method, target, body, own.token)

        yield carry


async def _call(door: Door, method: str, target: str, body: bytes | None, token: str) -> tuple[int, bytes]:
    path, _, query = target.partition("?")
    payload = body or b""
    scope: Message = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [
            (b"host", b"localhost"),
            (b"authorization", f"Bearer {token}".encode()),
            (b"content-length", b"%d" % len(payload)),
            (b"content-type", b"application/json"),
        ],
        "client": None,
        "server": None,
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": payload, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await door(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
