"""Settings of the worker: how much it runs at once and how it stops."""

from __future__ import annotations

from pydantic import Field

from ulak.settings.section import Section


class Worker(Section):
    """The worker of one process."""

    concurrency: int = Field(3000, ge=1, le=100_000, description="Jobs of all kinds that run at once in one process.")
    threads: int = Field(8, ge=1, le=1024, description="Threads for handlers of the thread lane.")
    stop_grace_seconds: float = Field(
        30, ge=0, le=3600, description="How long a stop waits for running jobs before it cancels them."
    )
    stop_cancel_seconds: float = Field(
        10, ge=0, le=3600, description="How long a stop waits for cancelled jobs before it leaves without them."
    )
