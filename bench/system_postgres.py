"""The system's own PostgreSQL, where it is installed: it has extensions that the wheel lacks."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

PROGRAMS = Path("/usr/lib/postgresql")
USER = "postgres"


@contextmanager
def running() -> Iterator[str | None]:
    """The address of a server in a temporary folder; None where there is none to start."""
    found = sorted(PROGRAMS.glob("*/bin/postgres"))
    if not found:
        yield None
        return
    programs, user = found[-1].parent, USER if os.getuid() == 0 else None  # it does not run as root
    with tempfile.TemporaryDirectory(prefix="bench-spg-") as folder:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        data = Path(folder) / "data"
        _run(user, programs / "initdb", "-D", str(data), "-U", USER, "-A", "trust")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
        _run(user, programs / "pg_ctl", "-w", "-D", str(data), "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql:///postgres?host={folder}&user={USER}"
        finally:
            _run(user, programs / "pg_ctl", "-D", str(data), "-m", "immediate", "stop")


def has(address: str, extension: str) -> bool:
    with psycopg.connect(address) as connection:
        wanted = "SELECT FROM pg_available_extensions WHERE name = %s"
        return connection.execute(wanted, (extension,)).fetchone() is not None


def _run(user: str | None, program: Path, *arguments: str) -> None:
    subprocess.run([str(program), *arguments], check=True, user=user, stdout=subprocess.DEVNULL, cwd="/")
