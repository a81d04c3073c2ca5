"""What is in the repository must work on any machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MACHINE_PATH = re.compile(r"(?<![\w.)}/*-])/(?:home|root|work|opt|Users|tmp)/[\w.-]+")
# Written in two parts, so that this file does not hold what it looks for.
REGISTRY = re.compile(
    "|".join(["pypi" + r"\.org", "python" + r"hosted\.org", "--(?:extra-)?index" + "-url", "--find" + "-links"])
)


def tracked_files():
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return []
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [path for path in map(ROOT.joinpath, listed.split("\0")) if path.is_file()]


def mentions(pattern):
    for path in tracked_files():
        text = path.read_bytes().decode("utf-8", "replace")
        for found in pattern.finditer(text):
            yield f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]}"


def test_no_tracked_file_names_a_path_of_one_machine():
    assert list(mentions(MACHINE_PATH)) == []


def test_no_tracked_file_names_a_package_registry():
    assert list(mentions(REGISTRY)) == []


@pytest.mark.parametrize("name", ["lock.txt", "bench.txt"])
def test_pins_are_exact_and_nothing_else(name):
    lines = (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []


def test_the_project_itself_is_not_pinned():
    assert "ulak==" not in (ROOT / "requirements/lock.txt").read_text(encoding="utf-8")
