"""Settings of what Ulak reports to other systems about its work."""

from __future__ import annotations

from pydantic import Field

from ulak.settings.section import Section


class Tracing(Section):
    """Traces. Metrics are always there, under /metrics."""

    traces: bool = Field(
        False, description="Follow jobs with OpenTelemetry spans, from a request to its webhook; needs ulak[otel]."
    )
