"""Settings of the console."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator

from ulak.settings.section import Section


class Console(Section):
    """Pages in the browser, beside the API."""

    enabled: bool = Field(True, description="Serve the console at /console/; / leads there.")
    time_zone: str = Field(
        "UTC", min_length=1, max_length=100, description="Zone of the times on its pages, for example Europe/Istanbul."
    )

    outline: str = Field(
        "",
        max_length=4096,
        description="A GeoJSON file whose lines and areas lie under dispatch's map; 1 MiB and 5,000 points at most.",
    )

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"there is no time zone {value!r:.50}; use a name like Europe/Istanbul or UTC") from None
        return value
