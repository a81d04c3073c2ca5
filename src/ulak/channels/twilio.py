"""SMS over Twilio's Messages resource, and the receipts (status callbacks) that Twilio posts back."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from yarl import URL

from ulak.channels.channel import Message, NotificationType, Receipt, RecipientGone, seconds_for
from ulak.channels.client import GuardedClient, HttpAnswer, refused, wait_seconds
from ulak.channels.receipts import DeliveryReceipt, ReceiptStatus, Unproven, fits
from ulak.channels.ssrf import AddressGuard
from ulak.clock import Clock, SystemClock
from ulak.errors import Failure, Misconfigured, Permanent, Throttled, Transient
from ulak.secrets import reveal

PROVIDER = "TWILIO"
MAX_BODY_CHARS = 1600
MAX_VALIDITY_SECONDS = 36_000
# Twilio's numbers: what is wrong with the recipient, what asks for patience, what is about our own account.
_GONE = {21211: "INVALID_NUMBER", 21217: "INVALID_NUMBER", 21614: "NOT_A_MOBILE", 21610: "UNSUBSCRIBED"}
_BUSY = {20429: "RATE_LIMIT", 14107: "RATE_LIMIT", 30001: "QUEUE_OVERFLOW", 21611: "QUEUE_OVERFLOW"}
_OURS = {20003: "AUTH", 20005: "ACCOUNT_SUSPENDED", 20404: "ACCOUNT_UNKNOWN"}
_FINAL = {21408: "REGION_NOT_ALLOWED", 21612: "NO_ROUTE", 21617: "TOO_LONG"}
_DELIVERY = {30003: "UNREACHABLE", 30004: "BLOCKED", 30005: "UNKNOWN_NUMBER", 30006: "LANDLINE", 30007: "FILTERED"}
_STATUS: dict[str, ReceiptStatus] = {
    "sent": "sent",
    "delivered": "delivered",
    "read": "read",
    "undelivered": "failed",
    "failed": "failed",
    "canceled": "failed",
}


@dataclass(frozen=True, slots=True)
class TwilioOptions:
    account_sid: str
    sender: str
    user: str
    password: str = field(repr=False)
    url: str = "https://api.twilio.com"
    status_callback: str = ""
    timeout_seconds: float = 15.0
    connections: int = 100
    allow: tuple[str, ...] = ()


class TwilioChannel:
    name = "twilio"

    def __init__(self, options: TwilioOptions, *, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._client = GuardedClient(AddressGuard(options.allow), connections=options.connections)
        self._url = URL(f"{options.url}/2010-04-01/Accounts/{options.account_sid}/Messages.json")
        proof = base64.b64encode(f"{options.user}:{options.password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {proof}", "Content-Type": "application/x-www-form-urlencoded"}

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == NotificationType.SMS

    async def handle(self, message: Message) -> Receipt:
        seconds = seconds_for(message, self._options.timeout_seconds, PROVIDER)
        form = urlencode(self._form(message)).encode()
        answer = await self._client.ask(self._url, form, self._headers, seconds, PROVIDER)
        document = answer.document()
        if answer.status not in {200, 201} or not document.get("sid"):
            raise self._refusal(answer, document)
        return Receipt(f"twilio:{document['sid']}", {"status": document.get("status")})

    async def close(self) -> None:
        await self._client.close()

    def _form(self, message: Message) -> dict[str, str]:
        sender = self._options.sender
        if len(message.body) > MAX_BODY_CHARS:
            why = f"An SMS has at most {MAX_BODY_CHARS} characters; shorten it."
            raise Permanent(why, code="TWILIO_TOO_LONG", unsent=True)
        form = {
            "To": message.recipient,
            "Body": message.body,
            "MessagingServiceSid" if sender.startswith("MG") else "From": sender,
        }
        left = message.seconds_left
        if left is not None:
            form["ValidityPeriod"] = str(min(max(math.floor(left), 1), MAX_VALIDITY_SECONDS))
        if self._options.status_callback:
            form["StatusCallback"] = self._options.status_callback
        return form

    def _refusal(self, answer: HttpAnswer, document: dict[str, Any]) -> Failure:
        number = document.get("code")
        known = {**_GONE, **_BUSY, **_OURS, **_FINAL}
        if not isinstance(number, int) or number not in known:
            why = f"TWILIO_{number}" if isinstance(number, int) else f"TWILIO_HTTP_{answer.status}"
            return refused(answer, "Twilio", why, now=self._clock.now())
        code, said = f"TWILIO_{known[number]}", f"Twilio refused the message (error {number})"
        if number in _GONE:
            return RecipientGone(f"{said}: it can't reach this number; correct the recipient.", code=code)
        if number in _BUSY or answer.status == 429:
            seconds = wait_seconds(answer.headers.get("Retry-After"), self._clock.now())
            return Throttled(f"{said} and asks us to wait.", retry_after_seconds=seconds, code=code)
        if number in _OURS:
            return Transient(f"{said}; check channels.sms.account_sid and its token.", code=code)
        return Permanent(f"{said}: it does not take this message.", code=code)


def verify_twilio(auth_token: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    """The form of a callback that Twilio signed for this URL; Unproven otherwise.

    The signature has no instant in it. A repeat therefore passes, and says what was known: receipts only move forward.
    """
    form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    content = url + "".join(name + form[name] for name in sorted(form))
    expected = base64.b64encode(hmac.digest(auth_token.encode(), content.encode(), hashlib.sha1)).decode()
    given = headers.get("X-Twilio-Signature") or headers.get("x-twilio-signature") or ""
    if not auth_token or not fits(expected, given):
        raise Unproven("The callback's X-Twilio-Signature does not fit; check channels.sms.auth_token and the URL.")
    return form


def read_twilio(form: Mapping[str, str], now: int) -> list[DeliveryReceipt]:
    """Return the receipt of a status callback; nothing for states on the way, such as queued."""
    status = _STATUS.get(form.get("MessageStatus", form.get("SmsStatus", "")))
    sid = form.get("MessageSid", form.get("SmsSid", ""))
    if status is None or not sid:
        return []
    number = form.get("ErrorCode", "")
    why = _DELIVERY.get(int(number), number) if number.isdigit() and int(number) else "UNDELIVERED"
    code = f"TWILIO_{why}" if status == "failed" else None
    gone = number in {"30005", "30006"}
    return [DeliveryReceipt(provider_id=f"twilio:{sid}", status=status, at_millis=now, code=code, gone=gone)]


def callback_url(settings: Any) -> str:
    """Where Twilio is to tell of deliveries, which is also what it signs: as set, or at our public address."""
    public = settings.http.public_url
    return settings.channels.sms.status_callback or (f"{public}/api/actions/receipts/twilio" if public else "")


def from_settings(settings: Any) -> TwilioChannel | None:
    section = settings.channels.sms
    if section.simulated:
        return None
    if not section.sender:
        raise Misconfigured("channels.sms.sender is empty; give the number or messaging service to send from.")
    with_key = bool(section.api_key_sid)
    secret = section.api_key_secret if with_key else section.auth_token
    name = "channels.sms.api_key_secret" if with_key else "channels.sms.auth_token"
    return TwilioChannel(
        TwilioOptions(
            account_sid=section.account_sid,
            sender=section.sender,
            user=section.api_key_sid or section.account_sid,
            password=reveal(secret, name),
            url=section.url.rstrip("/"),
            status_callback=callback_url(settings),
            timeout_seconds=section.timeout_seconds,
            connections=section.consumers,
            allow=tuple(settings.channels.webhook.allow),
        )
    )
