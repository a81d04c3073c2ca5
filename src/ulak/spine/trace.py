"""Traces: a job's place in one (W3C Trace Context), and the seam to the library that records its spans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Concatenate, ParamSpec, TypeVar

from ulak.spine.job import Lease, Row
from ulak.spine.outcome import Outcome
from ulak.spine.store import Tx

P = ParamSpec("P")
R = TypeVar("R")

HEADERS = ("traceparent", "tracestate")


def headers_of(trace: str | None) -> dict[str, str]:
    """The headers that carry a trace on to others; none without one.

    A job keeps its trace as one text: a traceparent and, behind a space, its tracestate if there is one.
    """
    return {} if trace is None else dict(zip(HEADERS, trace.split(" ", 1), strict=False))


def trace_id_of(trace: str | None) -> str | None:
    """The 32 digits by which a tracing backend finds the trace."""
    return None if trace is None else trace.split("-", 2)[1]


def with_trace(unit: Callable[Concatenate[Tx, P], R], trace: str | None) -> Callable[Concatenate[Tx, P], R]:
    """A unit of work whose new jobs belong to a trace, unless they have another."""
    if trace is None:
        return unit

    def traced(tx: Tx, /, *args: P.args, **kwargs: P.kwargs) -> R:
        tx.trace = trace
        try:
            return unit(tx, *args, **kwargs)
        finally:
            tx.trace = None

    return traced


class AttemptSpan:
    """The span of one attempt; `trace` is passed on by its handler."""

    trace: str | None = None

    def end(self, outcome: Outcome | None) -> None:
        """Without an outcome it was cut off."""


class Tracer:
    """Draws spans. This one draws none: it is that of a Ulak that was not asked for traces."""

    enabled = False

    def stamped(self, row: Row) -> Row:
        """A new job with its trace: it continues the caller's, or begins one."""
        return row

    def stamped_all(self, rows: list[Row]) -> list[Row]:
        """New jobs of one call. Those of a kind share a span."""
        return rows

    def requested(self, name: str) -> str | None:
        """The trace of a request whose jobs are made inside its transaction."""
        return None

    def current(self) -> str | None:
        """The trace of the code that asks."""
        return None

    def within(self, headers: Mapping[str, str]) -> AbstractContextManager[None]:
        """Continue the trace that came with a request; headers that are not sound are left aside, as W3C has it."""
        return nullcontext()

    def attempt(self, lease: Lease) -> AbstractContextManager[AttemptSpan]:
        """A span around a handler, which finds it as the current one."""
        return nullcontext(AttemptSpan())

    def flush(self, seconds: float) -> None:
        """Before the process ends: let the last spans go."""
