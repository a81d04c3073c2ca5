"""The engine's options: how many workers, how much may wait, when to let go."""

from __future__ import annotations

from dataclasses import dataclass

from ulak.errors import Misconfigured

_MAX_NICE = 19


@dataclass(frozen=True, slots=True)
class EngineOptions:
    cpu_workers: int | None = None  # None: as many as affinity and cgroup allow
    cpu_nice: int = 5  # CPU workers stand back for the parent and the IO workers; 0: they compete with them as equals
    io_workers: int = 1
    io_threads: int = 32  # per IO worker
    script_root: str | None = None  # scripts outside it are refused; None: a script may lie anywhere
    spare_workers: int = 1  # ready to take over at once
    input_capacity: int | None = 100_000  # tasks that may wait per class; None: no bound
    when_full: str = "block"  # or "reject"
    max_retries: int = 3  # of plain callables, after a crash of their worker
    retry_seconds: float = 0.1  # before a failed task's first retry; later ones wait longer
    capture_bytes: int = 64 * 1024  # of stdout and of stderr, each
    kill_grace_seconds: float = 0.5  # between SIGTERM and SIGKILL
    stopped_seconds: float = 5.0  # a worker stopped (SIGSTOP) for longer is replaced
    recycle_tasks: int | None = None
    recycle_bytes: int | None = None
    recycle_seconds: float | None = None
    result_count: int = 100_000
    result_bytes: int = 64 * 1024 * 1024
    result_seconds: float = 3600.0
    spill_bytes: int = 1024 * 1024 * 1024  # on disk, before results are dropped; 0: drop at once
    spill_directory: str | None = None  # None: a temporary one
    drain_seconds: float = 30.0  # how long leaving `with Engine()` waits for unfinished tasks

    def __post_init__(self) -> None:
        if self.when_full not in ("block", "reject"):
            raise Misconfigured(f"compute.when_full is {self.when_full!r}; use 'block' or 'reject'")
        if not 0 <= self.cpu_nice <= _MAX_NICE:
            raise Misconfigured(f"compute.cpu_nice is {self.cpu_nice}; give 0 to {_MAX_NICE}")
        for name in ("cpu_workers", "io_workers", "io_threads", "input_capacity", "recycle_tasks"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise Misconfigured(f"compute.{name} is {value}; give 1 or more")
