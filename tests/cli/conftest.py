"""Every test of a command has a folder of its own, and runs the command there."""

from __future__ import annotations

import json
import logging

import pytest
import structlog
from typer.testing import CliRunner

from ulak.cli import app


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _log_as_before():
    """A command sets the log of its process up, and here that is the tests' own."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def ulak():
    """Run a command here; its JSON if it prints JSON, its text otherwise. What it raises is raised."""

    def run(*words, stdin=None, **env):
        result = CliRunner().invoke(app, list(words), input=stdin, env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return json.loads(result.stdout) if "--json" in words else result.stdout

    return run
