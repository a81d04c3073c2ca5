"""The serving process: the door beside the worker, opened last and closed last."""

from __future__ import annotations

import asyncio
import socket

import typer

from ulak.access.keys import make_key
from ulak.app import Ulak
from ulak.cli.process import stopped_or_lost, tell_what_is_left
from ulak.cli.running_server import announced
from ulak.cli.story import Story
from ulak.errors import Unavailable
from ulak.http.access import keys_required
from ulak.http.app import build_app
from ulak.http.server import address_of, listen, listening
from ulak.masking import mask_url


async def serve_until(ulak: Ulak, stop: asyncio.Event, *, story: bool = False) -> None:
    """Take the port, open the store, answer; then the other way round, with 503 while the work ends."""
    listener = listen(ulak.settings.http)
    try:
        await ulak.open()
        try:
            failure = await _serve(ulak, listener, stop, story=story)
        finally:
            await ulak.close()
    finally:
        listener.close()
    tell_what_is_left(ulak)
    if failure is not None:
        raise Unavailable(f"the store is lost: {failure}; start again, and what was accepted is there")


async def _serve(ulak: Ulak, listener: socket.socket, stop: asyncio.Event, *, story: bool) -> Exception | None:
    address = address_of(listener)
    local = make_key("command line", [], ulak.clock.now())
    door = build_app(ulak, local=local.key)
    async with door.life(), listening(door, listener):
        with announced(ulak.store.name, address, local.token):
            _greet(ulak, address, story=story)
            told = asyncio.create_task(Story(ulak).run(), name="ulak-story") if story else None
            await stopped_or_lost(ulak, stop)
            if told is not None:
                told.cancel()
        failure = ulak.loops.failure
        door.guard.stopping = True
        await ulak.close()
    return failure


_TRY = '{"notificationType": "EMAIL", "recipient": "ayse@example.com", "subject": "Merhaba", "body": "Ulak is here."}'


_STORY = """\
A town is at work, everything in it simulated:
  dispatch   neighbours ask for help; helpers accept, refuse or keep silent     {address}/console/dispatch
  changes    a company list is published again and again, and changes           {address}/console/changes
  actions    a sensor trips, a plan tells whoever is on call                    {address}/console/actions
  compute    scripts run on worker processes                                    {address}/console/compute
  notify     messages go out; one provider is dark, and nobody else waits       {address}/console/breakers"""

_STORY_TRIES = """\
      pause a queue at {address}/console/kinds, and resume it
      kill -9 this process and start it again: nothing that was accepted is lost"""


def _greet(ulak: Ulak, address: str, *, story: bool) -> None:
    key = " -H 'Authorization: Bearer ulak_…'" if keys_required(ulak.settings.http) else ""
    lines = [f"Ulak serves {address} on {mask_url(ulak.store.name)}"]
    if ulak.settings.console.enabled:
        lines.append(f"  console        {address}/console/")
    lines += [
        f"  documentation  {address}/docs",
        f"  health         {address}/healthz   {address}/readyz   {address}/metrics",
        *([_STORY.format(address=address)] if story else []),
        f"Try:  curl -s{key} {address}/api/notifications -d '{_TRY}'",
        *([_STORY_TRIES.format(address=address)] if story else []),
    ]
    typer.echo("\n".join(lines), err=True)
