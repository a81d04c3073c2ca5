"""WHATSAPP over Meta's Cloud API: texts inside the 24-hour window, templates outside it, and status callbacks."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from yarl import URL

from ulak import codec
from ulak.channels.channel import Message, NotificationType, Receipt, RecipientGone, TimeLeft, seconds_for
from ulak.channels.client import GuardedClient, HttpAnswer, refused, wait_seconds
from ulak.channels.receipts import DeliveryReceipt, ReceiptStatus, Unproven, fits
from ulak.channels.ssrf import AddressGuard
from ulak.clock import Clock, SystemClock
from ulak.errors import Failure, Invalid, Misconfigured, Permanent, Throttled, Transient
from ulak.secrets import reveal

PROVIDER = "WHATSAPP"
MAX_BODY_CHARS = 4096
MAX_PARAMETER_CHARS = 1024
WINDOW_CLOSED = 131047
_WORDS = {
    131047: "WINDOW_CLOSED", 131026: "UNDELIVERABLE", 131030: "NOT_ALLOWED", 131049: "NOT_DELIVERED_BY_META",
    131051: "UNSUPPORTED", 131021: "SENDER_IS_RECIPIENT", 132000: "TEMPLATE_PARAMETERS", 132001: "TEMPLATE_UNKNOWN",
    132007: "TEMPLATE_POLICY", 132012: "TEMPLATE_PARAMETERS", 132015: "TEMPLATE_PAUSED", 132016: "TEMPLATE_DISABLED",
    100: "INVALID_PARAMETER", 4: "RATE_LIMIT", 80007: "RATE_LIMIT", 130429: "RATE_LIMIT", 131048: "SPAM_LIMIT",
    131056: "PAIR_LIMIT", 0: "AUTH", 3: "AUTH", 10: "AUTH", 190: "AUTH", 131005: "AUTH", 131031: "ACCOUNT_LOCKED",
    368: "ACCOUNT_LOCKED", 1: "UNKNOWN", 2: "UNAVAILABLE", 131000: "UNKNOWN", 131016: "UNAVAILABLE",
    133004: "UNAVAILABLE",
}  # fmt: skip
_BUSY = frozenset({4, 80007, 130429, 131048, 131056})
_OURS = frozenset({0, 3, 10, 190, 131005, 131031, 368})
_LATER = frozenset({1, 2, 131000, 131016, 133004})
_GONE = frozenset({131026})
_STATUS: dict[str, ReceiptStatus] = {"sent": "sent", "delivered": "delivered", "read": "read", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class WhatsappOptions:
    phone_number_id: str
    access_token: str = field(repr=False)
    url: str = "https://graph.facebook.com/v21.0"
    template: str = ""
    template_language: str = "en_US"
    timeout_seconds: float = 15.0
    connections: int = 100
    allow: tuple[str, ...] = ()


class WhatsappChannel:
    name = "whatsapp"

    def __init__(self, options: WhatsappOptions, *, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._client = GuardedClient(AddressGuard(options.allow), connections=options.connections)
        self._url = URL(f"{options.url}/{options.phone_number_id}/messages")
        self._headers = {"Authorization": f"Bearer {options.access_token}", "Content-Type": "application/json"}

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == NotificationType.WHATSAPP

    async def handle(self, message: Message) -> Receipt:
        time_left = TimeLeft(seconds_for(message, self._options.timeout_seconds, PROVIDER))
        content = _template(message.target_meta, message) or _text(message)
        answer = await self._send(message, content, time_left.seconds())
        if _number(answer) == WINDOW_CLOSED and content["type"] == "text" and self._options.template:
            fallback = {"template": self._options.template, "language": self._options.template_language}
            answer = await self._send(message, _template(fallback, message) or content, time_left.seconds())
        found = answer.document().get("messages")
        if answer.status != 200 or not found:
            raise self._refusal(answer)
        return Receipt(f"whatsapp:{found[0]['id']}")

    async def close(self) -> None:
        await self._client.close()

    async def _send(self, message: Message, content: dict[str, Any], seconds: float) -> HttpAnswer:
        envelope = {
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to": message.recipient,
            "biz_opaque_callback_data": message.id,
            **content,
        }
        return await self._client.ask(self._url, codec.encode(envelope), self._headers, seconds, PROVIDER)

    def _refusal(self, answer: HttpAnswer) -> Failure:
        number = _number(answer)
        if number is None or number not in _WORDS:
            why = f"WHATSAPP_HTTP_{answer.status}" if number is None else f"WHATSAPP_{number}"
            return refused(answer, "WhatsApp", why, now=self._clock.now())
        code, said = f"WHATSAPP_{_WORDS[number]}", f"WhatsApp refused the message (error {number})"
        if number in _BUSY:
            seconds = wait_seconds(answer.headers.get("Retry-After"), self._clock.now())
            return Throttled(f"{said} and asks us to wait.", retry_after_seconds=seconds, code=code)
        if number in _OURS:
            return Transient(f"{said}; check channels.whatsapp.access_token and the account.", code=code)
        if number in _LATER:
            return Transient(f"{said}.", code=code)
        if number in _GONE:
            return RecipientGone(f"{said}: nobody is reached at this number.", code=code)
        if number == WINDOW_CLOSED:
            return Permanent(
                f"{said}: the recipient wrote more than 24 hours ago, so only a template may be sent; "
                "give one in target_meta or set channels.whatsapp.template.",
                code=code,
            )
        return Permanent(f"{said}: it does not take this message.", code=code)


def _text(message: Message) -> dict[str, Any]:
    if len(message.body) > MAX_BODY_CHARS:
        why = f"A WhatsApp text has at most {MAX_BODY_CHARS} characters; shorten it."
        raise Permanent(why, code="WHATSAPP_TOO_LONG", unsent=True)
    return {"type": "text", "text": {"preview_url": False, "body": message.body}}


def _template(wanted: Mapping[str, Any], message: Message) -> dict[str, Any] | None:
    """The template that the address asks for; without parameters of its own it gets the text as the only one."""
    name = wanted.get("template")
    if not isinstance(name, str) or not name:
        return None
    given = wanted.get("parameters")
    texts = [str(one) for one in given] if isinstance(given, list) else [message.body]
    parameters = [{"type": "text", "text": _one_line(text)} for text in texts]
    components = [{"type": "body", "parameters": parameters}] if parameters else []
    language = {"code": str(wanted.get("language") or "en_US")}
    return {"type": "template", "template": {"name": name, "language": language, "components": components}}


def _one_line(text: str) -> str:
    """A parameter has no line breaks, no tabs and no runs of spaces: Meta refuses them."""
    return " ".join(text.split())[:MAX_PARAMETER_CHARS]


def _number(answer: HttpAnswer) -> int | None:
    error = answer.document().get("error")
    number = error.get("code") if isinstance(error, dict) else None
    return number if isinstance(number, int) else None


def verify_whatsapp(app_secret: str, headers: Mapping[str, str], body: bytes) -> None:
    """Raise Unproven unless Meta signed the body with our app's secret. A repeat passes; receipts only move forward."""
    given = headers.get("X-Hub-Signature-256") or headers.get("x-hub-signature-256") or ""
    expected = "sha256=" + hmac.new(app_secret.encode(), body, hashlib.sha256).hexdigest()
    if not app_secret or not fits(expected, given):
        raise Unproven("The callback's X-Hub-Signature-256 does not fit; check channels.whatsapp.app_secret.")


def whatsapp_challenge(verify_token: str, query: Mapping[str, str]) -> str:
    """The answer to Meta's question whether this address is ours; Unproven when it does not know our word."""
    told = query.get("hub.verify_token", "")
    if not verify_token or query.get("hub.mode") != "subscribe" or not fits(verify_token, told):
        raise Unproven("The subscription's verify token does not fit; check channels.whatsapp.verify_token.")
    return query.get("hub.challenge", "")


class _Error(msgspec.Struct):
    code: int = -1


class _Said(msgspec.Struct):
    id: str
    status: str
    timestamp: str = "0"
    errors: list[_Error] = []


class _Value(msgspec.Struct):
    statuses: list[_Said] = []


class _Change(msgspec.Struct):
    value: _Value


class _Entry(msgspec.Struct):
    changes: list[_Change] = []


class _Callback(msgspec.Struct):
    entry: list[_Entry] = []


def read_whatsapp(body: bytes) -> list[DeliveryReceipt]:
    """Every status in a callback; incoming messages and other changes are left out."""
    try:
        callback = msgspec.json.decode(body, type=_Callback)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Invalid(f"the callback is not one of WhatsApp's: {error}") from None
    found = [said for entry in callback.entry for change in entry.changes for said in change.value.statuses]
    return [_receipt(said) for said in found if said.status in _STATUS]


def _receipt(said: _Said) -> DeliveryReceipt:
    number = said.errors[0].code if said.errors else None
    word = "UNDELIVERED" if number is None else _WORDS.get(number, str(number))
    return DeliveryReceipt(
        provider_id=f"whatsapp:{said.id}",
        status=_STATUS[said.status],
        at_millis=int(said.timestamp) * 1000 if said.timestamp.isdigit() else 0,
        code=f"WHATSAPP_{word}" if said.status == "failed" else None,
        gone=number in _GONE,
    )


def from_settings(settings: Any) -> WhatsappChannel | None:
    section = settings.channels.whatsapp
    if section.simulated:
        return None
    if not section.phone_number_id:
        raise Misconfigured("channels.whatsapp.phone_number_id is empty; give the id of the number to send from.")
    return WhatsappChannel(
        WhatsappOptions(
            phone_number_id=section.phone_number_id,
            access_token=reveal(section.access_token, "channels.whatsapp.access_token"),
            url=section.url.rstrip("/"),
            template=section.template,
            template_language=section.template_language,
            timeout_seconds=section.timeout_seconds,
            connections=section.consumers,
            allow=tuple(settings.channels.webhook.allow),
        )
    )
