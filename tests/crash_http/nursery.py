"""Starts `ulak` processes quickly: one process has loaded everything and forks; each child is a real `ulak`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Nursery:
    """The parent's side. Children die by SIGKILL, sent straight to their process id."""

    def __init__(self, log: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ULAK_")}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.crash_http.nursery", str(log)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, *words: str) -> int:
        """The process id of `ulak WORDS…`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        try:
            self._process.communicate(timeout=30)  # closes its input, upon which it ends
        except subprocess.TimeoutExpired:  # why the run fails is worth more than this
            self._process.kill()


def kill(pid: int) -> None:
    """Until it is gone: a process that is dying still holds its port and its file."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        while True:
            os.kill(pid, 0)
            time.sleep(0.001)


def _serve_forks(log: str) -> None:
    import ulak.cli.process
    import ulak.cli.serving  # noqa: F401 - loaded once, for all

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _become(json.loads(line), log)
        print(pid, flush=True)


def _become(words: list[str], log: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["ulak", *words]
    from ulak.cli import main

    try:
        main()
    finally:
        os._exit(0)


if __name__ == "__main__":
    _serve_forks(sys.argv[1])
