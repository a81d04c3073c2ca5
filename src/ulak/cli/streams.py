"""Standard output and error of a command. A letter that they do not know, or a full disk, ends in no traceback."""

from __future__ import annotations

import contextlib
import io
import os
import sys


def take_any_text() -> None:
    """Write a letter that the terminal's encoding does not have by its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where it is closed
            stream.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Forget what could not be written; the interpreter would try it once more at its end, and complain."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
