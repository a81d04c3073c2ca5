"""The code in the README runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


CODE = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
SAID = ["Merhaba, Ayşe\n", "[120, 3628800, 2432902008176640000]\n"]


@pytest.mark.parametrize(("code", "said"), list(zip(CODE, SAID, strict=True)), ids=["jobs", "compute"])
def test_the_examples_of_the_readme_run(code, said, tmp_path):
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    environment = {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
