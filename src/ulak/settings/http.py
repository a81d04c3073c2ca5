"""Settings of the HTTP door."""

from __future__ import annotations

from pydantic import Field

from ulak.settings.section import Section


class Http(Section):
    """The HTTP API, the metrics and the health checks."""

    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address to listen on. Loopback needs no API keys; any other address does.",
    )
    require_keys: bool = Field(
        False,
        description="Ask for API keys on loopback too. Needed behind a proxy on this machine, "
        "since all its requests come from loopback.",
    )
    port: int = Field(8025, ge=0, le=65535, description="Port to listen on; 0 lets the system choose one.")
    public_url: str = Field(
        "",
        pattern=r"^(https?://[^\s/?#]+(/[^\s?#]*[^\s/?#])?)?$",
        description="Where people reach this door, for links that they are sent; empty is its own address.",
    )
    max_body_bytes: int = Field(
        1_048_576, ge=1024, le=1_073_741_824, description="A request with a larger body is answered with 413."
    )
    max_batch: int = Field(1000, ge=1, le=100_000, description="Most items in one batch request.")
    rate_per_key_per_second: float = Field(
        0, ge=0, le=1_000_000, description="Requests per second that one API key may make; 0 sets no limit."
    )
    max_concurrent_requests: int = Field(
        5000,
        ge=1,
        le=1_000_000,
        description="Requests in progress at once that hand in work, and as many others; further ones are answered "
        "with 503.",
    )
