"""The declaration of the dispatch room: its service, its jobs, and what it asks of its host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ulak.channels.message import NewMessage
from ulak.dispatch.acts import Acts, Ports
from ulak.dispatch.jobs import handlers
from ulak.dispatch.messages import Telling
from ulak.dispatch.model import Contact
from ulak.dispatch.policy import Policy
from ulak.dispatch.prune import prune_tasks
from ulak.dispatch.service import Dispatch
from ulak.dispatch.upkeep import Upkeep
from ulak.spine.room import Host, Room
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import enqueue_owed
from ulak.spine.units.withdraw import withdraw


def dispatch_room(host: Host) -> Room[Dispatch]:
    section = host.settings.dispatch

    def post(tx: Tx, tellings: Sequence[Telling]) -> list[int]:
        return host.post(tx, [to_message(one) for one in tellings])

    def check(contact: Contact) -> None:
        host.check_message(to_message(Telling(contact, "?", section.language)))

    acts = Acts(Policy.of(section), Ports(post, enqueue_owed, withdraw))
    service = Dispatch(section, acts, lambda: host.store, check, host.telemetry.tracer.requested)
    upkeep = Upkeep(service, lambda: host.store, section.position_flush_seconds)
    return Room(
        "dispatch",
        service,
        handlers(service.progress),
        prunes={"dispatch_task": partial(prune_tasks, keep_millis=round(section.history_days * 86_400_000))},
        gauges=upkeep.gauges,
        start=upkeep.start,
        close=upkeep.close,
    )


def to_message(telling: Telling) -> NewMessage:
    return NewMessage(
        notification_type=telling.contact.notification_type,
        recipient=telling.contact.recipient,
        body=telling.body,
        language=telling.language,
        metadata=telling.metadata,
        expires_at=telling.expires_at,
        continuation=telling.continuation,
        trace=telling.trace,
    )
