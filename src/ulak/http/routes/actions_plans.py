"""Plans over HTTP: make, version, import and export them, and walk through one on a virtual clock."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request, Response

from ulak.actions.plans.document import PlanForm
from ulak.app import Ulak
from ulak.errors import Invalid
from ulak.http.routes.actions_models import (
    After,
    Document,
    Limit,
    May,
    Number,
    NumberFilter,
    PageOf,
    PlanOut,
    SimulationIn,
    Timeline,
    TimelineEntry,
    following,
    plan_out,
    schema_for,
)

YAML = "application/yaml"
_YAML_FILE = {
    "content": {
        YAML: {
            "schema": {
                "type": "object",
                "required": ["plans"],
                "additionalProperties": False,
                "properties": {"plans": {"type": "array", "items": {"type": "object"}}},
            }
        }
    }
}
_YAML_BODY = {"requestBody": {"required": True, "content": {YAML: {"schema": {"type": "string"}}}}}


class YamlResponse(Response):
    media_type = YAML


def _text_of(body: bytes) -> str:
    """YAML as it is, or as a JSON string, which is how commands send it."""
    return msgspec.json.decode(body, type=str) if body.startswith(b'"') else body.decode()


def plans_router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/actions/plans", tags=["actions: plans"])

    @router.post("", status_code=201, summary="Make a plan", openapi_extra=schema_for(PlanForm))
    async def create(caller: May, body: Document) -> PlanOut:
        return plan_out(await ulak.actions.plans.create(body, who=caller.name))

    @router.get("", summary="List plans, each with its newest version")
    async def list_plans(_: May, after: After = 0, limit: Limit = 50) -> PageOf[PlanOut]:
        items = [plan_out(one) for one in await ulak.actions.plans.list(after=after, limit=limit)]
        return PageOf[PlanOut](items=items, next=following(items, limit))

    @router.post("/import", summary="Put all plans of a YAML file, or none", openapi_extra=_YAML_BODY)
    async def import_yaml(caller: May, request: Request) -> PageOf[PlanOut]:
        """A plan with an `id` gets a new version, or is made with it. An error names its line."""
        try:
            text = _text_of(await request.body())
        except (UnicodeDecodeError, msgspec.DecodeError):
            raise Invalid("the file is not UTF-8", fields=[("", "must be UTF-8")]) from None
        found = await ulak.actions.plans.import_yaml(text, who=caller.name)
        return PageOf[PlanOut](items=[plan_out(one) for one in found], next=None)

    @router.get("/export", summary="All plans as YAML", response_class=YamlResponse, responses={200: _YAML_FILE})
    async def export_yaml(_: May) -> YamlResponse:
        return YamlResponse(await ulak.actions.plans.export_yaml())

    @router.get("/{identifier}", summary="One plan, in its newest version or another")
    async def read(_: May, identifier: Number, version: NumberFilter = None) -> PlanOut:
        return plan_out(await ulak.actions.plans.get(identifier, version))

    @router.put(
        "/{identifier}",
        summary="Make a new version, or a plan with this id",
        openapi_extra=schema_for(PlanForm),
        responses={201: {"model": PlanOut, "description": "There was no such plan; now there is."}},
    )
    async def put(caller: May, identifier: Number, body: Document, response: Response) -> PlanOut:
        """Routes stay. Runs that have begun keep their version."""
        fresh, planned = await ulak.actions.plans.put(identifier, body, who=caller.name)
        response.status_code = 201 if fresh else 200
        return plan_out(planned)

    @router.patch("/{identifier}", summary="Change a plan", openapi_extra=schema_for(PlanForm))
    async def amend(caller: May, identifier: Number, body: Document) -> PlanOut:
        """Its name and weight stay in the version; steps make a new one."""
        return plan_out(await ulak.actions.plans.amend(identifier, body, who=caller.name))

    @router.delete("/{identifier}", status_code=204, summary="Delete a plan and its routes")
    async def delete(caller: May, identifier: Number) -> None:
        """Runs that have begun go on."""
        await ulak.actions.plans.delete(identifier, who=caller.name)

    return router


def simulate_router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/actions/simulate", tags=["actions: plans"])

    @router.post("", summary="Walk through a plan on a virtual clock")
    async def simulate(_: May, body: SimulationIn) -> Timeline:
        """Simulate a plan: its messages, their recipients and times, with reasons. Nothing is sent or kept."""
        found = await ulak.actions.plans.simulate(
            body.action_plan_id, body.variables, device_id=body.device_id, at=body.at
        )
        return Timeline(timeline=[TimelineEntry(**entry) for entry in found])

    return router
