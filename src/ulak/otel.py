"""Spans by OpenTelemetry, for the spine's seam `trace`. Imported only where `telemetry.traces` is on."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points

from opentelemetry import context as contexts
from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.trace import ProxyTracerProvider, Span, SpanContext, SpanKind, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ulak.log import get_logger
from ulak.spine.job import Lease, Row
from ulak.spine.outcome import WORDS, Dead, Outcome, Retry
from ulak.spine.trace import HEADERS, AttemptSpan, Tracer, headers_of

log = get_logger("ulak.otel")

MAX_HEADER = 512  # characters of a tracestate, as W3C asks to pass on at least; a longer one is left behind
_w3c = TraceContextTextMapPropagator()


class OtelTracer(Tracer):
    """Spans named by kind: PRODUCER where a job is created, CONSUMER for each attempt. They tell of no person."""

    enabled = True

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._tracer = api.get_tracer("ulak", tracer_provider=provider)

    def stamped(self, row: Row) -> Row:
        return row._replace(trace=self._created(row.kind, 1))

    def stamped_all(self, rows: list[Row]) -> list[Row]:
        traces = {kind: self._created(kind, number) for kind, number in Counter(row.kind for row in rows).items()}
        return [row._replace(trace=traces[row.kind]) for row in rows]

    def requested(self, name: str) -> str | None:
        return self._created(name, 1)

    def _created(self, name: str, number: int) -> str | None:
        attributes = _attributes(name, "create")
        if number > 1:
            attributes["messaging.batch.message_count"] = number
        span = self._tracer.start_span(name, kind=SpanKind.PRODUCER, attributes=attributes)
        span.end()
        return _text(span.get_span_context())

    def current(self) -> str | None:
        return _text(api.get_current_span().get_span_context())

    @contextmanager
    def within(self, headers: Mapping[str, str]) -> Iterator[None]:
        if api.get_current_span().get_span_context().is_valid:  # somebody's instrumentation has read them already
            yield
            return
        token = contexts.attach(_w3c.extract(headers, Context()))
        try:
            yield
        finally:
            contexts.detach(token)

    @contextmanager
    def attempt(self, lease: Lease) -> Iterator[AttemptSpan]:
        attributes = _attributes(lease.kind, "process")
        attributes |= {"messaging.message.id": str(lease.id), "ulak.job.attempt": lease.attempt}
        # Nothing of the task's own context: it may be that of whoever happened to start it.
        parent = _w3c.extract(headers_of(lease.trace), Context())
        span = self._tracer.start_span(lease.kind, parent, SpanKind.CONSUMER, attributes)
        token = contexts.attach(api.set_span_in_context(span, Context()))
        try:
            yield _OtelSpan(span)
        finally:
            contexts.detach(token)

    def flush(self, seconds: float) -> None:
        flush = getattr(self._provider or api.get_tracer_provider(), "force_flush", None)
        if flush is not None:  # an SDK has it
            flush(round(seconds * 1000))


class _OtelSpan(AttemptSpan):
    def __init__(self, span: Span) -> None:
        self._span = span
        self.trace = _text(span.get_span_context())

    def end(self, outcome: Outcome | None) -> None:
        self._span.set_attribute("ulak.job.outcome", "cut_off" if outcome is None else WORDS[type(outcome)])
        why = _failure(outcome)
        if why is not None:  # in a word: what a handler says of its failure may name a person
            self._span.set_attribute("error.type", why)
            self._span.set_status(StatusCode.ERROR, why)
        self._span.end()


def _failure(outcome: Outcome | None) -> str | None:
    match outcome:
        case None:
            return "cut_off"
        case Retry():
            return outcome.code or "retried"
        case Dead():
            return outcome.code or outcome.error_class
        case _:
            return None


def _attributes(name: str, operation: str) -> dict[str, str | int]:
    return {
        "messaging.system": "ulak",
        "messaging.destination.name": name,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


def _text(context: SpanContext) -> str | None:
    """As a job keeps it; None where there is no trace."""
    if not context.is_valid:
        return None
    carrier: dict[str, str] = {}
    _w3c.inject(carrier, api.set_span_in_context(api.NonRecordingSpan(context), Context()))
    return " ".join(text for name in HEADERS if 0 < len(text := carrier.get(name, "")) <= MAX_HEADER)


# The specification has one word for what comes in two packages; OTEL_EXPORTER_OTLP_PROTOCOL chooses between them.
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


def set_up_from_environment() -> None:
    """For a process of our own: an SDK by the OTEL_* variables, unless somebody has set one up already."""
    if not isinstance(api.get_tracer_provider(), ProxyTracerProvider):
        return
    found = {one.name: one for one in entry_points(group="opentelemetry_traces_exporter")}
    wanted = [name for name in _exporter_names(found) if name in found]
    if not wanted:
        log.warning(
            "traces_not_exported",
            note="traces are passed on, but no span is kept: install opentelemetry-sdk and an exporter, "
            "and name it in OTEL_TRACES_EXPORTER",
        )
        return
    from opentelemetry.sdk.trace import TracerProvider as Provider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if "service.name=" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        os.environ.setdefault("OTEL_SERVICE_NAME", "ulak")
    provider = Provider()
    for name in wanted:
        provider.add_span_processor(BatchSpanProcessor(found[name].load()()))
    api.set_tracer_provider(provider)


def _exporter_names(found: Mapping[str, object]) -> Iterator[str]:
    """OTLP if nothing is said, as the specification has it."""
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    otlp = [name for spoken, name in _OTLP.items() if name in found and protocol in (None, spoken)]
    for name in (os.environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(","):
        yield from otlp[:1] if name.strip() == "otlp" else [name.strip()]
