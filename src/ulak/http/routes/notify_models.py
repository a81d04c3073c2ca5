"""Answers of the notify routes, as the OpenAPI shows them."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ulak.channels.endpoint import Endpoint
from ulak.http.routes.view import Instant, detail_view
from ulak.ids import Ids
from ulak.masking import HIDDEN, mask_body, mask_recipient, mask_text, mask_value
from ulak.notify.attempts import EndpointAttempt
from ulak.notify.inbox import InboxItem
from ulak.notify.records import NotificationView
from ulak.spine.job import Entry


class Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Step(Wire):
    at: datetime
    what: str
    attempt: int
    detail: dict[str, Any] = Field(default_factory=dict)


class NotificationOut(Wire):
    id: str
    job_id: str = Field(description="Of the job that delivers it, for /api/jobs.")
    notification_type: str
    status: str
    priority: str
    recipient: str
    subject: str | None
    body: str
    metadata: dict[str, Any]
    reference: str | None = Field(description="The sender's own name for it.")
    attempts: int
    uncertain_attempts: int
    created_at: datetime
    send_at: datetime | None
    settled_at: datetime | None
    expires_at: datetime | None
    detail: Any
    timeline: list[Step]


class Page(Wire):
    items: list[NotificationOut]
    next_before: str | None = Field(description="Give it as `before` to get the next page; null at the end.")


class StatusOut(Wire):
    id: str
    status: str


class InboxItemOut(Wire):
    id: str
    subject: str | None
    body: str
    metadata: dict[str, Any]
    created_at: datetime
    delivered_at: datetime
    read_at: datetime | None


class InboxOut(Wire):
    unread: int
    items: list[InboxItemOut]
    next_before: str | None


class MarkedOut(Wire):
    marked: int


class Asked(Wire):
    model_config = ConfigDict(extra="forbid")


class EndpointIn(Asked):
    url: str = Field(max_length=2048)
    secret: str | None = Field(None, description="whsec_… or whsk_…; left out, one is made.", max_length=200)
    require_secret: bool = Field(
        False, strict=True, description="Send nothing before the endpoint has a secret that you give; none is made."
    )


class EndpointUrl(Asked):
    """An endpoint by its full address, or by the `id` that the list gives, since there addresses are masked."""

    url: str | None = Field(None, max_length=2048)
    id: str | None = Field(None, max_length=16)


class EndpointOut(Wire):
    id: str = Field(description="Names it where its address is masked.")
    url: str
    secrets: int = Field(description="How many secrets it has; without one the installation's own key signs.")
    require_secret: bool
    disabled_at: datetime | None
    reason: str | None
    attempts: int = Field(description="Of the last 24 hours.")
    success_rate: float | None = Field(description="Of these attempts, 0 to 1; null without one.")


class TemplateOut(Wire):
    name: str
    languages: list[str]


class TemplatePage(Wire):
    items: list[TemplateOut]
    next: str | None = None  # there are few


class TemplatePreviewIn(Asked):
    variables: dict[str, Any] = Field(default_factory=dict, examples=[{"name": "Ayşe"}])


class TemplatePreview(Wire):
    """`error` says why a language can't be filled in with these variables."""

    language: str
    subject: str | None = None
    body: str | None = None
    html: str | None = None
    error: str | None = None


class EndpointMade(Wire):
    url: str
    secret: str | None = Field(description="Shown this once; keep it.")


class SecretMade(Wire):
    secret: str = Field(description="Shown this once; keep it.")


class AttemptOut(Wire):
    id: str = Field(description="Of the notification.")
    attempt: int
    at: datetime
    milliseconds: int
    status: int | None = Field(description="What the receiver answered; null when it did not.")
    code: str | None = Field(description="Why it failed; null when it did not.")


class AttemptsOut(Wire):
    items: list[AttemptOut]
    next: str | None


class ReplayIn(EndpointUrl):
    since: Instant


class ReplayOut(Wire):
    resent: int


class PublicKey(Wire):
    public_key: str = Field(description="whpk_…: verifies webhooks to endpoints that have no secret of their own.")


def notification_out(view: NotificationView, *, reveal: bool) -> NotificationOut:
    """Return a notification as the wire shows it; recipient and texts are masked, unless the caller may see them."""
    subject = view.subject
    return NotificationOut(
        id=view.id,
        job_id=str(view.job),
        notification_type=view.notification_type,
        status=view.status,
        priority=view.priority,
        recipient=view.recipient if reveal else mask_recipient(view.recipient),
        subject=subject if reveal or subject is None else mask_body(subject),
        body=view.body if reveal else mask_body(view.body),
        metadata=view.metadata if reveal else dict.fromkeys(map(mask_text, view.metadata), HIDDEN),
        reference=view.reference if reveal or view.reference is None else mask_text(view.reference),
        attempts=view.attempts,
        uncertain_attempts=view.uncertain_attempts,
        created_at=view.created_at,
        send_at=view.send_at,
        settled_at=view.settled_at,
        expires_at=view.expires_at,
        detail=view.detail if reveal else _masked_detail(view.detail),
        timeline=[_step(entry, reveal=reveal) for entry in view.timeline],
    )


def _masked_detail(detail: Any) -> Any:
    """The provider's id stays whole: it names the message to the provider, and nobody else by it."""
    masked = mask_value("", detail)
    if isinstance(detail, dict) and isinstance(detail.get("providerId"), str):
        return masked | {"providerId": detail["providerId"]}
    return masked


def _step(entry: Entry, *, reveal: bool) -> Step:
    """Return a step of the timeline; the provider's words are masked."""
    return Step(at=entry.at, what=entry.word, attempt=entry.attempt, detail=detail_view(entry.detail, reveal=reveal))


def attempt_out(attempt: EndpointAttempt, ids: Ids) -> AttemptOut:
    return AttemptOut(
        id=ids.to_text(attempt.job),
        attempt=attempt.number,
        at=attempt.at,
        milliseconds=attempt.milliseconds,
        status=attempt.status,
        code=attempt.code,
    )


def inbox_item_out(item: InboxItem, ids: Ids) -> InboxItemOut:
    return InboxItemOut(
        id=ids.to_text(item.id),
        subject=item.subject,
        body=item.body,
        metadata=item.metadata,
        created_at=item.created_at,
        delivered_at=item.delivered_at,
        read_at=item.read_at,
    )


def endpoint_id(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:16]


def endpoint_out(endpoint: Endpoint, rate: tuple[int, int], *, reveal: bool) -> EndpointOut:
    attempts, failed = rate
    return EndpointOut(
        id=endpoint_id(endpoint.url),
        attempts=attempts,
        success_rate=(attempts - failed) / attempts if attempts else None,
        url=endpoint.url if reveal else mask_recipient(endpoint.url),
        secrets=len(endpoint.secrets),
        require_secret=endpoint.requires_secret,
        disabled_at=endpoint.disabled_at,
        reason=endpoint.reason,
    )
