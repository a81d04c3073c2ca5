"""Deadlines as the usual recipe has them: keys of Redis with a time to live, and its events when they expire."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = "redis-server"
BATCH = 1_000
PATIENCE_SECONDS = 20.0


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


def lateness(keys: int, per_second: int, seconds: float) -> list[float]:
    """Milliseconds from a key's end to its event, beside many that live on; one that does not come is as late as
    the patience with it."""
    number = round(per_second * seconds)
    with _running() as path, _connected(path) as commands, _connected(path) as events:
        _say(commands, ["CONFIG SET notify-keyspace-events Ex"])
        events.sendall(b"PSUBSCRIBE __keyevent@0__:expired\r\n")
        for start in range(0, keys, BATCH):
            _say(commands, [f"SET key:{one} x PX 86400000" for one in range(start, min(start + BATCH, keys))])
        begins = time.time() + 2.0
        due = {f"due:{one}": begins + one / per_second for one in range(number)}
        wanted = [f"SET {key} x PXAT {round(at * 1000)}" for key, at in due.items()]
        for start in range(0, number, BATCH):
            _say(commands, wanted[start : start + BATCH])
        late = _heard(events, due, begins + seconds + PATIENCE_SECONDS)
    return late + [PATIENCE_SECONDS * 1000] * (number - len(late))


def _heard(events: socket.socket, due: dict[str, float], until: float) -> list[float]:
    late: list[float] = []
    with events.makefile("rb") as lines:
        while len(late) < len(due) and (left := until - time.time()) > 0:
            events.settimeout(left)
            try:
                key = lines.readline().decode().strip()
            except TimeoutError:
                break
            if key in due:
                late.append((time.time() - due[key]) * 1000)
    return late


@contextmanager
def _running() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="bench-redis-") as folder:
        path = f"{folder}/socket"
        options = ["--port", "0", "--unixsocket", path, "--dir", folder, "--save", "", "--appendonly", "no"]
        server = subprocess.Popen([PROGRAM, *options], stdout=subprocess.DEVNULL)
        try:
            while not Path(path).exists():
                time.sleep(0.02)
            yield path
        finally:
            server.terminate()
            server.wait(10)


@contextmanager
def _connected(path: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        yield connection


def _say(connection: socket.socket, commands: list[str]) -> None:
    """All at once; each is answered by +OK."""
    connection.sendall("".join(f"{one}\r\n" for one in commands).encode())
    answers = b""
    while answers.count(b"\r\n") < len(commands):
        answers += connection.recv(65_536)
    if answers != b"+OK\r\n" * len(commands):
        raise RuntimeError(f"Redis said {answers[:200]!r}")
