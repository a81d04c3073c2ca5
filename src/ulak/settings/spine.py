"""Settings of the spine: bounds, leases, retries, and how long finished work is kept."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from ulak.settings.section import Section


class Spine(Section):
    """Jobs of every kind. A kind may have its own bound and retry policy; these hold where it has none."""

    capacity: int = Field(
        1_000_000,
        ge=1,
        le=1_000_000_000,
        description="Most live jobs of one kind, those that are put off or stand in line included.",
    )
    lease_seconds: float = Field(
        15, ge=1, le=3600, description="A process that is silent for this long loses its claimed jobs to others."
    )
    max_attempts: int = Field(20, ge=1, le=1000, description="Started attempts before a job is a dead letter.")
    retry_first_seconds: float = Field(1, gt=0, le=86_400, description="Delay after the first failed attempt.")
    retry_factor: float = Field(2, ge=1, le=10, description="Each later delay is this many times longer.")
    retry_cap_seconds: float = Field(3600, gt=0, le=604_800, description="No delay is longer than this, jitter apart.")
    retry_jitter: float = Field(0.25, ge=0, le=1, description="Up to this part of the delay is added at random.")
    poison_deaths: int = Field(
        5, ge=1, le=100, description="A job that was running at this many process deaths is a dead letter."
    )
    history_days: float = Field(7, gt=0, le=3650, description="How long finished jobs can be looked up.")
    events_days: float = Field(7, gt=0, le=3650, description="How long events can be read.")
    followed_days: float = Field(
        30, gt=0, le=3650, description="How long events are kept for a follower that is behind; then it loses some."
    )
    dead_days: float = Field(30, gt=0, le=3650, description="How long dead letters wait for a person.")
    min_free_mb: int = Field(64, ge=0, le=1_048_576, description="With less free disk than this, new work is refused.")
    ballast_mb: int = Field(
        16, ge=0, le=65_536, description="Disk space held back, and freed when the disk is full so that work can end."
    )

    @model_validator(mode="after")
    def _cap_is_not_below_first(self) -> Self:
        if self.retry_cap_seconds < self.retry_first_seconds:
            raise ValueError("retry_cap_seconds is below retry_first_seconds; raise the cap or lower the first delay")
        return self
