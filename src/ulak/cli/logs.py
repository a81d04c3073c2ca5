"""The log: one setup for the whole process, called by a door. Everything that is written passes the mask."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from ulak.masking import mask_event
from ulak.settings import Log


def set_up(settings: Log) -> None:
    """Send our log and that of the libraries to standard error, masked, as JSON or as text."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _name_consumer,
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(settings, shared))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    # Its start and stop are ours to tell, and its requests are counted, not logged.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def _name_consumer(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Which of the consumers wrote a line."""
    with contextlib.suppress(RuntimeError):  # a thread without an event loop
        task = asyncio.current_task()
        if task is not None and task.get_name().startswith("notification-consumer"):
            event["consumer"] = task.get_name()
    return event


def set_up_quietly(settings: Log) -> None:
    """For a command that prints its answer: only what went wrong is logged."""
    set_up(settings.model_copy(update={"level": "warning"}))


def _formatter(settings: Log, shared: list[Processor]) -> logging.Formatter:
    drawing: Any = structlog.processors.JSONRenderer() if settings.format == "json" else _console()
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            mask_event,
            drawing,
        ],
    )


def _console() -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
