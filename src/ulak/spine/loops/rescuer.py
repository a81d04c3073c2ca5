"""The rescuer: keeps this process's lease alive and frees the work of processes that are gone, without being asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from ulak.log import get_logger
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx, Verb, WriterQueue
from ulak.spine.telemetry import Telemetry
from ulak.spine.units.rescue import RESCUE, Lost

log = get_logger("ulak.rescuer")
sql = Queries("ulak.spine")


@dataclass(frozen=True, slots=True)
class Beat:
    """`last_at` is when the one before was; None at the first."""

    owner: int
    lease_millis: int
    multi_process: bool
    last_at: int | None = None


@dataclass(frozen=True, slots=True)
class Pulse:
    """The finds of a heartbeat: owners that are gone but hold work, and own jobs that somebody has cancelled.

    `lease_at` is until when it has renewed the own lease; None when that is lost, or when nobody shares the store.
    """

    at: int
    lease_at: int | None = None
    lost: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)


def _beat(tx: Tx, beat: Beat) -> Pulse:
    lease_at = tx.now + beat.lease_millis
    leases = {owner: lease_at for owner, _, _, _, lease_at in tx.rows(sql.list_owners)}
    renewed = beat.multi_process and tx.execute(sql.beat_owner, id=beat.owner, lease_at=lease_at)
    # A holder of work without a row of its own is gone as well: its row may have been removed first.
    holders = {owner for (owner,) in tx.rows(sql.find_leaseholders)} | set(leases)
    gone = {owner for owner in holders if leases.get(owner, 0) < tx.now and owner != beat.owner}
    if _is_late(tx.now, beat, leases.get(beat.owner, lease_at)):
        gone.clear()
    cancelled = [identifier for (identifier,) in tx.rows(sql.find_cancelled, owner=beat.owner)]
    return Pulse(tx.now, lease_at if renewed else None, sorted(gone), cancelled)


def _is_late(now: int, beat: Beat, lease_at: int) -> bool:
    """Return whether the store may have stood still for all processes: then owners with older leases may renew first.

    After the first beat the row can't show that: a session that lost its connection renews it once it has another.
    """
    last_at = lease_at - beat.lease_millis if beat.last_at is None else beat.last_at
    return now - last_at > beat.lease_millis / 2


BEAT: Verb[Beat, Pulse] = Verb(WriterQueue.TIMERS, lambda tx, items: [_beat(tx, beat) for beat in items])


class Rescuer:
    def __init__(self, store: Store, telemetry: Telemetry, lease_seconds: float, poison_deaths: int) -> None:
        self._store = store
        self._telemetry = telemetry
        self._lease_millis = round(lease_seconds * 1000)
        self._poison_deaths = poison_deaths
        self._last_at: int | None = None
        self.pause_seconds = lease_seconds / 3

    async def beat(self) -> list[int]:
        """Send a heartbeat; return this process's jobs that were cancelled elsewhere."""
        ids = self._store.ids  # of this name: the store may have another one when the answer comes
        beat = Beat(self._store.owner, self._lease_millis, self._store.multi_process, self._last_at)
        pulse = await self._store.submit(BEAT, beat)
        self._last_at = pulse.at
        if pulse.lease_at is not None:
            ids.hold(pulse.lease_at)
        for owner in pulse.lost:
            await self._rescue(owner)
        return pulse.cancelled

    async def _rescue(self, owner: int) -> None:
        rescued = 0
        while page := await self._store.submit(RESCUE, Lost(owner, self._poison_deaths, presumed=True)):
            rescued += page.total()
            for kind, number in page.items():
                self._telemetry.count("jobs_uncertain", kind, number=number)
        if rescued:
            log.warning("rescued", owner=owner, jobs=rescued, note="their process is gone; each attempt is uncertain")
