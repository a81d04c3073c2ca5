"""Ulak's own log lines, written as the host wants them. Our commands are hosts too: see `cli/logs.py`."""

from __future__ import annotations

import logging
from typing import Any

import structlog

from ulak.masking import mask_event


class Logger:
    """Events by name and fields: through structlog where the host has configured it, else through `logging`.

    The host is asked at each line: it may configure structlog after Ulak was imported, or started.
    """

    def __init__(self, name: str) -> None:
        self._structured = structlog.get_logger(name)
        self._standard = _StandardLogger(name)

    def __getattr__(self, method: str) -> Any:
        # The method is handed out and not called here: structlog then finds the author of a line, and not this module.
        return getattr(self._structured if structlog.is_configured() else self._standard, method)


class _StandardLogger:
    """The standard library, which prints warnings and errors on standard error unless the host says otherwise."""

    def __init__(self, name: str) -> None:
        self._name = name

    def info(self, event: str, **fields: Any) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write(logging.ERROR, event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        self._write(logging.ERROR, event, {"exc_info": True, **fields})

    def critical(self, event: str, **fields: Any) -> None:
        self._write(logging.CRITICAL, event, fields)

    def _write(self, level: int, event: str, fields: dict[str, Any]) -> None:
        logger = logging.getLogger(self._name)
        if logger.isEnabledFor(level):
            logger.log(level, _text(event, fields), stacklevel=3)


def _text(event: str, fields: dict[str, Any]) -> str:
    """The event, its fields, and below them a traceback: as text, because the mask goes over that too."""
    masked = dict(mask_event(None, "", structlog.processors.format_exc_info(None, "", fields)))
    traceback = masked.pop("exception", None)
    line = " ".join([event, *(f"{name}={value!r}" for name, value in masked.items())])
    return line if traceback is None else f"{line}\n{traceback}"


def get_logger(name: str) -> Logger:
    """A logger of this name: `ulak` or one below it."""
    return Logger(name)
