"""An engine for the tests of a file, scripts to write, gates to hold tasks at, and patience without sleeping."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from time import monotonic

import pytest

from ulak.compute import Engine, EngineOptions

PATIENCE_SECONDS = 30


def eventually(condition, seconds=PATIENCE_SECONDS):
    """Look until the condition holds; a deadline only against hanging for ever."""
    until, pause = monotonic() + seconds, threading.Event()
    while not (value := condition()):
        assert monotonic() < until, "it did not happen in time"
        pause.wait(0.002)
    return value


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Gate:
    """A task waits at a named pipe until the test opens it."""

    def __init__(self, directory):
        self.started, self.path = str(directory / "started"), str(directory / "gate")
        os.mkfifo(self.path)

    @property
    def has_started(self):
        started = Path(self.started)
        return started.exists() and started.stat().st_size > 0

    def wait(self):
        eventually(lambda: self.has_started)
        return int(eventually(Path(self.started).read_text))  # empty while another attempt writes it anew

    def open(self):
        os.close(os.open(self.path, os.O_WRONLY))


@pytest.fixture
def gate(tmp_path):
    return Gate(tmp_path)


@pytest.fixture
def gates(tmp_path):
    def make(name):
        directory = tmp_path / name
        directory.mkdir()
        return Gate(directory)

    return make


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture
def script(root):
    def write(name, text):
        (root / name).write_text(text)
        return name

    return write


@pytest.fixture(scope="module")
def engine(root):
    with Engine(EngineOptions(cpu_workers=2, io_threads=4, script_root=str(root), retry_seconds=0.001)) as engine:
        yield engine


@pytest.fixture
def make_engine(root):
    made = []

    def make(**changes):
        changes = {"cpu_workers": 1, "script_root": str(root), "retry_seconds": 0.001, **changes}
        made.append(Engine(EngineOptions(**changes)))
        return made[-1]

    yield make
    for engine in made:
        engine.close(0)
