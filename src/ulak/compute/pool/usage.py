"""The usage of a process of ours, as Linux reports it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def usage_of(pid: int | None) -> dict[str, float | None]:
    """Seconds of CPU since its start, and the memory that it holds now."""
    cpu = memory = None
    with contextlib.suppress(OSError, ValueError, IndexError):
        words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        cpu = round((int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"), 2)
        memory = int(words[21]) * os.sysconf("SC_PAGE_SIZE")
    return {"cpu_seconds": cpu, "memory_bytes": memory}
