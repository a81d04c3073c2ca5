"""FCM HTTP v1 and the token endpoint beside it, as Google documents them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt

from tests.providers.server import Asked, ProviderServer, told

FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
_STATUS = {
    "UNREGISTERED": (404, "NOT_FOUND"),
    "INVALID_ARGUMENT": (400, "INVALID_ARGUMENT"),
    "SENDER_ID_MISMATCH": (403, "PERMISSION_DENIED"),
    "QUOTA_EXCEEDED": (429, "RESOURCE_EXHAUSTED"),
    "UNAVAILABLE": (503, "UNAVAILABLE"),
    "INTERNAL": (500, "INTERNAL"),
    "THIRD_PARTY_AUTH_ERROR": (401, "UNAUTHENTICATED"),
}
_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
_PRIVATE = _KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
_PUBLIC = _KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def fcm_error(word: str, **headers: str) -> web.Response:
    code, status = _STATUS[word]
    error = {"code": code, "message": word.lower(), "status": status, "details": [_detail(word)]}
    return told(code, {"error": error}, **headers)


def _detail(word: str) -> dict[str, str]:
    return {"@type": FCM_ERROR, "errorCode": word}


@dataclass
class FcmServer(ProviderServer):
    """`/token` gives a token for a proper assertion; `messages:send` asks for the token that is good now."""

    token: str = "ya29.first"
    tokens_given: int = 0
    sent: list[dict[str, Any]] = field(default_factory=list)

    def account(self) -> str:
        return json.dumps(
            {
                "type": "service_account",
                "project_id": "ulak-test",
                "private_key_id": "k1",
                "private_key": _PRIVATE,
                "client_email": "push@ulak-test.iam.gserviceaccount.com",
                "client_id": "1",
                "token_uri": f"{self.url}/token",
            }
        )

    async def handle(self, request: web.Request) -> web.StreamResponse:
        return await (self._give_token(request) if request.path == "/token" else super().handle(request))

    async def _give_token(self, request: web.Request) -> web.Response:
        form = parse_qs((await request.read()).decode())
        claims = jwt.decode(form["assertion"][0], certs=_PUBLIC, audience="https://oauth2.googleapis.com/token")
        if claims["scope"] != "https://www.googleapis.com/auth/firebase.messaging":
            return told(400, {"error": "invalid_scope"})
        self.tokens_given += 1
        return told(200, {"access_token": self.token, "expires_in": 3599, "token_type": "Bearer"})

    async def usual(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        if asked.headers.get("Authorization") != f"Bearer {self.token}":
            return told(401, {"error": {"code": 401, "message": "no", "status": "UNAUTHENTICATED"}})
        if asked.path != "/v1/projects/ulak-test/messages:send":
            return told(404, {"error": {"code": 404, "message": "no", "status": "NOT_FOUND"}})
        self.sent.append(json.loads(asked.body)["message"])
        return told(200, {"name": f"projects/ulak-test/messages/0:{len(self.sent)}"})
