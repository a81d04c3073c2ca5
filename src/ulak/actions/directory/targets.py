"""Whether a target is one that its channel could ever reach: as a recipient of notify, and a number for telephones."""

from __future__ import annotations

import re

from ulak.channels import recipient

_PHONE = re.compile(r"\+?[1-9][0-9]{4,14}")
_PUNCTUATION = re.compile(r"[ ()./-]")


def problem_with(channel_type: str, target: str) -> str | None:
    """Return the problem with a target; None without one."""
    if channel_type in ("sms", "whatsapp") and not _PHONE.fullmatch(_PUNCTUATION.sub("", target)):
        return f"must be a telephone number for {channel_type}, of 5 to 15 digits"
    return recipient.problem_with(channel_type.upper(), target)
