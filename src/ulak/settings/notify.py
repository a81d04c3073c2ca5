"""Settings of the notify room."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ulak.settings.section import Section, also


class Notify(Section):
    """Accepting notifications and delivering them."""

    capacity: int = Field(
        1000,
        ge=1,
        le=1_000_000_000,
        description="Most active notifications of each type: ready or being delivered; what is put off is not one.",
        json_schema_extra=also("NOTIFICATION_QUEUE_CAPACITY"),
    )
    admission: Literal["block", "reject", "wait"] = Field(
        "wait",
        description="At the bound, a producer waits up to wait_seconds and is then refused (wait), is refused at once "
        "(reject), or waits without limit (block; over HTTP 30 seconds).",
    )
    wait_seconds: float = Field(5, ge=0, le=3600, description='Longest wait for a free place with admission = "wait".')
    idempotency_hours: float = Field(
        24, gt=0, le=8760, description="How long a repeated Idempotency-Key gets the first answer again."
    )
    inbox_days: float = Field(90, gt=0, le=36_500, description="How long in-app notifications stay in the inbox.")
    templates: str = Field("", description="Folder with templates of your own; empty uses the built-in ones alone.")
    language: str = Field(
        "en", pattern="^[a-z]{2}$", description="Language of a template when the one asked for is not there."
    )
