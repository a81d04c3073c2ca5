"""Signed links by which a recipient says: I have seen it. A page asks for one tap, since scanners open links."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from ulak.errors import NotFound
from ulak.settings import Settings
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.actions")

SECRET = "link"  # noqa: S105 - its name, not its value
_MARK_BYTES = 16

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>{title}</title>
<style>body{{font:1.1rem system-ui;margin:15vh auto;max-width:28rem;padding:0 1rem;text-align:center}}
button{{font:inherit;padding:.8rem 2rem;border:0;border-radius:.5rem;background:#14532d;color:#fff}}</style>
<h1>{title}</h1><p>{text}</p>{form}</html>"""
_FORM = '<form method="post"><button>Acknowledge</button></form>'


def read_secret(tx: Tx, name: str) -> str | None:
    row = tx.row(sql.read_secret, name=name)
    return None if row is None else str(row[0])


def make_secret(tx: Tx, name: str) -> str:
    """The one that is kept, or a new one."""
    tx.execute(sql.keep_secret, name=name, value=secrets.token_hex(32))
    kept = read_secret(tx, name)
    assert kept is not None
    return kept


def public_url(settings: Settings) -> str:
    """Under which people reach this door."""
    http = settings.http
    return http.public_url.rstrip("/") or f"http://{http.host}:{http.port}"


def token_of(secret: str, run: int) -> str:
    number = run.to_bytes(8, "big")
    return base64.urlsafe_b64encode(number + _mark(secret, number)).decode().rstrip("=")


def run_of(secret: str, token: str) -> int:
    """The run that a link is for; a link that is not ours leads nowhere."""
    try:
        data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        data = b""
    number = data[:8]
    if len(data) != 8 + _MARK_BYTES or not hmac.compare_digest(data[8:], _mark(secret, number)):
        raise NotFound("this link is not one of ours, or is not whole; open it as it was sent")
    return int.from_bytes(number, "big")


def _mark(secret: str, number: bytes) -> bytes:
    return hmac.new(secret.encode(), b"acknowledge" + number, hashlib.sha256).digest()[:_MARK_BYTES]


def asking_page() -> str:
    return PAGE.format(
        title="Acknowledge", text="Tap to say that you have seen this. It stops further messages.", form=_FORM
    )


def thanking_page() -> str:
    return PAGE.format(title="Acknowledged", text="Thank you. Nobody else is called about this.", form="")
