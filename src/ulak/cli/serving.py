"""The serving process: the door beside the worker, opened last and closed last."""

from __future__ import annotations

import asyncio
import socket

import typer

from ulak.app import Ulak
from ulak.cli.beside import announced
from ulak.cli.process import stopped_or_lost, tell_what_is_left
from ulak.errors import Unavailable
from ulak.http.access import keys_required
from ulak.http.app import build_app
from ulak.http.caller import SCOPES
from ulak.http.keys import make_key
from ulak.http.server import address_of, listen, listening
from ulak.masking import mask_url


async def serve_until(ulak: Ulak, stop: asyncio.Event) -> None:
    """Take the port, open the store, answer; then the other way round, with 503 while the work ends."""
    listener = listen(ulak.settings.http)
    try:
        await ulak.open()
        try:
            failure = await _serve(ulak, listener, stop)
        finally:
            await ulak.close()
    finally:
        listener.close()
    tell_what_is_left(ulak)
    if failure is not None:
        raise Unavailable(f"the store is lost: {failure}; start again, and what was accepted is there")


async def _serve(ulak: Ulak, listener: socket.socket, stop: asyncio.Event) -> Exception | None:
    address = address_of(listener)
    local = make_key("command line", list(SCOPES), ulak.clock.now())
    door = build_app(ulak, local=local.key)
    async with door.life(), listening(door, listener):
        with announced(ulak.store.name, address, local.token):
            _greet(ulak, address)
            await stopped_or_lost(ulak, stop)
        failure = ulak.loops.failure
        door.guard.stopping = True
        await ulak.close()
    return failure


_TRY = '{"notificationType": "EMAIL", "recipient": "ayse@example.com", "subject": "Merhaba", "body": "Ulak is here."}'


def _greet(ulak: Ulak, address: str) -> None:
    key = " -H 'Authorization: Bearer ulak_…'" if keys_required(ulak.settings.http) else ""
    typer.echo(
        f"Ulak serves {address} on {mask_url(ulak.store.name)}\n"
        f"  documentation  {address}/docs\n"
        f"  health         {address}/healthz   {address}/readyz   {address}/metrics\n"
        f"Try:  curl -s{key} {address}/api/notifications -d '{_TRY}'",
        err=True,
    )
