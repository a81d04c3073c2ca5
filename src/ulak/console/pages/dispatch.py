"""Pages of dispatch: helpers and tasks, on a map and in lists; one task with its offers and why; fairness."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ulak.console.format import instant, left
from ulak.console.menu import OVERVIEW
from ulak.console.page import Action, Column, ConsolePage, DialogField, Drawing, Empty, Found, Table
from ulak.console.timeline import draw_offers
from ulak.console.town import OPEN, asked_of, draw_town

TASKS, HELPERS, FAIRNESS, TASK = "/tasks?limit=10", "/helpers?limit=200", "/api/dispatch/fairness", "/tasks/{id}"
CANCEL = Action(
    "Cancel task",
    "PUT",
    "/tasks/{id}/cancel",
    body="{}",
    title="Cancel 1 task?",
    follows="Its open offers are withdrawn, and those concerned are told. This can’t be undone.",
    risk=True,
    way_out="Keep it",
    entries=(DialogField("reason", "Reason, shown in the timeline", "cancelled in the console"),),
    when=lambda task: task["status"] in OPEN,
)


def chosen(found: Found) -> dict[str, Any] | None:
    """The task that the page's address names, else one that waits for an answer."""
    task: dict[str, Any] | None = found.of(TASK)
    if "id" in found.given:
        return task
    tasks = found.items(TASKS)
    named = [one for one in tasks if one["id"] == found.query.get("task")]
    order = {"OFFERED": 0, "SEARCHING": 1, "ASSIGNED": 2}
    return next(iter(named or sorted(tasks, key=lambda one: order.get(one["status"], 3))), None)


def _explain_source(found: Found) -> str | None:
    task = chosen(found)
    return None if task is None else f"/tasks/{task['id']}/explain"


def names(found: Found) -> dict[str, str]:
    return {one["id"]: one.get("name") or one["id"] for one in found.items(HELPERS)}


def deadline(task: dict[str, Any], found: Found) -> dict[str, Any] | None:
    """The offer that ends first: its share of time left, m:ss, and when."""
    pending = task.get("pendingAssignments") or []
    if not pending:
        return None
    first = min(pending, key=lambda one: str(one["deadlineAt"]))
    at = instant(first["deadlineAt"])
    assert at is not None
    seconds = max((at - found.now).total_seconds(), 0.0)
    share = min(seconds / max(task["deadlineSeconds"], 1), 1.0)
    return {
        "helper": names(found).get(first["helperId"], first["helperId"]),
        "more": len(pending) - 1,
        "left": left(seconds),
        "share": share,
        "hue": "suspect" if share < 0.1 else "running",
        "at": first["deadlineAt"],
        "until": at.astimezone(found.zone).strftime("%H:%M:%S"),
        "whole": task["deadlineSeconds"],
    }


ANSWERS = {"offered": "asked", "rejected": "declined", "expired": "silent", "withdrawn": "withdrawn"}


def _answers(task: dict[str, Any], found: Found) -> dict[str, str]:
    """Return the fate of everyone who stood in line, by the task's own timeline."""
    steps = (found.of(_detail_source(found)) or {}).get("timeline") or []
    waiting = task.get("taskCandidates") or []
    line = dict.fromkeys(waiting, "then") | dict.fromkeys(waiting[:1], "next")
    told = {one["helperId"]: ANSWERS.get(one["what"], one["what"]) for one in steps if one.get("helperId")}
    return line | told


def _detail_source(found: Found) -> str | None:
    task = chosen(found)
    return None if task is None else TASK if "id" in found.given else f"/tasks/{task['id']}"


def _chosen_card(found: Found) -> dict[str, Any] | None:
    task = chosen(found)
    if task is None:
        return None
    searches = ((found.of(_explain_source(found)) or {}).get("searches")) or []
    search = searches[-1] if searches else None
    answers, known = _answers(task, found), names(found)

    ranked = [
        {
            **one,
            "name": known.get(one["helperId"], one["helperId"]),
            "answer": answers.get(one["helperId"], "not asked"),
        }
        for one in (search["ranked"] if search else [])
    ]
    return {"task": task, "deadline": deadline(task, found), "search": search, "ranked": ranked, "known": known}


def _map(found: Found) -> dict[str, Any] | None:
    return draw_town(found.items(TASKS), found.items(HELPERS), chosen(found), found.outline)


def _fairness(found: Found) -> dict[str, Any] | None:
    figures = found.of(FAIRNESS)
    if figures is None or not found.items(HELPERS):
        return None
    helped = sorted(one["completedThisMonth"] for one in found.items(HELPERS))
    return {"figures": figures, "helped": helped, "top": max([1, *helped])}


def _counts(found: Found) -> dict[str, int]:
    """Of tasks with an open offer: each has one timer, and those are counted. Of the others nobody keeps a number."""
    room = (found.of(OVERVIEW) or {"rooms": {}})["rooms"].get("dispatch")
    return {} if room is None else {"OFFERED": room["kinds"].get("dispatch.expire", {}).get("deferred", 0)}


def _time_left(task: dict[str, Any], found: Found) -> Any:
    line = deadline(task, found)
    if line is None:
        return None
    return Markup(
        '<span class="left"><svg class="meter s-{}" role="img" aria-label="{}">'
        '<rect class="track" width="100%" height="8" rx="2"/>'
        '<rect class="fill" width="{:.0f}%" height="8" rx="2" data-share="{}" data-whole="{}"/></svg>'
        '<b data-until="{}">{}</b></span>'
    ).format(line["hue"], found.say("{time} left", time=line["left"]), line["share"] * 100, line["at"], line["whole"],
             line["at"], line["left"])  # fmt: skip


def _who(task: dict[str, Any], found: Found) -> str:
    known = names(found)
    if task.get("helperId"):
        return known.get(task["helperId"], str(task["helperId"]))
    return ", ".join(known.get(one, one) for one in asked_of(task))


def _verdict(found: Found) -> str:
    say, tasks, helpers = found.say, found.items(TASKS), found.items(HELPERS)
    if not tasks and not helpers:
        return say("Nobody asks for help, and nobody offers any.")
    open_ = [line for one in tasks if (line := deadline(one, found))]
    first = min(open_, key=lambda line: str(line["at"]), default=None)
    idle = sum(one["status"] == "IDLE" for one in helpers)
    text = say("Open offers: {n}.", n=len(open_))
    if first is not None:
        text += " " + say("Next deadline in {time}.", time=first["left"])
    text += " " + say("Helpers: {n}, idle: {m}.", n=len(helpers), m=idle)
    overdue = (found.of(FAIRNESS) or {}).get("overdueSeconds") or 0
    if overdue:
        return f"{text} {say('A deadline is overdue by {time}.', time=say.seconds(overdue))}"
    return f"{text} {say('No deadline is overdue.')}"


def _task_verdict(found: Found) -> str:
    task, say = found.of(TASK), found.say
    opened, assigned = instant(task["createdAt"]), instant(task["assignedAt"] or "")
    line = deadline(task, found)
    if line is not None:
        return say("{name} is asked and has {time} left to answer.", name=line["helper"], time=line["left"])
    if opened is not None and assigned is not None:
        seconds = say.seconds((assigned - opened).total_seconds())
        return say("{name} accepted, {time} after the task was opened.", name=_who(task, found), time=seconds)
    return say("Nobody has accepted it. {reason}", reason=task["reason"] or "")


def _offers(found: Found) -> Any:
    return draw_offers(found.of(TASK).get("timeline"), names(found), found)


PAGES = (
    ConsolePage(
        "dispatch",
        "Dispatch",
        (
            Drawing("Map", "town.html", _map, "c7 fill", (TASKS, HELPERS)),
            Drawing("Task", "task.html", _chosen_card, "c5", (_explain_source, _detail_source)),
            Table(
                "Tasks",
                TASKS,
                (
                    Column("Task", "category", "text", "tasks/{id}"),
                    Column("State", "status", "state"),
                    Column("Who", _who),
                    Column("Time left", _time_left),
                    Column("Until", lambda task, found: (deadline(task, found) or {}).get("until")),
                    Column("Asked by", "requesterId", "soft"),
                    Column("Opened", "createdAt", "time"),
                ),
                Empty("No task yet.", "ulak dispatch open pharmacy --latitude 40.99 --longitude 29.03"),
                chips=("status", ("OFFERED", "SEARCHING", "ASSIGNED", "COMPLETED", "TIMED_OUT", "CANCELLED")),
                counts=_counts,
                actions=(CANCEL,),
            ),
            Table(
                "Helpers",
                HELPERS,
                (
                    Column("Helper", lambda one, _: one.get("name") or one["id"]),
                    Column("State", "status", "state"),
                    Column("Helped this month", "completedThisMonth", "number"),
                    Column("Silent in a row", "timeoutsInRow", "number"),
                    Column("Skills", "skills"),
                    Column("Seen", "positionAt", "time"),
                ),
                Empty("No helper yet.", "ulak serve --demo"),
                span="c8",
                after="afterHelper",
            ),
            Drawing("Fairness", "fairness.html", _fairness, "c4 short", (FAIRNESS,)),
        ),
        "capabilities",
        verdict=_verdict,
    ),
    ConsolePage(
        "tasks/{id}",
        "Task",
        (
            Drawing("Task", "task.html", _chosen_card, "c5", (HELPERS, _explain_source)),
            Drawing(
                "Map",
                "town.html",
                lambda found: draw_town([chosen(found) or {}], found.items(HELPERS), chosen(found), found.outline),
                "c7 fill",
            ),
            Drawing("Timeline", "timeline.html", _offers),
            Table(
                "What happened",
                TASK,
                (
                    Column("Time", "at", "clock"),
                    Column("Event", "what", "state"),
                    Column("Helper", lambda step, found: names(found).get(step["helperId"], step["helperId"])),
                    Column("Reason", lambda step, found: found.say.told(step["reason"] or "")),
                ),
                Empty("Nothing happened yet."),
                items="timeline",
                key="",
            ),
        ),
        source=TASK,
        heading=lambda found: found.of(TASK)["category"],
        verdict=_task_verdict,
        under="dispatch",
        actions=(CANCEL,),
        links=lambda found: [("Show as JSON", f"/tasks/{found.given['id']}")],
    ),
)
