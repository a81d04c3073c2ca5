"""Which release this is."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

from tests.cli.processes import command


def test_the_release_is_told_by_the_command_and_by_the_module(folder, ulak):
    assert ulak("--version") == f"ulak {version('ulak')}\n"
    assert command(folder, "--version").stdout == f"ulak {version('ulak')}\n"


def test_the_release_is_told_without_loading_the_commands():
    program = (
        "import sys\nsys.argv = ['ulak', '--version']\nfrom ulak.__main__ import main\nmain()\n"
        "print(len(sys.modules), *sorted({'typer', 'pydantic', 'fastapi', 'ulak.cli', 'ulak.app'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    release, loaded = done.stdout.splitlines()
    assert release == f"ulak {version('ulak')}"
    modules, *heavy = loaded.split()
    assert heavy == []
    assert int(modules) < 300
