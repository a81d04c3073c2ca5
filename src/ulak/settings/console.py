"""Settings of the console."""

from __future__ import annotations

from pydantic import Field

from ulak.settings.section import Section


class Console(Section):
    """Pages in the browser, beside the API."""

    enabled: bool = Field(True, description="Serve the console at /console/; / leads there.")
