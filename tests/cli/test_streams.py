"""A command whose output can't be written, or whose file can't be used, says so in a line, without a traceback."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.processes import COMMAND, PATIENCE_SECONDS, command, environment

FULL = Path("/dev/full")


def write_to(target, folder, *words):
    with target.open("wb") as output:
        return subprocess.run(
            [*COMMAND, *words],
            cwd=folder,
            env=environment(),
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
@pytest.mark.parametrize("words", [["config", "show"], ["config", "default"]])
def test_output_that_can_not_be_written_is_told_in_a_line(folder, words):
    done = write_to(FULL, folder, *words)
    assert done.returncode == 1
    assert done.stderr == "ulak: No space left on device; check the path, its rights and the disk\n"


def test_a_file_that_can_not_be_made_is_told_by_its_name(folder):
    (folder / "taken").write_text("")
    done = command(folder, "changes", "generate", "taken", check=False)
    assert done.returncode == 1
    assert done.stderr == "ulak: taken: File exists; check the path, its rights and the disk\n"


def test_a_letter_that_the_terminal_does_not_know_is_shown_by_its_number(folder):
    (folder / "ulak.toml").write_text('[channels.email]\nsender = "Şule <s@example.org>"\n', encoding="utf-8")
    done = command(folder, "config", "show", PYTHONIOENCODING="ascii")
    assert r"\u015eule <s@example.org>" in done.stdout


ODD_RESULTS = {
    "a key that is a pair": ("{(1, 2): 3}", "{(1, 2): 3}"),
    "not a number": ("float('nan')", "nan"),
    "half of a letter": ("'\\ud800'", "\ud800"),
    "an object": ("{'a': object}", {"a": "<class 'object'>"}),
}


@pytest.mark.parametrize("odd", ODD_RESULTS)
def test_a_result_that_json_can_not_hold_is_printed_as_python_writes_it(folder, odd):
    written, expected = ODD_RESULTS[odd]
    (folder / "odd.py").write_text(f"print('\\ud800')\nresult = {written}\n")
    done = command(folder, "compute", "run", "odd.py")
    assert json.loads(done.stdout)["data"] == expected
