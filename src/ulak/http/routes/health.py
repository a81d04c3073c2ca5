"""Is the process alive, can it take work, and what does it count: /healthz, /readyz, /metrics."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from pydantic import Field

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.errors import Unavailable
from ulak.http.caller import Needs
from ulak.http.gauges import StoreGauges
from ulak.http.guard import RequestGuard
from ulak.http.meter import Meter
from ulak.http.routes.view import View
from ulak.spine.store import answers


class Health(View):
    status: str


class Readiness(Health):
    """`reasons` say what is wrong though work is taken."""

    reasons: list[str] = Field(default_factory=list)


def router(ulak: Ulak, guard: RequestGuard, meter: Meter, gauges: StoreGauges) -> APIRouter:
    routes = APIRouter(tags=["health"])
    registry = CollectorRegistry()
    for collector in (ulak.telemetry, gauges, meter):
        registry.register(collector)

    @routes.get("/healthz", summary="Is the process alive?")
    async def healthz() -> Health:
        """503 when the store is lost for good, and the process must be started again. Needs no key."""
        if not guard.stopping and ulak.loops.failure is not None:
            raise Unavailable(f"the store is lost: {ulak.loops.failure}; the process must be started again")
        return Health(status="ok")

    @routes.get("/readyz", summary="Can it take work?")
    async def readyz() -> Readiness:
        """503 while stopping, while the store is lost or does not answer, or while the disk is short. Needs no key."""
        if guard.stopping:
            raise Unavailable("stopping")
        if ulak.loops.failure is not None:
            raise Unavailable(f"the store is lost: {ulak.loops.failure}")
        if not answers(ulak.store):
            raise Unavailable(f"the store has not answered for {ulak.store.stalled_seconds():.0f} s")
        if ulak.store.capacity.closed_because is not None:
            raise Unavailable(ulak.store.capacity.closed_because)
        return Readiness(status="ready", reasons=_reasons(ulak))

    @routes.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
    async def metrics(_: Annotated[Caller, Depends(Needs("metrics"))]) -> Response:
        await ulak.sampler.refresh()
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return routes


def _reasons(ulak: Ulak) -> list[str]:
    return [
        *ulak.loops.gate.full.reasons(),
        *ulak.bus.reasons(),
        *(reason for room in ulak.rooms for reason in room.reasons()),
    ]
