"""Makes messages of events: of those that name their topic, and of those that a route sends to one."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from ulak import codec
from ulak.errors import Invalid
from ulak.masking import mask_text, mask_value
from ulak.settings.bus import TOPIC, Route
from ulak.spine.bus import BusMessage, BusRecord
from ulak.spine.event import EventRecord
from ulak.spine.store import Tx
from ulak.spine.trace import headers_of

PUBLISHED = "bus.message"
# Their data is a message already: topic, key and value.
READY_MADE = frozenset({PUBLISHED, "actions.message"})
MAX_MESSAGE_BYTES = 262_144
_TOPIC = re.compile(TOPIC)
Headers = tuple[tuple[str, bytes], ...]
NO_TRACES: Mapping[int, str] = MappingProxyType({})
_CLOUDEVENTS = (("content-type", b"application/cloudevents+json; charset=UTF-8"),)


def publish(tx: Tx, topic: str, value: Any, key: str | None = None) -> None:
    """Publish in the caller's transaction: the message goes out if that commits, and only then."""
    if not _TOPIC.fullmatch(topic):
        raise Invalid(f"{topic!r:.100} can't be a topic; its name has 1 to 249 letters, digits, dots, dashes and _")
    data: dict[str, Any] = {"topic": topic, "key": key} | ({} if tx.trace is None else {"trace": tx.trace})
    if isinstance(value, bytes):
        data["base64"] = base64.b64encode(value).decode()
    else:
        data["value"] = value
    size = len(codec.encode(data))
    if size > MAX_MESSAGE_BYTES:
        raise Invalid(f"a message has at most {MAX_MESSAGE_BYTES} bytes, and this one {size}; send a reference instead")
    tx.emit(PUBLISHED, 0, topic, data)


def to_record(topic: str, value: Any, key: str | None) -> BusRecord:
    """Return a message as a listener gets it, for a bus that hands it straight over."""
    raw = value if isinstance(value, bytes) else _written(value)
    return BusRecord(topic, 0, 0, None if key is None else key.encode(), raw)


class EventRouter:
    """Makes messages of events. An event may go to several topics."""

    def __init__(self, routes: Sequence[Route], source: str) -> None:
        self._source = source
        self._find = lru_cache(maxsize=1024)(
            lambda name: tuple(route for route in routes if fnmatchcase(name, route.event))
        )

    def messages(self, events: Iterable[EventRecord], traces: Mapping[int, str] = NO_TRACES) -> list[BusMessage]:
        """Return the messages that events become. `traces` has the traces of the jobs that the events are about."""
        found: list[BusMessage] = []
        for event in events:
            if event.name in READY_MADE:
                found.append(_ready_made(event.data))
            else:
                trace = _carried(traces.get(event.job))
                found += [self._routed(event, route, trace) for route in self._find(event.name)]
        return found

    def routed_jobs(self, events: Iterable[EventRecord]) -> set[int]:
        """Return the jobs that routed events are about."""
        return {event.job for event in events if event.name not in READY_MADE and event.job and self._find(event.name)}

    def _routed(self, event: EventRecord, route: Route, trace: Headers) -> BusMessage:
        key = _key(event, route.key)
        if route.cloudevents:
            return BusMessage(route.topic, key, codec.encode(self._cloud_event(event)), (*_CLOUDEVENTS, *trace))
        told = {"seq": event.seq, "name": event.name, **_content(event)}
        return BusMessage(route.topic, key, codec.encode(told), trace)

    def _cloud_event(self, event: EventRecord) -> dict[str, Any]:
        envelope = {
            "specversion": "1.0",
            "id": str(event.seq),
            "source": self._source,
            "type": f"ulak.{event.name}",
            "time": _instant(event),
            "datacontenttype": "application/json",
            "data": _content(event),
        }
        return {**envelope, "subject": str(event.job)} if event.job else envelope


def _ready_made(data: Any) -> BusMessage:
    value = base64.b64decode(data["base64"]) if "base64" in data else _written(data.get("value"))
    key = data.get("key")
    return BusMessage(data["topic"], None if key is None else str(key).encode(), value, _carried(data.get("trace")))


def _carried(trace: str | None) -> Headers:
    return tuple((name, text.encode()) for name, text in headers_of(trace).items())


def _written(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else codec.encode(value)


def _content(event: EventRecord) -> dict[str, Any]:
    """Return an event as the API shows it: ids as text, personal data and secrets masked."""
    data = [_shown(part) for part in event.data] if isinstance(event.data, list) else _shown(event.data)
    job = str(event.job) if event.job else None
    return {"at": _instant(event), "job": job, "kind": mask_text(event.kind), "data": data}


def _shown(part: Any) -> Any:
    return part if isinstance(part, int) else mask_value("", part)


def _instant(event: EventRecord) -> str:
    return event.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _key(event: EventRecord, field: str) -> bytes | None:
    if field.startswith("data."):
        found = event.data.get(field.removeprefix("data.")) if isinstance(event.data, dict) else None
    else:
        found = {"job": event.job or None, "kind": event.kind, "name": event.name}[field]
    return None if found is None else str(found).encode()
