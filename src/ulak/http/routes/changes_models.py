"""Bodies of the changes room's routes."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class SyncIn(BaseModel):
    """Nothing, or the name of a folder in the registry's inbox, as the command line makes one."""

    model_config = ConfigDict(extra="forbid")

    inbox: str | None = Field(None, pattern=r"^[0-9a-f]{32}$")


class ApproveIn(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"ceiling": 500}]})

    ceiling: int = Field(
        ge=0, le=1_000_000_000, strict=True, description="More held-back changes than this are not published."
    )


class BatchIn(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"identifiers": ["0123456789"]}]})

    identifiers: list[str] = Field(max_length=10_000)


class WatchIn(BaseModel):
    """Which records, which of their fields (none: all), and whom to tell: a webhook, or a job of a kind."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"keys": ["0123456789"], "webhook": "https://example.org/hook"}]},
    )

    keys: list[str] = Field(default_factory=list, max_length=10_000)
    fields: list[str] = Field(default_factory=list, max_length=100)
    webhook: str | None = Field(None, max_length=2048)
    kind: str | None = Field(None, min_length=1, max_length=100)
