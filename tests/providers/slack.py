"""Slack's chat.postMessage and incoming webhooks, and the interactions that it posts and signs."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from tests.providers.server import Asked, ProviderServer, told

TOKEN, SECRET = "xoxb-test", "signing-secret"


@dataclass
class SlackServer(ProviderServer):
    channels: set[str] = field(default_factory=lambda: {"C024BE91L"})
    sent: list[dict[str, Any]] = field(default_factory=list)

    async def usual(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        message = json.loads(asked.body)
        if asked.path.startswith("/services/"):
            self.sent.append(message)
            return web.Response(text="ok")
        if asked.headers.get("Authorization") != f"Bearer {TOKEN}":
            return told(200, {"ok": False, "error": "invalid_auth"})
        if message["channel"] not in self.channels:
            return told(200, {"ok": False, "error": "channel_not_found"})
        self.sent.append(message)
        return told(200, {"ok": True, "channel": message["channel"], "ts": f"1503435956.{len(self.sent):06d}"})


def interaction(at_seconds: int, action: str, value: str) -> tuple[dict[str, str], bytes]:
    payload = {
        "type": "block_actions",
        "user": {"id": "U1"},
        "actions": [{"action_id": action, "value": value, "type": "button"}],
    }
    body = urlencode({"payload": json.dumps(payload)}).encode()
    signed = hmac.new(SECRET.encode(), f"v0:{at_seconds}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": str(at_seconds), "X-Slack-Signature": f"v0={signed}"}, body
