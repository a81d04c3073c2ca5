"""WhatsApp's Cloud API with its 24-hour window and templates, and the callbacks that Meta posts and signs."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.providers.server import Asked, ProviderServer, told

TOKEN, NUMBER, SECRET = "EAAG-test", "1055", "app-secret"


def graph_error(code: int, status: int = 400, **headers: str) -> web.Response:
    error = {"message": f"(#{code}) no", "type": "OAuthException", "code": code, "fbtrace_id": "x"}
    return told(status, {"error": error}, **headers)


@dataclass
class WhatsappServer(ProviderServer):
    """`wrote` are the people who wrote within the last 24 hours; others get templates only."""

    wrote: set[str] = field(default_factory=set)
    templates: set[str] = field(default_factory=lambda: {"alarm"})
    sent: list[dict[str, Any]] = field(default_factory=list)

    async def usual(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        if asked.headers.get("Authorization") != f"Bearer {TOKEN}":
            return graph_error(190, 401)
        if asked.path != f"/v21.0/{NUMBER}/messages":
            return graph_error(100)
        message = json.loads(asked.body)
        if message["type"] == "text" and message["to"] not in self.wrote:
            return graph_error(131047)
        if message["type"] == "template" and message["template"]["name"] not in self.templates:
            return graph_error(132001, 404)
        self.sent.append(message)
        found = [{"id": f"wamid.{len(self.sent)}"}]
        contacts = [{"input": message["to"], "wa_id": message["to"]}]
        return told(200, {"messaging_product": "whatsapp", "contacts": contacts, "messages": found})


def status_callback(identifier: str, status: str, error: int | None = None) -> tuple[dict[str, str], bytes]:
    said: dict[str, Any] = {"id": identifier, "status": status, "timestamp": "1800000000", "recipient_id": "9055"}
    if error is not None:
        said["errors"] = [{"code": error, "title": "no"}]
    value = {"messaging_product": "whatsapp", "metadata": {"phone_number_id": NUMBER}, "statuses": [said]}
    body = json.dumps(
        {
            "object": "whatsapp_business_account",
            "entry": [{"id": "1", "changes": [{"value": value, "field": "messages"}]}],
        }
    ).encode()
    return {"X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}, body
