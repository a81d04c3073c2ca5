"""The front: pure ASGI. Hot routes first, FastAPI for the rest; guarded and measured in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from ulak.clock import Clock
from ulak.errors import Error
from ulak.http.caller import SCOPE_OF_CALLER
from ulak.http.failure import BodyTooLarge, Headers, encoded, raw
from ulak.http.guard import RequestGuard
from ulak.http.hot_routes import JSON_HEADERS, App, HotRoute, Message, Receive, Routes, Scope, Send, check_keys, reply
from ulak.http.meter import Meter
from ulak.http.paths import KnownPath, known_paths
from ulak.http.prefer import preferred_wait
from ulak.http.query import check_query, keys_of
from ulak.http.submissions import Submissions, has_hung_up
from ulak.log import get_logger
from ulak.spine.patience import asked_wait

log = get_logger("ulak.http")

_ELSEWHERE = KnownPath()


class Front:
    def __init__(self, guard: RequestGuard, rooms: list[Routes], inner: App, meter: Meter, clock: Clock) -> None:
        self._guard = guard
        self._paths = known_paths(rooms)
        self._marks = [mark for room in rooms for mark in room.marks]
        self.submissions = Submissions()
        self._inner = inner
        self._meter = meter
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._socket_or_lifespan(scope, receive, send)
            return
        clock, meter, submissions = self._clock, self._meter, self.submissions
        began = clock.monotonic()
        meter.in_flight += 1
        asked = scope["method"]
        if asked == "HEAD":  # a GET of which only the head goes out
            scope, send = {**scope, "method": "GET"}, _HeadOnly(send)
        known, scope["path_params"] = self._paths.find(scope["method"], scope["path"])
        known = known or _ELSEWHERE
        route, task = known.route, asyncio.current_task()
        assert task is not None
        status = 499  # the client went away, or the server stops: nothing was answered
        asked_wait.set(partial(preferred_wait, scope))
        if known.takes_work:
            submissions[task] = send
            at_once = len(submissions)
        else:
            at_once = meter.in_flight - len(submissions)
        try:
            if route is None:
                status = await self._rest(known, scope, receive, send, at_once)
            else:
                status = await self._fast(known, route, scope, receive, send, at_once)
        except asyncio.CancelledError:
            if not has_hung_up(send):
                raise
        finally:
            submissions.pop(task, None)
            meter.in_flight -= 1
            meter.observe(asked, _label(scope) if route is None else route.path, status, clock.monotonic() - began)

    async def _fast(
        self, known: KnownPath, route: HotRoute, scope: Scope, receive: Receive, send: Send, at_once: int
    ) -> int:
        try:
            caller, exact = self._guard.admit(scope, at_once, route.max_body_bytes, is_signed=known.is_signed)
            if route.scope:  # a route that a signature opens has none
                caller.need(route.scope)
            if scope["query_string"]:
                check_query(keys_of(scope["query_string"]), ())
            return await route.endpoint(
                scope,
                receive if exact else _bounded(receive, route.max_body_bytes or self._guard.max_body),
                send,
                caller,
            )
        except Exception as error:  # noqa: BLE001 - whatever went wrong is answered by the table
            return await _refuse(send, error, scope["method"], route.path)

    async def _rest(self, known: KnownPath, scope: Scope, receive: Receive, send: Send, at_once: int) -> int:
        sent = _Sent(send)
        sent.mark = self._mark(scope["path"], admitted=False)
        try:
            scope[SCOPE_OF_CALLER], exact = self._guard.admit(scope, at_once, is_signed=known.is_signed)
            sent.check = partial(self._guard.check_still_known, scope[SCOPE_OF_CALLER])
            sent.mark = self._mark(scope["path"], admitted=True)
            # The whole body is taken here, since FastAPI would turn our refusal of a large one into its own.
            replayed = receive
            if not exact or _has_body(scope):
                body = await _body(receive, self._guard.max_body)
                check_keys(body)
                replayed = _replay(body, receive)
            await self._inner(_as_json(scope), replayed, sent)
        except Exception as error:  # noqa: BLE001 - whatever went wrong is answered by the table
            if sent.status == 0:
                return await _refuse(sent if sent.mark else send, error, scope["method"], _label(scope))
            _tell(error, scope["method"], _label(scope))
        return sent.status

    def _mark(self, path: str, *, admitted: bool) -> Callable[[], Awaitable[Headers]] | None:
        found = (mark for prefix, mark in self._marks if path.startswith(prefix))
        return next((partial(mark, path, admitted=admitted) for mark in found), None)

    async def _socket_or_lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            try:
                scope[SCOPE_OF_CALLER], _ = self._guard.admit(scope, self._meter.in_flight - len(self.submissions))
            except Error:
                await receive()
                await send({"type": "websocket.close", "code": 1008})
                return
        await self._inner(scope, receive, send)


class _Sent:
    """Remembers the status that went out, and adds the headers of its place; ends a stream whose key was revoked."""

    __slots__ = ("_send", "check", "mark", "status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.check: Callable[[], None] | None = None
        self.mark: Callable[[], Awaitable[Headers]] | None = None
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.mark is not None:
                message["headers"] = [*message["headers"], *await self.mark()]
        elif self.check is not None and message.get("more_body"):
            self.check()
        await self._send(message)


class _HeadOnly:
    """Ends an answer with its head; a stream learns by `receive` that nobody reads on."""

    __slots__ = ("_send",)

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._send(message)
            await self._send({"type": "http.response.body"})


def _as_json(scope: Scope) -> Scope:
    """A body is JSON whatever it is called, as on the hot routes: `curl -d` calls everything a form."""
    scope["headers"] = [header for header in scope["headers"] if header[0] != b"content-type"] + JSON_HEADERS
    return scope


def _has_body(scope: Scope) -> bool:
    return any(name == b"content-length" and value != b"0" for name, value in scope["headers"])


async def _body(receive: Receive, most: int) -> bytes:
    chunks = bytearray()
    while True:
        message = await receive()
        chunks += message.get("body", b"")
        if len(chunks) > most:
            raise BodyTooLarge
        if not message.get("more_body", False):
            return bytes(chunks)


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting = [body]

    async def replayed() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replayed


def _bounded(receive: Receive, most: int) -> Receive:
    """For a body that does not say its length."""
    seen = 0

    async def bounded() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise BodyTooLarge
        return message

    return bounded


async def _refuse(send: Send, error: Exception, method: str, route: str) -> int:
    status, body, headers = encoded(error)
    _tell(error, method, route)
    return await reply(send, status, body, JSON_HEADERS + raw(headers))


def _tell(error: Exception, method: str, route: str) -> None:
    """Our own errors are answered to the caller; the log is for unexpected ones."""
    if not isinstance(error, Error):
        log.error("request_failed", method=method, route=route, exc_info=error)


def _label(scope: Scope) -> str:
    """The route's pattern, never the path: paths have no end, and some hold a recipient."""
    return getattr(scope.get("route"), "path", "other")
