"""The code in the README runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_readme_example_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    environment = {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Merhaba, Ayşe\n" in done.stdout
