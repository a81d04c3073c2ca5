"""Privacy of errors: a channel's own error must not show the texts of its message, whoever wrote the channel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ulak import codec
from ulak.errors import Failure
from ulak.masking import HIDDEN
from ulak.notify.model import Notification

_MIN_TEXT = 3  # a shorter one is in every sentence
_MAX_LOOKED_AT = 100_000  # characters of a message: looking through all of a large one would hold up everybody
_WORD = re.compile(r"\w[\w.@+-]*\w")


def without_private(error: Exception, notification: Notification) -> Exception:
    """The same error without the message's texts; the like of it where its class does not let them go."""
    said = _said(error)
    if said is None:
        return error  # it can't say anything
    # Our own words about a failure name the destination; words of anybody else's may be anything.
    hidden = _without_texts(said, notification)
    if not isinstance(error, Failure):
        hidden = _without_words(hidden, notification)
    if hidden == said:
        return error
    error.args = (hidden,)
    return error if _said(error) == hidden else RuntimeError(f"{type(error).__name__}: {hidden}")


def _said(error: Exception) -> str | None:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - its class may fail even at this
        return None


def _without_texts(said: str, notification: Notification) -> str:
    """Whole texts and lines of them, as they are and as Python and JSON write them."""
    lines = {line.strip() for text in _texts(notification) for line in [text, *text.splitlines()]}
    forms = {form for line in lines for form in (line, repr(line)[1:-1], codec.encode_text(line)[1:-1])}
    for form in sorted(forms, key=len, reverse=True):
        if _MIN_TEXT <= len(form) <= len(said) and form in said:
            said = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", HIDDEN, said)
    return said


def _without_words(said: str, notification: Notification) -> str:
    """Names, numbers and codes: words of the message with a capital or a digit in them."""
    private = {word for text in _texts(notification) for word in _WORD.findall(text) if _is_telling(word)}
    return _WORD.sub(lambda found: HIDDEN if found[0] in private else found[0], said)


def _is_telling(word: str) -> bool:
    return len(word) >= _MIN_TEXT and any(letter.isupper() or letter.isdigit() for letter in word)


def _texts(notification: Notification) -> Iterator[str]:
    """All that people wrote. Of a URL only what follows its host, which may be named."""
    recipient = notification.recipient
    _, is_url, rest = recipient.partition("://")
    yield rest.partition("/")[2] if is_url else recipient
    for given in (notification.subject, notification.body, notification.html):
        if given:
            yield given[:_MAX_LOOKED_AT]
    for values in (notification.metadata, notification.data, notification.target_meta):
        yield from _leaves(values)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)[:_MAX_LOOKED_AT]
