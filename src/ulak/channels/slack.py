"""SLACK: chat.postMessage for channels and people, incoming webhooks for URLs, and the buttons that people press."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import msgspec
from yarl import URL

from ulak import codec
from ulak.channels.channel import Message, NotificationType, Receipt, RecipientGone, seconds_for
from ulak.channels.client import GuardedClient, HttpAnswer, refused, wait_seconds
from ulak.channels.receipts import Tap, Unproven, fits
from ulak.channels.ssrf import AddressGuard, check_url
from ulak.clock import Clock, SystemClock
from ulak.errors import Failure, Invalid, Permanent, Throttled, Transient
from ulak.secrets import reveal

PROVIDER = "SLACK"
MAX_TEXT_CHARS = 40_000
TOLERANCE_SECONDS = 300
_GONE = frozenset(
    {"channel_not_found", "is_archived", "user_not_found", "channel_is_archived", "no_service", "no_team"}
)
_OURS = frozenset({
    "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope",
    "org_login_required", "ekm_access_denied", "no_permission", "access_denied", "not_allowed_token_type",
})  # fmt: skip
_LATER = frozenset({"fatal_error", "internal_error", "service_unavailable", "request_timeout", "rollup_error"})
_BUSY = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})


@dataclass(frozen=True, slots=True)
class SlackOptions:
    token: str = field(default="", repr=False)
    url: str = "https://slack.com/api"
    timeout_seconds: float = 15.0
    connections: int = 100
    allow: tuple[str, ...] = ()


class SlackChannel:
    name = "slack"

    def __init__(self, options: SlackOptions, *, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._client = GuardedClient(AddressGuard(options.allow), connections=options.connections)
        self._url = URL(f"{options.url}/chat.postMessage")

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == NotificationType.SLACK

    async def handle(self, message: Message) -> Receipt:
        seconds = seconds_for(message, self._options.timeout_seconds, PROVIDER)
        if "://" in message.recipient:
            return await self._post_to_webhook(message, seconds)
        if not self._options.token:
            raise Permanent(
                "No channels.slack.token is set, so only incoming-webhook URLs can be reached.",
                code="SLACK_NOT_CONFIGURED",
                unsent=True,
            )
        return await self._post_message(message, seconds)

    async def close(self) -> None:
        await self._client.close()

    async def _post_message(self, message: Message, seconds: float) -> Receipt:
        headers = {
            "Authorization": f"Bearer {self._options.token}",
            "Content-Type": "application/json; charset=utf-8",
        }
        body = codec.encode({"channel": message.recipient, **_content(message)})
        answer = await self._client.ask(self._url, body, headers, seconds, PROVIDER)
        document = answer.document()
        if answer.status != 200 or document.get("ok") is not True:
            raise self._refusal(answer, document.get("error"))
        return Receipt(f"slack:{document.get('ts')}")  # not its channel: that is the recipient

    async def _post_to_webhook(self, message: Message, seconds: float) -> Receipt:
        url = check_url(message.recipient, PROVIDER)
        headers = {"Content-Type": "application/json"}
        answer = await self._client.ask(url, codec.encode(_content(message)), headers, seconds, PROVIDER)
        if answer.status != 200:
            raise self._refusal(answer, answer.body[:60].decode("utf-8", "replace").strip())
        return Receipt(f"slack:{message.id}")  # an incoming webhook gives no id

    def _refusal(self, answer: HttpAnswer, word: Any) -> Failure:
        known = isinstance(word, str) and word.isascii() and word.replace("_", "").isalnum()
        code = f"SLACK_{word.upper()}" if known else f"SLACK_HTTP_{answer.status}"
        if answer.status == 429 or word in _BUSY:
            seconds = wait_seconds(answer.headers.get("Retry-After"), self._clock.now())
            return Throttled("Slack asks us to wait.", retry_after_seconds=seconds, code="SLACK_RATE_LIMIT")
        if not known:
            return refused(answer, "Slack", code, now=self._clock.now())
        said = f"Slack refused the message ({word})"
        if word in _GONE:
            return RecipientGone(f"{said}: there is nobody at this recipient any more.", code=code)
        if word in _OURS:
            return Transient(f"{said}; check channels.slack.token and the app's scopes.", code=code)
        if word in _LATER or answer.status >= 500:
            return Transient(f"{said}.", code=code)
        return Permanent(f"{said}: it does not take this message.", code=code)


def _content(message: Message) -> dict[str, Any]:
    """Text, and blocks where `metadata.blocks` has some. The text is escaped: `<!channel>` calls nobody."""
    lines = [message.subject, message.body] if message.subject else [message.body]
    text = _escaped("\n".join(lines))
    if len(text) > MAX_TEXT_CHARS:
        why = f"A Slack text has at most {MAX_TEXT_CHARS} characters; shorten it."
        raise Permanent(why, code="SLACK_TOO_LONG", unsent=True)
    blocks = message.metadata.get("blocks")
    return {"text": text, "blocks": blocks} if isinstance(blocks, list) else {"text": text}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def verify_slack(signing_secret: str, headers: Mapping[str, str], body: bytes, now: int) -> None:
    """Raise Unproven unless Slack signed the body a short while ago: an old request can't be played again."""
    lower = {name.lower(): value for name, value in headers.items()}
    stamp = lower.get("x-slack-request-timestamp", "")
    content = f"v0:{stamp}:".encode() + body
    expected = "v0=" + hmac.new(signing_secret.encode(), content, hashlib.sha256).hexdigest()
    proven = bool(signing_secret) and fits(expected, lower.get("x-slack-signature", ""))
    if not proven or not stamp.isdigit() or abs(now / 1000 - int(stamp[:12])) > TOLERANCE_SECONDS:
        raise Unproven("The request's X-Slack-Signature does not fit or is old; check channels.slack.signing_secret.")


class _User(msgspec.Struct, frozen=True):
    id: str = ""


class _Action(msgspec.Struct, frozen=True):
    action_id: str
    value: str = ""


class _Interaction(msgspec.Struct, frozen=True):
    user: _User = _User()
    actions: list[_Action] = []


def read_slack(body: bytes) -> list[Tap]:
    """The buttons that an interaction tells of (`payload=…`, as Slack posts it)."""
    payload = parse_qs(body.decode("utf-8", "replace")).get("payload", ["{}"])[0]
    try:
        said = msgspec.json.decode(payload.encode(), type=_Interaction)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Invalid(f"the request is not one of Slack's interactions: {error}") from None
    return [Tap(action=one.action_id, value=one.value, user=said.user.id) for one in said.actions]


def from_settings(settings: Any) -> SlackChannel | None:
    section = settings.channels.slack
    if section.simulated:
        return None
    return SlackChannel(
        SlackOptions(
            token=reveal(section.token, "channels.slack.token"),
            url=section.url.rstrip("/"),
            timeout_seconds=section.timeout_seconds,
            connections=section.consumers,
            allow=tuple(settings.channels.webhook.allow),
        )
    )
