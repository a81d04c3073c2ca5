"""Settings of the compute room: its worker processes and where its scripts are."""

from __future__ import annotations

from pydantic import Field

from ulak.settings.section import Section


class Compute(Section):
    """Running scripts on worker processes."""

    script_root: str = Field("scripts", min_length=1, description="Scripts outside this folder are refused.")
    cpu_workers: int = Field(0, ge=0, le=1024, description="Processes for CPU-bound tasks; 0 is one per usable core.")
    io_workers: int = Field(1, ge=1, le=1024, description="Processes for IO-bound tasks.")
    io_threads: int = Field(32, ge=1, le=1024, description="Threads in each process for IO-bound tasks.")
    ray_address: str = Field(
        "", max_length=1000, description="A Ray cluster to run on (auto, or its address); empty is this machine."
    )
    capacity: int = Field(
        100_000, ge=1, le=1_000_000_000, description="Most active durable tasks of each class: ready or running."
    )
    timeout_seconds: float = Field(3600, gt=0, le=604_800, description="Longest time for one run of a task.")
    recycle_tasks: int = Field(
        0, ge=0, le=1_000_000_000, description="Replace a worker after so many tasks; 0 is never."
    )
    recycle_mb: int = Field(
        0, ge=0, le=1_048_576, description="Replace a worker that has grown beyond this; 0 is never."
    )
    recycle_seconds: float = Field(0, ge=0, le=31_536_000, description="Replace a worker of this age; 0 is never.")
