"""Connections to one mail server: opened when needed, used again, never more than the bound, closed when idle."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

from aiosmtplib import SMTP, SMTPException, SMTPHeloError, SMTPResponseException

from ulak.clock import Clock

_PARTING_SECONDS = 2.0
_PROOF_SECONDS = 5.0  # a line that a firewall forgot must not eat the whole delivery's time


@dataclass(frozen=True, slots=True)
class Server:
    """Where the mail goes and how we show ourselves there."""

    host: str
    port: int
    tls: Literal["none", "starttls", "tls"]
    username: str
    password: str
    ca_file: str | None
    local_hostname: str | None


@dataclass(slots=True)
class _Idle:
    smtp: SMTP
    since: float


class Connections:
    def __init__(self, server: Server, clock: Clock, *, limit: int, idle_seconds: float) -> None:
        self._server = server
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._slots = asyncio.Semaphore(limit)
        self._idle: list[_Idle] = []
        self._closing = asyncio.Event()
        self._reaper: asyncio.Task[None] | None = None
        self._tls_context: ssl.SSLContext | None = None

    @contextlib.asynccontextmanager
    async def borrow(self) -> AsyncIterator[SMTP]:
        """A connection that answers. It goes back unless the line itself is broken; a refused letter breaks nothing."""
        async with self._slots:
            smtp = await self._reused() or await self._opened()
            try:
                yield smtp
            except SMTPResponseException:
                self._give_back(smtp)
                raise
            except BaseException:
                smtp.close()
                raise
            self._give_back(smtp)

    async def close(self) -> None:
        self._closing.set()
        if self._reaper is not None:
            await self._reaper
        idle, self._idle = self._idle, []
        await asyncio.gather(*(_part(each.smtp) for each in idle))

    async def _reused(self) -> SMTP | None:
        """The connection used last, if the server still keeps it: RSET proves it and clears what was left."""
        while self._idle:
            smtp = self._idle.pop().smtp
            try:
                await smtp.rset(timeout=_PROOF_SECONDS)
                return smtp
            except (SMTPException, OSError):
                smtp.close()
            except BaseException:
                smtp.close()
                raise
        return None

    async def _opened(self) -> SMTP:
        server = self._server
        smtp = SMTP(
            hostname=server.host,
            port=server.port,
            use_tls=server.tls == "tls",
            start_tls=server.tls == "starttls",  # True demands it: no silent fall back to plain text
            username=server.username or None,
            password=server.password if server.username else None,
            tls_context=self._context() if server.tls != "none" else None,
            local_hostname=server.local_hostname,
            timeout=None,  # the delivery as a whole has a deadline
        )
        await smtp.connect()
        try:
            await _introduce(smtp)
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _context(self) -> ssl.SSLContext:
        if self._tls_context is None:
            self._tls_context = ssl.create_default_context(cafile=self._server.ca_file)
        return self._tls_context

    def _give_back(self, smtp: SMTP) -> None:
        if self._closing.is_set() or not smtp.is_connected:
            smtp.close()
            return
        self._idle.append(_Idle(smtp, self._clock.monotonic()))
        if self._reaper is None:
            self._reaper = asyncio.create_task(self._reap())

    async def _reap(self) -> None:
        """Close what nobody wanted for `idle_seconds`; servers charge for connections that only stand there."""
        while not await self._clock.wait(self._closing, self._idle_seconds):
            stale_since = self._clock.monotonic() - self._idle_seconds
            stale = [each for each in self._idle if each.since <= stale_since]
            self._idle = [each for each in self._idle if each.since > stale_since]
            await asyncio.gather(*(_part(each.smtp) for each in stale))


async def _introduce(smtp: SMTP) -> None:
    """EHLO now, unless the log-in has said it: what the server can do must be known before the first letter."""
    if smtp.is_ehlo_or_helo_needed:
        try:
            await smtp.ehlo()
        except SMTPHeloError:
            await smtp.helo()


async def _part(smtp: SMTP) -> None:
    with contextlib.suppress(SMTPException, OSError, TimeoutError):
        async with asyncio.timeout(_PARTING_SECONDS):
            await smtp.quit()
    smtp.close()
