"""Pages of jobs and dead letters: lists, one job with its life drawn, sending dead letters again."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from ulak.console.format import instant
from ulak.console.menu import OVERVIEW
from ulak.console.page import Action, Column, ConsolePage, DialogField, Drawing, Empty, FactList, Found, Table
from ulak.console.timeline import draw_timeline, took

LIVE = ("ready", "running", "deferred", "behind", "suspect")
STATUSES = (*LIVE, "done", "dead", "cancelled", "expired")
MAX_CAUSES = 50
JOB, CAUSES = "/api/jobs/{id}", f"/api/dead/causes?limit={MAX_CAUSES}"

CANCEL = Action(
    "Cancel job",
    "POST",
    "/api/jobs/{id}/cancel",
    title="Cancel 1 job, {id}?",
    follows="It ends at once while it waits; while it runs, its worker is asked to stop. This can’t be undone.",
    risk=True,
    way_out="Keep it",
    when=lambda job: job["status"] in LIVE,
)
SEND_AGAIN = Action(
    "Send again",
    "POST",
    "/api/dead/redrive",
    body='{"ids": ["{id}"]}',
    title="Send 1 dead letter again?",
    follows="It keeps its id and gets fresh attempts.",
    go=True,
    when=lambda job: job.get("status") == "dead",
)
EDIT = Action(
    "Edit payload",
    "PUT",
    "/api/dead/{id}/payload",
    body="{}",
    title="Edit the payload of job {id}?",
    follows="It is used when the letter is sent again. Opening it is recorded under your key’s name.",
    entries=(DialogField("", "Payload (JSON)", "reveal:/api/jobs/{id}", "json"),),
    when=lambda job: job.get("status") == "dead",
)
DROP = Action(
    "Drop",
    "DELETE",
    "/api/dead/{id}",
    title="Drop 1 dead letter?",
    follows="Its payload is gone for good.",
    risk=True,
    way_out="Keep it",
)
MAKES_ONE = "ulak notify send WEBHOOK http://10.0.0.1/ Merhaba"  # the guard lets nobody there
RATE = DialogField("ratePerSecond", "How many a second; empty sends all at once", "", "number")


def _counts(found: Found) -> dict[str, int]:
    """Unfinished ones and dead letters; of the others a list shows only what is kept."""
    overview = found.of(OVERVIEW) or {"states": {}, "totals": {}}
    return {name: n for name, n in {**overview["states"], "dead": overview["totals"].get("dead", 0)}.items() if n}


JOBS = Table(
    "Jobs",
    "/api/jobs?limit=50",
    (
        Column("Job", "id", "id", "jobs/{}"),
        Column("Kind", "kind", "code"),
        Column("Key", "key", "soft"),
        Column("State", "status", "state"),
        Column("Attempts", "attempt", "number"),
        Column("Took", lambda job, _: took(job), "seconds"),
        Column("Accepted", "acceptedAt", "time"),
    ),
    Empty("No job matches.", "ulak notify send IN_APP ayse Merhaba"),
    items="jobs",
    chips=("status", STATUSES),
    counts=_counts,
    filters=(
        ("kind", "Kind"),
        ("key", "Key"),
        ("acceptedAfter", "Accepted from"),
        ("acceptedBefore", "Accepted until"),
    ),
    moments=("acceptedAfter", "acceptedBefore"),
    following="before",
    after="before",
    actions=(CANCEL,),
)


def _jobs_verdict(found: Found) -> str:
    overview, say = found.of(OVERVIEW), found.say
    if overview is None:
        return ""
    states = {name: n for name, n in overview["states"].items() if n}
    if not states:
        return say("Everything that was accepted has ended: nothing waits, nothing runs.")
    numbers = ", ".join(f"{say.number(n)} {say(name)}" for name, n in states.items())
    return say("Unfinished jobs: {n} ({numbers}).", n=sum(states.values()), numbers=numbers)


def _job_verdict(found: Found) -> Markup:
    job, say = found.of(JOB), found.say
    steps = job["timeline"]
    uncertain = [step["attempt"] for step in steps if step["word"] == "uncertain"]
    seconds = took(job, whole=True)
    texts = {
        "done": say(
            "Done at attempt {n}, {time} after it was accepted.", n=job["attempt"], time=say.seconds(seconds or 0)
        ),
        "dead": say("Dead after attempt {n}: {why}", n=job["attempt"], why=str(job.get("detail") or "")[:200]),
        "ready": say("A worker takes it next."),
        "running": say("A process has it now, at attempt {n}.", n=job["attempt"]),
        "deferred": say("It waits for a time: a delay, a backoff or an open breaker."),
        "behind": say("Its key has no free slot; it waits in line."),
        "suspect": say("Its process died; it runs again, apart."),
        "cancelled": say("It was cancelled."),
        "expired": say("It expired before it ran."),
    }
    told = Markup.escape(texts.get(job["status"], ""))
    if uncertain:
        told += Markup(" <b>{}</b>").format(
            say(
                "Attempt {n} is uncertain: its process died meanwhile, so its effect may have happened twice.",
                n=uncertain[-1],
            )
        )
    return told


def _job_links(found: Found) -> list[tuple[str, str]]:
    """A job that delivers a message has a second id, by which its sender knows it."""
    job = found.of(JOB)
    message = [("Message", f"/console/notifications/{job['uuid']}")] if job["kind"].startswith("notify.") else []
    return [*message, ("Show as JSON", f"/api/jobs/{found.given['id']}")]


def _after(step: dict[str, Any], found: Found) -> str:
    first, at = instant(found.of(JOB)["timeline"][0]["at"]), instant(step["at"])
    assert first is not None
    assert at is not None
    return found.say.offset((at - first).total_seconds())


def _timeline(found: Found) -> Any:
    return draw_timeline(found.of(JOB).get("timeline"), found)


def _progress(found: Found) -> Any:
    progress = found.of("/api/dead/redrive")
    return progress if progress and progress["state"] != "none" else None


def _cause(one: dict[str, Any], found: Found) -> Markup:
    """A code, or without one the class, that leads to the letters of this kind which died of it."""
    wanted = {name: one[name] for name in ("kind", "errorClass", "code") if one[name]}
    return Markup('<a class="id" href="/console/dead?{}">{}</a>').format(
        urlencode(wanted), one["code"] or found.say(one["errorClass"])
    )


def _class_counts(found: Found) -> dict[str, int]:
    """By the list of causes, as long as it has them all."""
    causes = found.items(CAUSES)
    counts: Counter[str] = Counter()
    for one in causes if len(causes) < MAX_CAUSES else ():
        counts[one["errorClass"]] += one["number"]
        counts[""] += one["number"]
    return counts


def _dead_verdict(found: Found) -> str:
    causes = found.items(CAUSES)
    number = sum(one["number"] for one in causes)
    if not number:
        return found.say("No dead letter: everything that was accepted ended well, or is still being tried.")
    return found.say(
        "Dead letters: {n}. Causes: {m}. Most frequent: {cause}.",
        n=number, m=len(causes), cause=causes[0]["code"] or found.say(causes[0]["errorClass"]),
    )  # fmt: skip


PAGES = (
    ConsolePage("jobs", "Jobs", (JOBS,), "engine", verdict=_jobs_verdict),
    ConsolePage(
        "jobs/{id}",
        "Job",
        (
            Drawing("Timeline", "timeline.html", _timeline, source=JOB),
            Table(
                "What happened",
                JOB,
                (
                    Column("Time", "at", "clock"),
                    Column("After", _after, "soft"),
                    Column("Event", "word", "state"),
                    Column("Attempt", lambda step, _: step["attempt"] or None, "number"),
                    Column("Detail", "detail", "told"),
                ),
                Empty("Nothing happened yet."),
                items="timeline",
                span="c8 tall",
                key="",
            ),
            FactList(
                "Facts",
                JOB,
                (
                    Column("Kind", "kind", "code"),
                    Column("Key", "key"),
                    Column("Priority", lambda job, found: found.say(job["priority"].lower())),
                    Column("Accepted", "acceptedAt", "time"),
                    Column("Due", "dueAt", "time"),
                    Column("Expires", "expiresAt", "time"),
                    Column("Ended", "settledAt", "time"),
                    Column("Crashes", "crashes", "number"),
                    Column("Unique by", "uniqueKey", "code"),
                    Column("Result", "detail", "json"),
                ),
            ),
            Drawing("Payload", "payload.html", lambda found: found.of(JOB), span="c4", source=JOB),
        ),
        heading=lambda found: Markup('<span class="id">{}</span>').format(found.given["id"]),
        verdict=_job_verdict,
        source=JOB,
        actions=(CANCEL, EDIT, SEND_AGAIN),
        under="jobs",
        links=_job_links,
    ),
    ConsolePage(
        "dead",
        "Dead letters",
        (
            Drawing(
                "Sending again",
                "redrive.html",
                _progress,
                sources=("/api/dead/redrive",),
                source="/api/dead/redrive",
                actions=(
                    Action(
                        "Stop after {redriven}",
                        "DELETE",
                        "/api/dead/redrive",
                        title="Stop after {redriven} of {matched}?",
                        follows="Letters that were sent again stay sent; the rest stays here.",
                        risk=True,
                        way_out="Let it go on",
                        when=lambda one: one["state"] == "running",
                    ),
                ),
            ),
            Table(
                "By cause",
                CAUSES,
                (
                    Column("Cause", _cause),
                    Column("Kind", "kind", "code"),
                    Column("Class", lambda one, found: found.say(one["errorClass"])),
                    Column("Number", "number", "number"),
                    Column("Last died", "lastAt", "time"),
                ),
                Empty("Nothing died.", MAKES_ONE),
                key="",
            ),
            Table(
                "Dead letters",
                "/api/dead?limit=50",
                (
                    Column("Job", "id", "id", "jobs/{}"),
                    Column("Kind", "kind", "code"),
                    Column("Code", lambda one, found: one["code"] or found.say(one["errorClass"]), "code"),
                    Column("Cause", "cause"),
                    Column("Attempts", "attempt", "number"),
                    Column("Died", "settledAt", "time"),
                ),
                Empty("No dead letter.", MAKES_ONE),
                items="dead",
                chips=("errorClass", ("permanent", "transient", "uncertain")),
                counts=_class_counts,
                filters=(("kind", "Kind"), ("code", "Code"), ("contains", "Cause contains")),
                following="after",
                actions=(DROP,),
                bulk=(
                    Action(
                        "Send all matching again",
                        "POST",
                        "/api/dead/redrive",
                        body="{}",
                        title="Send {n} dead letters again?",
                        follows="They keep their ids and get fresh attempts. With a rate you can stop on the way.",
                        go=True,
                        dry=True,
                        entries=(RATE,),
                    ),
                ),
                chosen=Action(
                    "Send {n} again",
                    "POST",
                    "/api/dead/redrive",
                    body='{"ids": []}',
                    title="Send {n} dead letters again?",
                    follows="They keep their ids and get fresh attempts.",
                    go=True,
                ),
            ),
        ),
        "engine",
        verdict=_dead_verdict,
    ),
)
