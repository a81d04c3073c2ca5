"""Messages to helpers and requesters, in Turkish and English, and until when each is worth sending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ulak.dispatch.model import UNDELIVERED, Contact
from ulak.dispatch.policy import Policy
from ulak.dispatch.world import Note, Occasion

_TEXTS: dict[str, dict[Occasion, str]] = {
    "tr": {
        "offer": "Yakınında yeni bir talep var! Kabul etmek için {time} var.",
        "taken": "Talep başka birine verildi; artık cevaplaman gerekmiyor.",
        "cancelled": "Talep iptal edildi.",
        "assigned": "{name} yola çıktı!",
        "nobody": "Maalesef şu an uygun öğrenci bulunamadı.",
    },
    "en": {
        "offer": "There is a new request near you! You have {time} to accept it.",
        "taken": "Somebody else has taken the request; you need not answer any more.",
        "cancelled": "The request was cancelled.",
        "assigned": "{name} is on the way!",
        "nobody": "Sorry, there is no suitable helper at the moment.",
    },
}


@dataclass(frozen=True, slots=True)
class Telling:
    """A message of the room, before it becomes one of notify's."""

    contact: Contact
    body: str
    language: str
    metadata: dict[str, Any] = field(default_factory=dict)
    expires_at: int | None = None
    continuation: str | None = None
    trace: str | None = None


def compose(note: Note, policy: Policy, to_text: Callable[[int], str]) -> Telling | None:
    """Return the message of a note; None when its helper is gone."""
    to_requester = note.occasion in {"assigned", "nobody"}
    somebody = note.task if to_requester else note.helper
    if somebody is None:
        return None
    language = somebody.language or policy.language
    offer = note.offer if note.occasion == "offer" else None
    return Telling(
        somebody.contact,
        _text(note, language),
        language,
        _metadata(note, to_text),
        expires_at=None if offer is None else offer.deadline_at,
        continuation=UNDELIVERED if offer and policy.tells_undelivered else None,
        trace=note.task.trace,
    )


def _text(note: Note, language: str) -> str:
    name = "" if note.helper is None else note.helper.name or note.helper.helper
    time = time_left(note.task.deadline_seconds, language)
    return _TEXTS[language][note.occasion].format(name=name, time=time)


def time_left(seconds: float, language: str) -> str:
    """Return whole minutes or, below one, seconds: rounded down, so it never promises more than there is."""
    minutes = int(seconds // 60)
    number = minutes or int(seconds)
    if language == "tr":
        return f"{number} dakikan" if minutes else f"{number} saniyen"
    unit = "minute" if minutes else "second"
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def _metadata(note: Note, to_text: Callable[[int], str]) -> dict[str, Any]:
    found: dict[str, Any] = {"occasion": note.occasion, "taskId": to_text(note.task.id)}
    if note.offer is not None:
        found["offerId"] = to_text(note.offer.id)
        if note.occasion == "offer":
            found |= {"category": note.task.category, "distanceMeters": note.offer.distance}
    if note.occasion == "assigned" and note.helper is not None:
        found["helperId"] = note.helper.helper
    return found
