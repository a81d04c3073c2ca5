"""The callers' own ids of tasks."""

from __future__ import annotations

from tests.plans.measure import EVERY, FEW, NEW, Parameters

FILL = [f"INSERT INTO compute_task SELECT 't' || n, n {EVERY}"]
STATEMENTS: dict[str, Parameters] = {
    "find_tasks": {"ids": [f"t{one}" for one in FEW]},
    "keep_tasks": {"task_id": [f"t{one}" for one in NEW], "job": NEW},
    "name_task": {"job": 10_000},
    "prune_tasks": {"before": 1000, "n": 10},
}
