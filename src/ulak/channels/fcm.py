"""PUSH to apps over FCM HTTP v1. The access token comes from google-auth, by way of our own guarded client."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import Any

import msgspec
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport import Request as AuthTransport
from google.oauth2 import service_account
from yarl import URL

from ulak import codec
from ulak.channels.channel import Message, NotificationType, Receipt, RecipientGone, TimeLeft, seconds_for
from ulak.channels.client import GuardedClient, HttpAnswer, refused, wait_seconds
from ulak.channels.ssrf import AddressGuard
from ulak.clock import Clock, SystemClock
from ulak.errors import Failure, Misconfigured, Permanent, Throttled, Transient
from ulak.secrets import reveal

PROVIDER = "FCM"
SCOPES = ("https://www.googleapis.com/auth/firebase.messaging",)
MAX_TTL_SECONDS = 2_419_200  # four weeks
QUOTA_PAUSE_SECONDS = 60.0  # what FCM asks for where its answer does not say
_TOKEN_SECONDS = 10.0
_RESERVED = ("google", "gcm")  # beginnings of data keys that FCM refuses
_OURS = frozenset({"SENDER_ID_MISMATCH", "THIRD_PARTY_AUTH_ERROR", "UNAUTHENTICATED", "PERMISSION_DENIED"})
_LATER = frozenset({"UNAVAILABLE", "INTERNAL"})


@dataclass(frozen=True, slots=True)
class FcmOptions:
    service_account: str = field(repr=False)  # JSON, as Google gives it
    url: str = "https://fcm.googleapis.com"
    ttl_seconds: int = 86_400
    timeout_seconds: float = 15.0
    connections: int = 100
    allow: tuple[str, ...] = ()


class FcmChannel:
    name = "fcm"

    def __init__(self, options: FcmOptions, *, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._client = GuardedClient(AddressGuard(options.allow), connections=options.connections)
        info = _service_account(options.service_account)
        self._tokens = AccessTokens(info, self._client)
        self._url = URL(f"{options.url}/v1/projects/{info['project_id']}/messages:send")

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == NotificationType.PUSH

    async def handle(self, message: Message) -> Receipt:
        time_left = TimeLeft(seconds_for(message, self._options.timeout_seconds, PROVIDER))
        body = codec.encode({"message": compose(message, self._options.ttl_seconds)})
        token = await self._token_within(time_left.seconds())
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        answer = await self._client.ask(self._url, body, headers, time_left.seconds(), PROVIDER)
        name = answer.document().get("name")
        if answer.status != 200 or not isinstance(name, str):
            raise self._refusal(answer)
        return Receipt(f"fcm:{name.rpartition('/')[2]}")

    async def close(self) -> None:
        await self._client.close()

    async def _token_within(self, seconds: float) -> str:
        try:
            async with asyncio.timeout(seconds):
                return await self._tokens.take()
        except TimeoutError:
            raise Transient("Google gave no access token in time; nothing was sent.", code="FCM_TIMEOUT") from None

    def _refusal(self, answer: HttpAnswer) -> Failure:
        word = _word(answer)
        code = f"FCM_{word}" if word else f"FCM_HTTP_{answer.status}"
        said = f"FCM refused the message ({word or answer.status})"
        if word == "UNREGISTERED":
            return RecipientGone(f"{said}: the app is gone from this device; forget the token.", code=code)
        if word == "QUOTA_EXCEEDED" or answer.status == 429:
            seconds = wait_seconds(answer.headers.get("Retry-After"), self._clock.now()) or QUOTA_PAUSE_SECONDS
            return Throttled(f"{said} and asks us to wait.", retry_after_seconds=seconds, code=code)
        if answer.status == 401:
            self._tokens.drop()
        if word in _OURS or answer.status == 401:
            return Transient(f"{said}; check channels.push.service_account and its project.", code=code)
        if word in _LATER or not word:
            return refused(answer, "FCM", code, now=self._clock.now())
        return Permanent(f"{said}: it does not take this message.", code=code)


class AccessTokens:
    """The token of a service account, fetched before it runs out; those that wait share one fetch."""

    def __init__(self, info: dict[str, Any], client: GuardedClient) -> None:
        self._client = client
        self._fetching = asyncio.Lock()
        try:
            self._credentials: Any = service_account.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
                info, scopes=SCOPES
            )
        except (ValueError, GoogleAuthError):
            raise _unusable() from None  # the original may quote the key

    async def take(self) -> str:
        if not self._credentials.valid:
            async with self._fetching:
                if not self._credentials.valid:
                    await self._fetch()
        return str(self._credentials.token)

    def drop(self) -> None:
        """The provider does not take it any more, whatever its expiry says."""
        self._credentials.token = None

    async def _fetch(self) -> None:
        request = _Transport(self._client, asyncio.get_running_loop())
        try:
            await asyncio.to_thread(self._credentials.refresh, request)  # signing is work, and google-auth is blocking
        except GoogleAuthError as error:
            raise Transient(
                f"Google gave no access token ({type(error).__name__}); check channels.push.service_account.",
                code="FCM_NO_TOKEN",
            ) from None


class _Transport(AuthTransport):
    """google-auth's way out: its request runs on our loop, through the guarded client."""

    def __init__(self, client: GuardedClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    def __call__(
        self, url: str, method: str = "GET", body: Any = None, headers: Any = None, timeout: Any = None, **_: Any
    ) -> _TransportAnswer:
        data = body.encode() if isinstance(body, str) else body or b""
        asked = self._client.ask(URL(url), data, dict(headers or {}), _TOKEN_SECONDS, PROVIDER)
        try:
            answer = asyncio.run_coroutine_threadsafe(asked, self._loop).result()
        except Failure as error:
            raise TransportError(str(error)) from None  # type: ignore[no-untyped-call]
        return _TransportAnswer(answer.status, dict(answer.headers), answer.body)


@dataclass(frozen=True, slots=True)
class _TransportAnswer:
    status: int
    headers: dict[str, str]
    data: bytes


def compose(message: Message, usual_ttl_seconds: int) -> dict[str, Any]:
    """FCM's message: what people see, our id for who drops repeats, and how long it may wait for the device."""
    left = message.seconds_left
    ttl = min(usual_ttl_seconds if left is None else math.floor(left), MAX_TTL_SECONDS)
    urgent = message.priority in {"URGENT", "HIGH"}
    expires = message.began_millis // 1000 + ttl if message.began_millis else 0
    apns = {"apns-priority": "10" if urgent else "5", **({"apns-expiration": str(expires)} if expires else {})}
    shown = {"body": message.body, **({"title": message.subject} if message.subject else {})}
    return {
        "token": message.recipient,
        "notification": shown,
        "data": {**_data(message.metadata), "ulakId": message.id},
        "android": {"ttl": f"{ttl}s", "priority": "HIGH" if urgent else "NORMAL"},
        "apns": {"headers": apns},
        "webpush": {"headers": {"TTL": str(ttl)}},
    }


def _data(metadata: dict[str, Any]) -> dict[str, str]:
    """FCM takes texts alone, and some names not at all."""
    return {
        name: value if isinstance(value, str) else codec.encode_text(value)
        for name, value in metadata.items()
        if name not in {"from", "message_type"} and not name.startswith(_RESERVED)
    }


def _word(answer: HttpAnswer) -> str | None:
    error = answer.document().get("error")
    if not isinstance(error, dict):
        return None
    details = error.get("details")
    found = [one.get("errorCode") for one in details if isinstance(one, dict)] if isinstance(details, list) else []
    word = next((one for one in found if isinstance(one, str)), error.get("status"))
    return word if isinstance(word, str) and word.replace("_", "").isalnum() else None


def _service_account(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("project_id"), str):
        raise _unusable()
    return found


def _unusable() -> Misconfigured:
    return Misconfigured(
        "channels.push.service_account is not a service account's JSON with project_id and private_key; "
        "download it from the Google console and give ${file:path}."
    )


def from_section(section: Any, allow: tuple[str, ...]) -> FcmChannel | None:
    text = reveal(section.service_account, "channels.push.service_account")
    if not text:
        return None
    return FcmChannel(
        FcmOptions(
            service_account=text,
            url=section.url.rstrip("/"),
            ttl_seconds=section.ttl_seconds,
            timeout_seconds=section.timeout_seconds,
            connections=section.consumers,
            allow=allow,
        )
    )
