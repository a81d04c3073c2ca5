"""The tools that check deploy/: on the path, or where `make tools` puts them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PLACES = os.pathsep.join([str(ROOT / ".tools"), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
LIMIT_SECONDS = 60
TO_GET = {"helm": "make tools", "promtool": "make tools", "systemd-analyze": "apt-get install systemd"}


def run(name, *words):
    """What the tool says, which is checked to be content; skips where it is not installed."""
    found = shutil.which(name, path=PLACES)
    if found is None:
        pytest.skip(f"{name} is not here; to get it: {TO_GET[name]}")
    done = subprocess.run([found, *words], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
