"""Runs one measurement in a fresh interpreter, so that no side warms, slows or outlives another."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

CONTEXT = multiprocessing.get_context("spawn")


class MeasurementFailed(Exception):
    """A side broke or ran out of time; the message carries its traceback."""


def measure(target: Callable[..., Any], *arguments: Any, timeout_seconds: float = 90) -> Any:
    """Return target(*arguments), run in a process (and process group) of its own."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    with tempfile.NamedTemporaryFile(prefix="bench-") as said:
        process = CONTEXT.Process(target=_answer, args=(sender, said.name, target, arguments))
        process.start()
        sender.close()
        try:
            return _receive(receiver, target, timeout_seconds)
        except MeasurementFailed as failure:
            raise MeasurementFailed(f"{failure}\n{_last_lines(said.name)}") from None
        finally:
            end(process)


def _answer(sender: Connection, said: str, target: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.setsid()  # a group of its own: whatever the side starts can be ended with it
    os.dup2(os.open(said, os.O_WRONLY | os.O_APPEND), sys.stderr.fileno())  # shown only when the side fails
    try:
        sender.send((True, target(*arguments)))
    except Exception:  # noqa: BLE001 - whatever a side raises is its answer
        sender.send((False, traceback.format_exc()))


def _receive(receiver: Connection, target: Callable[..., Any], timeout_seconds: float) -> Any:
    name = f"{target.__module__}.{target.__name__}"
    if not receiver.poll(timeout_seconds):
        raise MeasurementFailed(f"{name} gave no answer within {timeout_seconds:.0f} s")
    try:
        succeeded, value = receiver.recv()
    except EOFError:
        raise MeasurementFailed(f"{name} died without an answer") from None
    if not succeeded:
        raise MeasurementFailed(f"{name} failed:\n{value}")
    return value


def _last_lines(path: str, number: int = 15) -> str:
    return "\n".join(Path(path).read_text(errors="replace").splitlines()[-number:])


def end(process: BaseProcess) -> None:
    """Wait briefly, then end the process and everything in its group."""
    process.join(3)
    assert process.pid is not None
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
