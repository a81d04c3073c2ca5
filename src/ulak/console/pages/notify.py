"""Pages of notify: messages, webhook endpoints with their answers, templates in both languages."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ulak.console.format import instant
from ulak.console.menu import OVERVIEW
from ulak.console.page import Action, Column, ConsolePage, DialogField, Drawing, Empty, FactList, Found, Table, field_of
from ulak.console.timeline import draw_timeline

MESSAGES, MESSAGE, ENDPOINTS = "/api/notifications?limit=25", "/api/notifications/{id}", "/api/webhook-endpoints"
STATUSES = ("WAITING", "SCHEDULED", "SENDING", "RETRYING", "DELIVERED", "FAILED", "HELD", "CANCELLED", "EXPIRED")
RESEND = Action(
    "Send again",
    "POST",
    "/api/notifications/{id}/resend",
    title="Send 1 message again?",
    follows="Under its own id, so that a receiver that has it already can tell.",
    go=True,
    when=lambda row: row["status"] in {"FAILED", "DEAD", "HELD"},
)
CANCEL = Action(
    "Cancel message",
    "POST",
    "/api/notifications/{id}/cancel",
    title="Cancel 1 message?",
    follows="It is not sent. This can’t be undone.",
    risk=True,
    way_out="Keep it",
    when=lambda row: row["status"] in {"WAITING", "SCHEDULED", "RETRYING"},
)
NAMED = '{"id": "{id}"}'
ENDPOINT_ACTIONS = (
    Action("Send a test", "POST", f"{ENDPOINTS}/test", body=NAMED, title="Send 1 test event to {url}?",
           follows="Signed as any other.", go=True),
    Action("Resend failed", "POST", f"{ENDPOINTS}/replay", body=NAMED, title="Send what failed to {url} again?",
           follows="Everything that died on its way there since then, each under its own id.",
           entries=(DialogField("since", "Since", "", "instant"),)),
    Action("Rotate secret", "POST", f"{ENDPOINTS}/rotate", body=NAMED, title="Make a new secret for {url}?",
           follows="It is shown once. The old one signs beside it for a day, so that the receiver can change over.",
           shows="secret", when=lambda row: not row["requireSecret"]),
    Action("Enable", "POST", f"{ENDPOINTS}/enable", body=NAMED, title="Send to {url} again?", go=True,
           when=lambda row: row.get("disabledAt") is not None),
    Action("Forget", "POST", f"{ENDPOINTS}/forget", body=NAMED, title="Forget 1 endpoint, {url}?",
           follows="Its secrets are gone; the next webhook there is signed with the installation’s own key.",
           risk=True, way_out="Keep it"),
)  # fmt: skip


def _attempts_source(found: Found) -> str | None:
    if "id" in found.given:
        return f"{ENDPOINTS}/attempts?id={found.given['id']}"
    return None


def _endpoint(found: Found) -> dict[str, Any] | None:
    return next((one for one in found.items(ENDPOINTS) if one["id"] == found.given["id"]), None)


def _endpoint_state(endpoint: dict[str, Any], _: Found) -> str:
    if endpoint["disabledAt"]:
        return "stopped"
    rate = endpoint["successRate"]
    return "idle" if rate is None else "answers" if rate else "failing"


def _endpoint_verdict(found: Found) -> str:
    endpoint, say = _endpoint(found), found.say
    if endpoint is None:
        return ""
    if endpoint["disabledAt"]:
        return say("It is switched off: {why}", why=endpoint["reason"] or "")
    if endpoint["successRate"] is None:
        return say("Nothing was sent there in 24 hours.")
    return say(
        "It accepted {share} of {n} attempts in 24 hours.",
        share=say.percent(endpoint["successRate"]),
        n=endpoint["attempts"],
    )


def _verdict(found: Found) -> str:
    messages = found.items(MESSAGES)
    held = sum(one["status"] == "HELD" for one in messages)
    failed = sum(one["status"] in {"FAILED", "DEAD"} for one in messages)
    text = found.say("Failed of the last {n} messages: {m}.", n=len(messages), m=failed)
    parts = [text if messages else found.say("No message was sent yet.")]
    if held:
        parts.append(found.say("Held, for a person: {n}.", n=held))
    if simulated := (found.of(OVERVIEW) or {}).get("simulated"):
        names = ", ".join(map(found.say, simulated))
        parts.append(found.say("Simulated: {names}; nothing of these leaves the machine.", names=names))
    return " ".join(parts)


def _message_verdict(found: Found) -> str:
    message, say = found.of(MESSAGE), found.say
    accepted, settled = instant(message["createdAt"]), instant(message["settledAt"] or "")
    if message["status"] == "DELIVERED" and accepted is not None and settled is not None:
        seconds = (settled - accepted).total_seconds()
        text = say(
            "Delivered at attempt {n}, {time} after it was accepted.", n=message["attempts"], time=say.seconds(seconds)
        )
    else:
        text = say("Attempts so far: {n}.", n=message["attempts"])
    if field_of(message, "detail.detail.simulated"):
        text += " " + say("Simulated: nothing left the machine.")
    if message["uncertainAttempts"]:
        text += " " + say("Attempts whose end nobody saw: {n}.", n=message["uncertainAttempts"])
    return text


def _answer(attempt: dict[str, Any], found: Found) -> Markup:
    good = attempt["code"] is None
    hue = "done" if good else "dead"
    text = attempt["status"] or attempt["code"] or found.say("none was seen")
    return Markup(
        '<span class="state s-{0}"><svg class="icon" aria-hidden="true"><use href="#i-{0}"/></svg>{1}</span>'
    ).format(hue, text)


PAGES = (
    ConsolePage(
        "notify",
        "Notify",
        (
            Table(
                "Messages",
                MESSAGES,
                (
                    Column("Message", "id", "id", "notifications/{}"),
                    Column("Type", "notificationType"),
                    Column("State", "status", "state"),
                    Column("Recipient", "recipient"),
                    Column("Attempts", "attempts", "number"),
                    Column("Accepted", "createdAt", "time"),
                    Column("Ended", "settledAt", "time"),
                ),
                Empty("No message matches.", "ulak notify send IN_APP ayse Merhaba"),
                chips=("status", STATUSES),
                filters=(("notificationType", "Type"), ("reference", "Reference")),
                following="nextBefore",
                after="before",
                actions=(RESEND, CANCEL),
            ),
            Table(
                "Webhook endpoints",
                ENDPOINTS,
                (
                    Column("Address", "url", "code", "endpoints/{id}"),
                    Column("State", _endpoint_state, "state"),
                    Column("Success, 24 h", "successRate", "percent"),
                    Column("Attempts, 24 h", "attempts", "number"),
                    Column("Secrets", "secrets", "number"),
                    Column("Why off", "reason"),
                ),
                Empty("No endpoint is registered.", "ulak notify endpoints register https://hooks.example.org/ulak"),
                items="",
                actions=ENDPOINT_ACTIONS[:2],
            ),
            Table(
                "Templates",
                "/api/templates",
                (Column("Template", "name", "code", "templates/{}"), Column("Languages", "languages")),
                Empty("No template."),
                key="name",
            ),
        ),
        "capabilities",
        verdict=_verdict,
    ),
    ConsolePage(
        "notifications/{id}",
        "Message",
        (
            Drawing("Timeline", "timeline.html", lambda found: draw_timeline(found.of(MESSAGE).get("timeline"), found)),
            Table(
                "What happened",
                MESSAGE,
                (
                    Column("Time", "at", "clock"),
                    Column("Event", "what", "state"),
                    Column("Attempt", lambda step, _: step["attempt"] or None, "number"),
                    Column("Detail", "detail", "told"),
                ),
                Empty("Nothing happened yet."),
                items="timeline",
                span="c8",
                key="",
            ),
            FactList(
                "Facts",
                MESSAGE,
                (
                    Column("Type", "notificationType"),
                    Column("Recipient", "recipient"),
                    Column("Subject", "subject"),
                    Column("Text", "body"),
                    Column("Priority", lambda message, found: found.say(message["priority"].lower())),
                    Column("Accepted", "createdAt", "time"),
                    Column("Ended", "settledAt", "time"),
                    Column("Result", "detail", "json"),
                ),
            ),
        ),
        source=MESSAGE,
        heading=lambda found: Markup('<span class="id">{}</span>').format(found.given["id"]),
        verdict=_message_verdict,
        under="notify",
        actions=(RESEND, CANCEL),
        links=lambda found: [
            ("Job", f"/console/jobs/{found.of(MESSAGE)['jobId']}"),
            ("Show as JSON", f"/api/notifications/{found.given['id']}"),
        ],
    ),
    ConsolePage(
        "endpoints/{id}",
        "Webhook endpoint",
        (
            Table(
                "Last answers",
                _attempts_source,
                (
                    Column("Message", "id", "id", "notifications/{}"),
                    Column("Answer", _answer),
                    Column("Attempt", "attempt", "number"),
                    Column("Took", lambda one, _: one["milliseconds"] / 1000, "seconds"),
                    Column("At", "at", "time"),
                ),
                Empty("Nothing was sent there yet.", "ulak notify endpoints test URL"),
                key="",
            ),
        ),
        source=ENDPOINTS,
        heading=lambda found: Markup('<span class="id">{}</span>').format(
            (_endpoint(found) or {}).get("url", found.given["id"])
        ),
        verdict=_endpoint_verdict,
        under="notify",
        actions=ENDPOINT_ACTIONS,
        subject=_endpoint,
    ),
    ConsolePage(
        "templates/{id}",
        "Template",
        (Drawing("Preview", "template.html", lambda found: found.given["id"], sources=("/api/templates",)),),
        heading=lambda found: Markup('<span class="id">{}</span>').format(found.given["id"]),
        verdict=lambda found: found.say("Filled in with your variables in each of its languages; nothing is sent."),
        under="notify",
    ),
)
