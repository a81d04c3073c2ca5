"""Whether a recipient is one that its type could ever reach: refused when it is written, not when it is needed."""

from __future__ import annotations

import re
from functools import lru_cache

from ulak.channels.letter import mail_address
from ulak.channels.ssrf import is_url
from ulak.errors import Permanent

MAX_RECIPIENT = 2048
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@lru_cache(maxsize=4096)
def problem_with(notification_type: str | None, recipient: str | None) -> str | None:
    """Return why this type can't reach that recipient, if so. The same ones are asked about again and again."""
    if not recipient or not recipient.strip():
        return "is required and must not be blank"
    if len(recipient) > MAX_RECIPIENT or _CONTROL.search(recipient):
        return f"must have at most {MAX_RECIPIENT} characters and no control characters"
    if notification_type == "EMAIL" and not _is_address(recipient):
        return "must be one e-mail address for EMAIL, without a name or brackets"
    if _is_reached_by_url(notification_type, recipient) and not is_url(recipient):
        return f"must be an http or https URL for {notification_type}, without a user name or password"
    return None


def _is_reached_by_url(notification_type: str | None, recipient: str) -> bool:
    """PUSH and SLACK have recipients without a URL too: tokens, channels and people."""
    return notification_type == "WEBHOOK" or (notification_type in ("PUSH", "SLACK") and "://" in recipient)


def _is_address(text: str) -> bool:
    try:
        mail_address(text)
    except Permanent:
        return False
    return True
