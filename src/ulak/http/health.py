"""Is the process alive, can it take work, and what does it count: /healthz, /readyz, /metrics."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from ulak.app import Ulak
from ulak.errors import Unavailable
from ulak.http.caller import Caller, Needs
from ulak.http.gauges import Sampler
from ulak.http.guard import Guard
from ulak.http.meter import Meter
from ulak.http.view import View
from ulak.spine.store import answers


class Health(View):
    status: str


def router(ulak: Ulak, guard: Guard, meter: Meter, sampler: Sampler) -> APIRouter:
    routes = APIRouter(tags=["health"])
    registry = CollectorRegistry()
    for collector in (ulak.telemetry, sampler, meter):
        registry.register(collector)

    @routes.get("/healthz", summary="Is the process alive?")
    async def healthz() -> Health:
        """503 when the store is lost for good, and the process must be started again. Needs no key."""
        if not guard.stopping and ulak.loops.failure is not None:
            raise Unavailable(f"the store is lost: {ulak.loops.failure}; the process must be started again")
        return Health(status="ok")

    @routes.get("/readyz", summary="Can it take work?")
    async def readyz() -> Health:
        """503 while stopping, while the store is lost or does not answer, or while the disk is short. Needs no key."""
        if guard.stopping:
            raise Unavailable("stopping")
        if ulak.loops.failure is not None:
            raise Unavailable(f"the store is lost: {ulak.loops.failure}")
        if not answers(ulak.store):
            raise Unavailable(f"the store has not answered for {ulak.store.silent_seconds():.0f} s")
        if ulak.store.ledger.closed_because is not None:
            raise Unavailable(ulak.store.ledger.closed_because)
        return Health(status="ready")

    @routes.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
    async def metrics(_: Annotated[Caller, Depends(Needs("metrics"))]) -> Response:
        await sampler.refresh()
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return routes
