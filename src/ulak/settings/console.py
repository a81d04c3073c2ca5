"""Settings of the console."""

from __future__ import annotations

from pydantic import Field

from ulak.settings.section import Section, TimeZone


class Console(Section):
    """Pages in the browser, beside the API."""

    enabled: bool = Field(True, description="Serve the console at /console/; / leads there.")
    time_zone: TimeZone = Field(
        "UTC", min_length=1, max_length=100, description="Zone of the times on its pages, for example Europe/Istanbul."
    )
    outline: str = Field(
        "",
        max_length=4096,
        description="A GeoJSON file whose lines and areas lie under dispatch's map; 1 MiB and 5,000 points at most.",
    )
