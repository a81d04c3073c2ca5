"""How many CPUs this process may really use: affinity and cgroup limits, not the size of the machine."""

from __future__ import annotations

import math
import os
from pathlib import Path

_CGROUP_ROOT = Path("/sys/fs/cgroup")


def usable_cpus() -> int:
    limits = [len(os.sched_getaffinity(0)), *filter(None, (_cgroup_v2(_CGROUP_ROOT), _cgroup_v1(_CGROUP_ROOT)))]
    return max(1, min(limits))


def _cgroup_v2(root: Path) -> int | None:
    """`cpu.max` holds "quota period", or "max period" when there is no limit."""
    parts = _read(root / "cpu.max").split()
    return _whole_cpus(parts[0], parts[1]) if len(parts) == 2 else None


def _cgroup_v1(root: Path) -> int | None:
    return _whole_cpus(_read(root / "cpu" / "cpu.cfs_quota_us"), _read(root / "cpu" / "cpu.cfs_period_us"))


def _whole_cpus(quota: str, period: str) -> int | None:
    try:
        share = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return max(1, math.floor(share)) if share > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
