"""The code in the README runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
JOBS, COMPUTE = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
ENVIRONMENT = {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}


def run(script, folder):
    done = subprocess.run(
        [sys.executable, script], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_job_of_the_readme_is_accepted_by_one_process_and_run_by_another(tmp_path):
    (tmp_path / "shop.py").write_text(JOBS, encoding="utf-8")
    assert run("shop.py", tmp_path) == ""  # whoever only enqueues has nothing to tell
    worker = subprocess.Popen(
        [sys.executable, "-m", "ulak", "worker", "--app", "shop:ulak"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert worker.stdout is not None
        assert any(line == "Merhaba, Ayşe\n" for line in worker.stdout)
    finally:
        worker.terminate()
        worker.communicate(timeout=60)


def test_the_engine_of_the_readme_computes(tmp_path):
    (tmp_path / "engine.py").write_text(COMPUTE, encoding="utf-8")
    assert "[120, 3628800, 2432902008176640000]\n" in run("engine.py", tmp_path)
