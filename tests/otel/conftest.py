"""An Ulak on each kind of store whose spans, drawn by the real SDK, stay in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from tests.channels.conftest import receiver  # noqa: F401 - a fixture
from tests.flow.stores import STORES, address_of
from ulak import Ulak
from ulak.otel import OtelTracer
from ulak.settings import Settings

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"


class Spans:
    """What the Ulaks of a test have drawn."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracer = OtelTracer(self.provider)

    def follow(self, ulak: Ulak) -> Ulak:
        """Before it is opened. A process of its own would take the provider that it has set up."""
        ulak.telemetry.tracer = self.tracer
        return ulak

    def of(self, name: str, kind: SpanKind = SpanKind.CONSUMER) -> list[ReadableSpan]:
        found = [span for span in self._kept.get_finished_spans() if (span.name, span.kind) == (name, kind)]
        return sorted(found, key=lambda span: span.start_time or 0)

    def one(self, name: str, kind: SpanKind = SpanKind.CONSUMER) -> ReadableSpan:
        (span,) = self.of(name, kind)
        return span


def trace_of(span: ReadableSpan) -> str:
    return f"{span.context.trace_id:032x}"


def id_of(span: ReadableSpan) -> str:
    return f"{span.context.span_id:016x}"


def parent_of(span: ReadableSpan) -> str | None:
    return None if span.parent is None else f"{span.parent.span_id:016x}"


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture(params=STORES)
def address(request, tmp_path):
    """The address of an empty store, of each kind in turn."""
    with contextlib.contextmanager(address_of)(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def make(address, clock, spans) -> Callable[..., Ulak]:
    """An Ulak with traces on the store and the clock of this test; settings by section."""

    def build(*, traces: bool = True, **sections: Any) -> Ulak:
        settings = Settings(store=address, **sections)
        ulak = Ulak(address, settings=settings, clock=clock)
        return spans.follow(ulak) if traces else ulak

    return build
