"""Twilio's Messages resource, and the status callbacks that it posts and signs."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from aiohttp import web

from tests.providers.server import Asked, ProviderServer, told

ACCOUNT, TOKEN = "ACtest", "twilio-token"


def twilio_error(code: int, status: int = 400, **headers: str) -> web.Response:
    more = f"https://www.twilio.com/docs/errors/{code}"
    return told(status, {"code": code, "message": "no", "more_info": more, "status": status}, **headers)


@dataclass
class TwilioServer(ProviderServer):
    messages: list[dict[str, str]] = field(default_factory=list)

    async def usual(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        proof = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
        if asked.headers.get("Authorization") != f"Basic {proof}":
            return twilio_error(20003, 401)
        if asked.path != f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json":
            return twilio_error(20404, 404)
        form = dict(parse_qsl(asked.body.decode()))
        if not form["To"].startswith("+"):
            return twilio_error(21211)
        self.messages.append(form)
        return told(201, {"sid": f"SM{len(self.messages):032d}", "status": "queued", "error_code": None})


def status_callback(url: str, sid: str, status: str, error: int = 0) -> tuple[dict[str, str], bytes]:
    """The headers and the body of what Twilio posts."""
    form = {"MessageSid": sid, "MessageStatus": status, "AccountSid": ACCOUNT, "To": "+905550001122"}
    form |= {"ErrorCode": str(error)} if error else {}
    content = url + "".join(name + form[name] for name in sorted(form))
    signed = base64.b64encode(hmac.digest(TOKEN.encode(), content.encode(), hashlib.sha1)).decode()
    return {"X-Twilio-Signature": signed}, urlencode(form).encode()
