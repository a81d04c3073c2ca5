"""Settings of the log."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ulak.settings.section import Section


class Log(Section):
    """Logging: its level and its form."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least serious level to log.")
    format: Literal["json", "console"] = Field(
        "console", description="One JSON object per line for machines, or aligned text for people."
    )
