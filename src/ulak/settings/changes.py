"""Settings of the changes room: where lists come from, how long their changes are kept, and what is too much."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from ulak.settings.section import Section, also

_NAME = r"^[a-z][a-z0-9_-]{0,39}$"
_RESERVED = frozenset({"status", "gib", "einvoice", "edespatch"})
# What stands beside a record's fields in answers; aliases have a form of their own.
_TAKEN = frozenset(
    [
        "identifier",
        "changeType",
        "changedAt",
        "before",
        "changedFields",
        "cursor",
        "aliasChanges",
        "reason",
        "cause",
        "contentHash",
        "aliases",
    ]
)
_FORMS = ("http://", "https://", "file://")
_SPAN = re.compile(r"(?:(\d+)\.)?(\d{1,2}):(\d\d):(\d\d)(?:\.\d+)?", re.ASCII)
GIB_TEST_SITE = "https://merkeztest.gib.gov.tr/EFaturaMerkez"


def _is_address(value: str) -> str:
    if not value.startswith(_FORMS):
        raise ValueError(f"it begins with one of {', '.join(_FORMS)}")
    return value


class Gib(Section):
    """GİB's lists of e-invoice and e-despatch users."""

    pk_url: str = Field(
        f"{GIB_TEST_SITE}/newUserPkListxml.zip",
        description="ZIP of the PK list (http, https, file).",
        json_schema_extra=also("GibEndpoints__PkListUrl"),
    )
    gb_url: str = Field(
        f"{GIB_TEST_SITE}/newUserGbListxml.zip",
        description="ZIP of the GB list (http, https, file).",
        json_schema_extra=also("GibEndpoints__GbListUrl"),
    )
    cron: str = Field("", description="When to sync (cron, in Europe/Istanbul); empty: only on request.")

    _addresses = field_validator("pk_url", "gb_url")(_is_address)


class ListSource(Section):
    """A list of your own: one file, one feed of the same name."""

    name: str = Field(pattern=_NAME, description="Name of the registry and of its feed.")
    format: Literal["csv", "jsonl", "xml"] = Field(description="Form of the list.")
    url: str = Field(description="Its address: http, https or file.")
    compression: Literal["none", "gzip", "zip"] = Field("none", description="Compression of the file.")
    record: str = Field("", description="XML: the element of a record.")
    key: str = Field(min_length=1, description="Column, member or path that identifies a record.")
    fields: dict[str, str] = Field(min_length=1, description="Published name = where it stands in the source.")
    delimiter: str = Field(",", min_length=1, max_length=1, description="CSV: between two columns.")
    encoding: str = Field("utf-8", description="Encoding of the text.")
    cron: str = Field("", description="When to sync (cron, in Europe/Istanbul); empty: only on request.")

    _address = field_validator("url")(_is_address)

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, value: str) -> str:
        try:
            "".encode(value)
        except LookupError:
            raise ValueError("Python knows no such encoding") from None
        return value.lower().replace("_", "-")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.name in _RESERVED:
            raise ValueError(f"the name {self.name} is taken; choose another")
        if taken := sorted(_TAKEN & set(self.fields)):
            raise ValueError(f"no field can be published as {taken[0]}: answers have it already; choose another")
        if self.format == "xml" and not self.record:
            raise ValueError("an XML list needs record, the element of a record")
        return self


class Announcement(Section):
    """The recipients of a sync's outcome."""

    url: str = Field(description="Where to post.")
    format: Literal["json", "slack"] = Field("json", description='The whole event, or {"text": …} as Slack takes it.')
    events: tuple[str, ...] = Field((), description="Only these events; empty: all.")


class Rule(Section):
    """Changes that become jobs."""

    feed: str = Field(description="Feed whose changes are looked at.")
    change: Literal["added", "modified", "removed", ""] = Field("", description="Only this change; empty: all.")
    fields: tuple[str, ...] = Field((), description="Modified: only if one of these fields differs; empty: any.")
    kind: str = Field(min_length=1, max_length=100, description="Job kind that is enqueued for each change.")


class Changes(Section):
    """Full lists in, a change feed out."""

    folder: str = Field("changes", min_length=1, description="Where downloads, caches and archives are kept.")
    retention_days: int = Field(
        30,
        ge=1,
        le=365,
        description="How long changes can be read.",
        json_schema_extra=also("GibEndpoints__ChangeRetentionDays"),
    )
    removal_percent: float = Field(
        10,
        ge=0,
        le=100,
        description="Removals above this percentage of the published records are withheld.",
        json_schema_extra=also("GibEndpoints__MaxAllowedRemovalPercent"),
    )
    removal_floor: int = Field(0, ge=0, le=1_000_000_000, description="Up to this many removals are never withheld.")
    guard_floor: int = Field(
        100, ge=0, le=1_000_000_000, description="With fewer records than this the next three guards are off."
    )
    modified_percent: float = Field(
        50, ge=0, le=100, description="A list that modifies more per cent of the records is quarantined."
    )
    alias_loss_percent: float = Field(
        10,
        ge=0,
        le=100,
        description="A list in which users who stay lose more per cent of their aliases is quarantined.",
    )
    count_percent: float = Field(
        50, ge=0, le=100, description="A list that changes the number of records by more per cent is quarantined."
    )
    accept_after: int = Field(
        0, ge=0, le=1000, description="A quarantine ends by itself after this many equal lists; 0: never."
    )
    batch_size: int = Field(
        25_000,
        ge=100,
        le=1_000_000,
        description="Records that are sorted in memory at once.",
        json_schema_extra=also("GibEndpoints__BatchSize"),
    )
    download_timeout_seconds: float = Field(
        600,
        gt=0,
        le=86_400,
        description="Longest time for a download.",
        json_schema_extra=also("GibEndpoints__DownloadTimeout"),
    )
    compare: Literal["fields", "seed"] = Field(
        "fields", description="A record is modified if any published field differs, or (seed) its content_hash."
    )
    archive_days: int = Field(30, ge=1, le=3650, description="How long archives are kept; the newest always is.")
    archive_url: str = Field("", description="s3://bucket/prefix to keep archives there too; needs ulak[s3].")
    stale_hours: float = Field(
        24, gt=0, le=8760, description="/readyz gives a reason when a list with a cron is older."
    )
    gib: Gib = Gib()
    registry: tuple[ListSource, ...] = Field((), description="Lists of your own.")
    announce: tuple[Announcement, ...] = Field((), description="Addresses that are told how a sync ended.")
    rule: tuple[Rule, ...] = Field((), description="Changes that become jobs.")

    @field_validator("download_timeout_seconds", mode="before")
    @classmethod
    def _as_seconds(cls, value: Any) -> Any:
        """A time span as .NET writes it, 00:10:00, is read too."""
        found = _SPAN.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            return value
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [one.name for one in self.registry]
        if len(set(names)) < len(names):
            raise ValueError("two lists of changes.registry have the same name")
        return self
