"""Real `ulak` processes: started, awaited by what they print, and never left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = [sys.executable, "-m", "ulak"]
PATIENCE_SECONDS = 60


def environment(**extra):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ULAK_")}
    return clean | {"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"} | extra


def command(folder, *words, check=True, **env):
    """Run a command to its end."""
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


class Process:
    """A process that lives until it is told to stop."""

    def __init__(self, folder, *words, **env):
        self._process = subprocess.Popen(
            [*COMMAND, *words], cwd=folder, env=environment(**env), stderr=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid
        self.said: list[str] = []

    def wait_for(self, text):
        """The first line that has the text; a process that does not print it in time is killed."""
        limit = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        limit.start()
        try:
            for line in self._process.stderr:
                self.said.append(line)
                if text in line:
                    return line
        finally:
            limit.cancel()
        raise AssertionError(f"ended without {text!r}: {''.join(self.said)}")

    def stop(self, sign=signal.SIGTERM):
        self._process.send_signal(sign)
        return self.end()

    def end(self):
        _, rest = self._process.communicate(timeout=PATIENCE_SECONDS)
        self.said.append(rest)
        return self._process.returncode

    @property
    def text(self):
        return "".join(self.said)

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def running(folder, *words, until, **env):
    process = Process(folder, *words, **env)
    try:
        process.greeting = process.wait_for(until)
        yield process
    finally:
        process.kill()


@contextlib.contextmanager
def server(folder, *words, **env):
    """`ulak serve` on a free port; `.address` is where it listens."""
    with running(folder, "serve", *words, until="Ulak serves", ULAK_HTTP__PORT="0", **env) as process:
        process.address = process.greeting.split()[2]
        process.wait_for("demo crash" if "--demo" in words else "ulak status")
        yield process
