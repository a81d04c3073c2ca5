"""Which release this is."""

from __future__ import annotations

from importlib.metadata import version

from tests.cli.processes import command


def test_the_release_is_told_by_the_command_and_by_the_module(folder, ulak):
    assert ulak("--version") == f"ulak {version('ulak')}\n"
    assert command(folder, "--version").stdout == f"ulak {version('ulak')}\n"
