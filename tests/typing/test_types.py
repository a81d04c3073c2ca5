"""The public types under mypy and pyright: what is right passes, and what is wrong is found, line by line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIMIT_SECONDS = 240


def mypy(tmp_path):
    """Lines with a mistake, by file."""
    words = ["--strict", "--config-file=", "--cache-dir", str(tmp_path), "--no-error-summary", "--hide-error-context"]
    words += ["--follow-imports=silent", "--enable-error-code=comparison-overlap"]
    done = run([sys.executable, "-m", "mypy", *words, str(HERE / "right.py"), str(HERE / "wrong.py")])
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return re.findall(r"^.*?(\w+)\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE)


def pyright(tmp_path):
    settings = {
        "extraPaths": [str(ROOT / "src")],
        "typeCheckingMode": "strict",
        "reportUnusedExpression": "none",
        "reportUnusedFunction": "none",
        "pythonVersion": "3.11",
    }
    for name in ("right.py", "wrong.py"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    words = ["--outputjson", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    done = run([sys.executable, "-m", "pyright", *words])
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [
        (Path(one["file"]).stem, str(one["range"]["start"]["line"] + 1), one["message"])
        for one in found
        if one["severity"] == "error" and Path(one["file"]).stem in {"right", "wrong"}
    ]


def run(words):
    return subprocess.run(
        words, cwd=ROOT, env=_environment(), capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )


def _environment():
    return os.environ | {"MYPYPATH": str(ROOT / "src"), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


@pytest.mark.slow
@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_type_checker_accepts_what_is_right_and_finds_every_mistake(check, tmp_path):
    found = check(tmp_path)
    assert [one for one in found if one[0] == "right"] == []
    wrong = (HERE / "wrong.py").read_text(encoding="utf-8").splitlines()
    expected = {number for number, line in enumerate(wrong, 1) if line.endswith("# wrong")}
    assert {int(line) for file, line, _ in found if file == "wrong"} == expected, found
