"""Answers of the dispatch routes, as the OpenAPI shows them."""

from __future__ import annotations

import math
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ulak.clock import maybe_datetime, to_datetime
from ulak.dispatch.command import Pending, TaskView
from ulak.dispatch.fairness import Figures
from ulak.dispatch.model import Contact, Helper
from ulak.dispatch.nearby.geo import from_nano
from ulak.dispatch.policy import Policy
from ulak.dispatch.views import OpenOffer, SearchView, TaskStep
from ulak.ids import Ids


class _DispatchWire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ContactOut(_DispatchWire):
    notification_type: str
    recipient: str


class HelperOut(_DispatchWire):
    id: str
    name: str | None
    is_active: bool
    latitude: float | None
    longitude: float | None
    skills: list[str]
    language: str | None
    contact: ContactOut
    status: str = Field(description="IDLE, OFFERED, BUSY, PAUSED or INACTIVE.")
    position_at: datetime | None
    completed_this_month: int
    timeouts_in_row: int


class HelperPage(_DispatchWire):
    items: list[HelperOut]
    next: str | None = Field(description="Give it as `after` to get the next page; null at the end.")


class OpenOfferOut(_DispatchWire):
    offer_id: str
    task_id: str
    category: str
    description: str | None
    distance_meters: float
    deadline_at: datetime
    ttl_seconds: int


class OpenOffersOut(_DispatchWire):
    items: list[OpenOfferOut]
    next: str | None = None


class AssignmentOut(_DispatchWire):
    helper_id: str
    offer_id: str
    deadline_at: datetime
    ttl_seconds: int = Field(description="What is left of the deadline.")


class HelpTaskOut(_DispatchWire):
    id: str
    status: str = Field(description="SEARCHING, OFFERED, ASSIGNED, COMPLETED, CANCELLED or TIMED_OUT.")
    helper_id: str | None
    pending_assignments: list[AssignmentOut] = Field(description="Offers that are open.")
    task_candidates: list[str] = Field(description="Helpers who are still to be asked, in order.")
    requester_id: str
    category: str
    description: str | None
    latitude: float
    longitude: float
    radius_meters: float
    deadline_seconds: float
    width: int
    skills: list[str]
    language: str | None
    contact: ContactOut
    reason: str | None
    created_at: datetime
    assigned_at: datetime | None
    ended_at: datetime | None


class TaskStepOut(_DispatchWire):
    at: datetime
    what: str
    helper_id: str | None
    offer_id: str | None
    reason: str | None


class HelpTaskDetail(HelpTaskOut):
    timeline: list[TaskStepOut]


class HelpTaskPage(_DispatchWire):
    items: list[HelpTaskOut]
    next: str | None = Field(description="Give it as `after` to get the next page; null at the end.")


class RankedOut(_DispatchWire):
    place: int
    helper_id: str
    distance_meters: float
    completed_this_month: int
    timeouts_in_row: int
    reason: str = Field(description="By what it stands behind the one before: first, completed, distance or id.")


class ExcludedOut(_DispatchWire):
    helper_id: str
    reason: str = Field(description="inactive, busy, offered, paused, stale, skills or asked.")


class SearchOut(_DispatchWire):
    search: int
    at: datetime
    radius_meters: float
    found: int
    ranked: list[RankedOut]
    excluded: list[ExcludedOut]
    counts: dict[str, int] = Field(description="How many were left out, by reason.")


class ExplainOut(_DispatchWire):
    task_id: str
    searches: list[SearchOut]


class FairnessOut(_DispatchWire):
    helpers: int = Field(description="Active ones, over whom the figures are.")
    gini: float = Field(description="Of this month's completions: 0 all have the same, 1 one has all.")
    longest_wait_seconds: float
    silent_share: float
    assign_p50_seconds: float | None
    assign_p95_seconds: float | None
    acceptance_rate: float | None
    overdue_seconds: float


def _contact_out(contact: Contact) -> ContactOut:
    return ContactOut(notification_type=contact.notification_type, recipient=contact.recipient)


def helper_out(helper: Helper, policy: Policy, now: int) -> HelperOut:
    return HelperOut(
        id=helper.helper,
        name=helper.name,
        is_active=helper.active,
        latitude=None if helper.latitude is None else from_nano(helper.latitude),
        longitude=None if helper.longitude is None else from_nano(helper.longitude),
        skills=list(helper.skills),
        language=helper.language,
        contact=_contact_out(helper.contact),
        status=helper.status(policy.pause_after),
        position_at=maybe_datetime(helper.position_at),
        completed_this_month=helper.completed_in(policy.month(now)),
        timeouts_in_row=helper.timeouts,
    )


def _left(deadline_at: int, now: int) -> int:
    return max(math.ceil((deadline_at - now) / 1000), 0)


def open_offer_out(offer: OpenOffer, ids: Ids) -> OpenOfferOut:
    return OpenOfferOut(
        offer_id=ids.to_text(offer.id),
        task_id=ids.to_text(offer.task),
        category=offer.category,
        description=offer.description,
        distance_meters=offer.distance,
        deadline_at=to_datetime(offer.deadline_at),
        ttl_seconds=_left(offer.deadline_at, offer.now),
    )


def _assignment_out(pending: Pending, now: int, ids: Ids) -> AssignmentOut:
    return AssignmentOut(
        helper_id=pending.helper,
        offer_id=ids.to_text(pending.offer),
        deadline_at=to_datetime(pending.deadline_at),
        ttl_seconds=_left(pending.deadline_at, now),
    )


def help_task_out(view: TaskView, ids: Ids) -> HelpTaskOut:
    return HelpTaskOut(**_task_fields(view, ids))


def help_task_detail(view: TaskView, steps: list[TaskStep], ids: Ids) -> HelpTaskDetail:
    return HelpTaskDetail(**_task_fields(view, ids), timeline=[_step_out(step, ids) for step in steps])


def _task_fields(view: TaskView, ids: Ids) -> dict[str, object]:
    task = view.task
    return {
        "id": ids.to_text(task.id),
        "status": task.state.value,
        "helper_id": view.helper,
        "pending_assignments": [_assignment_out(one, view.now, ids) for one in view.pending],
        "task_candidates": list(view.waiting),
        "requester_id": task.requester,
        "category": task.category,
        "description": task.description,
        "latitude": from_nano(task.latitude),
        "longitude": from_nano(task.longitude),
        "radius_meters": task.radius,
        "deadline_seconds": task.deadline_seconds,
        "width": task.width,
        "skills": list(task.skills),
        "language": task.language,
        "contact": _contact_out(task.contact),
        "reason": task.reason,
        "created_at": to_datetime(task.created_at),
        "assigned_at": maybe_datetime(task.assigned_at),
        "ended_at": maybe_datetime(task.ended_at),
    }


def _step_out(step: TaskStep, ids: Ids) -> TaskStepOut:
    return TaskStepOut(
        at=to_datetime(step.at),
        what=step.what,
        helper_id=step.helper,
        offer_id=None if step.offer is None else ids.to_text(step.offer),
        reason=step.reason,
    )


def search_out(search: SearchView) -> SearchOut:
    return SearchOut(
        search=search.search,
        at=to_datetime(search.at),
        radius_meters=search.radius,
        found=search.found,
        ranked=[
            RankedOut(
                place=one.place,
                helper_id=one.helper,
                distance_meters=one.distance,
                completed_this_month=one.completed,
                timeouts_in_row=one.timeouts,
                reason=one.reason,
            )
            for one in search.ranked
        ],
        excluded=[ExcludedOut(helper_id=one.helper, reason=one.reason) for one in search.excluded],
        counts=search.counts,
    )


def fairness_out(figures: Figures) -> FairnessOut:
    return FairnessOut(**{name: getattr(figures, name) for name in FairnessOut.model_fields})
