"""The serving process: the door beside the worker, opened last and closed last."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from pathlib import Path

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


async def serve_until(ulak: Ulak, stop: asyncio.Event, *, demo: bool = False) -> None:
    """Take the port, open the store, answer; then the other way round, with 503 while the work ends."""
    story = Story(ulak) if demo else None
    if story is not None:
        story.declare()
    listener = listen(ulak.settings.http)
    try:
        await ulak.open()
        try:
            failure = await _serve(ulak, listener, stop, story)
        finally:
            await ulak.close()
    finally:
        listener.close()
    tell_what_is_left(ulak)
    if failure is not None:
        raise Unavailable(f"the store is lost: {failure}; start again: everything that was accepted is still there")


async def _serve(ulak: Ulak, listener: socket.socket, stop: asyncio.Event, story: Story | None) -> Exception | None:
    address = address_of(listener)
    local = make_key("command line", [], ulak.clock.now())
    door = build_app(ulak, local=local.key)
    async with door.life(), listening(door, listener):
        with announced(ulak.store.name, address, local.token):
            _greet(ulak, address, story=story is not None)
            told = asyncio.create_task(story.run(), name="ulak-story") if story is not None else None
            await stopped_or_lost(ulak, stop)
            if told is not None:
                told.cancel()
        failure = ulak.loops.failure
        door.guard.stopping = True
        await ulak.close()
    return failure


# A terminal of 80 columns must not break an address, or what is copied from it no longer works.
_TRY = """\
  curl -s{key} {address}/api/notifications -d '
    {{"notificationType": "EMAIL", "recipient": "ayse@example.com",
     "subject": "Merhaba", "body": "Ulak is here."}}'"""

_PLAIN = """\
Ulak serves {address} on {store}
{console}  documentation  {address}/docs
  health         {address}/healthz
                 {address}/readyz
                 {address}/metrics
Try:
{attempt}
Is it well?  ulak status"""

_KEYED = """\
Ulak serves {address} on {store}
{console}  health         {address}/healthz
                 {address}/readyz
A key:  ulak keys create NAME --scope notify
Try:
{attempt}
Is it well?  ulak status"""

_STORY = """\
Ulak serves {address} on {store}
A town is at work, and everything in it is simulated. Watch it in the browser:

  {address}/console/

  dispatch  neighbours ask for help; helpers accept, refuse or keep silent
  changes   a company list is published every minute, and changes
  actions   a sensor trips, or a company moves: a plan tells whoever is on call
  compute   scripts run on worker processes
  notify    messages go out; a provider goes dark, and nobody else waits for it

Three things to try in a second terminal:
  1. {ulak} status
     Is it well? One screen, the verdict first.
  2. {ulak} kinds pause notify.email
     Mail waits and nothing else does; `kinds resume notify.email` lets it go.
  3. kill -9 {pid}
     Start it again: the town goes on, and `status` accounts for every job.
Or watch a server die again and again:
  {ulak} demo crash"""


def _greet(ulak: Ulak, address: str, *, story: bool) -> None:
    keyed = keys_required(ulak.settings.http)
    attempt = _TRY.format(address=address, key=" -H 'Authorization: Bearer ulak_…'" if keyed else "")
    console = f"  console        {address}/console/{'   (asks for a key)' if keyed else ''}\n"
    told = _STORY if story else _KEYED if keyed else _PLAIN
    typer.echo(
        told.format(
            address=address,
            store=mask_url(ulak.store.name),
            console=console if ulak.settings.console.enabled else "",
            attempt=attempt,
            pid=os.getpid(),
            ulak=_command(),
        ),
        err=True,
    )


def _command() -> str:
    """How this command is called from here: `make run` does not put it on the path."""
    called = Path(sys.argv[0])
    here = Path.cwd()
    if called.name != "ulak" or shutil.which("ulak") is not None:
        return "ulak"
    return str(called.relative_to(here)) if called.is_relative_to(here) else str(called)
