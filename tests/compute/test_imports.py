"""The engine is a library of its own: importing it loads none of the service."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = ("fastapi", "pydantic", "aiohttp", "numpy", "cloudpickle", "joblib", "ray", "rich", "psycopg", "jinja2")


@pytest.mark.parametrize("module", ["ulak.compute", "ulak.compute.worker.forkserver"])
def test_nothing_heavy_is_loaded(module):
    program = f"import sys, {module}\nprint(*sorted(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "PYTHONPATH": "src"},
    )  # fmt: skip
    assert done.stdout.strip() == ""
