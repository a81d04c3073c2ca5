"""Settings of commands that ask a running server."""

from __future__ import annotations

from pydantic import Field, SecretStr

from ulak.settings.section import Section


class Client(Section):
    """Which server the commands ask. Without an address they find the one beside them, or use the store directly."""

    url: str = Field("", description='Address of a server to ask, for example "https://ulak.example.com".')
    key: SecretStr = Field(SecretStr(""), description="API key for that server.")
    timeout_seconds: float = Field(30, gt=0, le=3600, description="Longest wait for an answer.")
