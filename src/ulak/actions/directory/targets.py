"""Whether a target is one that its channel could ever reach: refused when it is written, not when it is needed."""

from __future__ import annotations

import re

from ulak.actions.model import MAX_TARGET
from ulak.channels.ssrf import is_url

_CONTROL = re.compile(r"[\x00-\x20\x7f\u0085\u2028\u2029]")
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_ADDRESS = re.compile(rf"[^\s@<>,;:\"()\[\]\\]{{1,64}}@{_LABEL}(?:\.{_LABEL})*", re.UNICODE)
_PHONE = re.compile(r"\+?[1-9][0-9]{4,14}")
_PUNCTUATION = re.compile(r"[ ()./-]")


def problem_with(channel_type: str, target: str) -> str | None:
    """Return the problem with a target; None without one."""
    if not target.strip():
        return "must not be blank"
    if len(target) > MAX_TARGET:
        return f"must have at most {MAX_TARGET:,} characters"
    if channel_type in ("sms", "whatsapp"):
        plain = _PUNCTUATION.sub("", target)
        return None if _PHONE.fullmatch(plain) else f"must be a telephone number for {channel_type}, like +905551112233"
    if _CONTROL.search(target):
        return "must have no spaces and no control characters"
    if channel_type == "email":
        return None if _ADDRESS.fullmatch(target) and ".." not in target else "must be one e-mail address"
    if channel_type == "webhook":
        return None if is_url(target) else "must be an http or https URL without a password"
    return None
