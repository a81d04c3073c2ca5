"""Pages of actions: runs with their steps, plans as a graph, what a plan would do, recipients, dead letters."""

from __future__ import annotations

from typing import Any

from ulak.console.page import Action, Column, ConsolePage, Drawing, Empty, Found, Table
from ulak.console.plan import draw_plan
from ulak.console.promises import SLO, promises

RUNS, PLANS, RUN, PLAN = (
    "/api/actions/runs?limit=20",
    "/api/actions/plans",
    "/api/actions/runs/{id}",
    "/api/actions/plans/{id}",
)
OPEN = frozenset({"accepted", "running"})
CANCEL = Action(
    "Cancel run",
    "POST",
    "/api/actions/runs/{run_id}/cancel",
    title="Cancel 1 run?",
    follows="Steps that have begun go on to their end; the others are not started. This can’t be undone.",
    risk=True,
    way_out="Keep it",
    when=lambda row: row["state"] in OPEN,
)
ACKNOWLEDGE = Action(
    "Acknowledge",
    "POST",
    "/api/actions/runs/{run_id}/acknowledge",
    title="Acknowledge 1 run?",
    follows="Steps that are still to come are not sent.",
    go=True,
    when=lambda row: row["state"] in OPEN,
)


def _plan_names(found: Found) -> dict[int, str]:
    return {one["id"]: one["name"] for one in found.items(PLANS)}


def _plan_name(run: dict[str, Any], found: Found) -> str:
    return _plan_names(found).get(run["action_plan_id"], str(run["action_plan_id"]))


def _verdict(found: Found) -> str:
    runs, watch, say = found.items(RUNS), found.of("/api/actions/watchdog") or {}, found.say
    under_way = sum(one["state"] in OPEN for one in runs)
    text = say("Runs under way: {n}.", n=under_way)
    if watch.get("difference"):
        return f"{text} {say('Accepted runs that neither ended nor wait: {n}.', n=watch['difference'])}"
    return f"{text} {say('Every accepted run ended, or waits for a reason.')}"


def _of_run(found: Found) -> str | None:
    run = found.of(RUN)
    return None if run is None else f"/api/actions/plans/{run['action_plan_id']}?version={run['plan_version']}"


def _run_graph(found: Found) -> Any:
    plan, run = found.of(_of_run(found)), found.of(RUN)
    return None if plan is None else draw_plan(plan, found, {one["step_order"]: one for one in run["steps"]})


def _run_verdict(found: Found) -> str:
    run, say = found.of(RUN), found.say
    ended = sum(one["state"] in {"sent", "acknowledged", "handed_over", "delivered"} for one in run["steps"])
    return say("Steps that reached somebody: {n} of {m}.", n=ended, m=len(run["steps"]))


def _channel(step: dict[str, Any], found: Found) -> str:
    return found.say(step["channel_type"])


MAKES_ONE = (
    """ulak actions plans add '{"name": "Leak", "steps": """
    """[{"step_order": 1, "channel_type": "audit", "body": "Water"}]}'"""
)
STEPS = (
    Column("Step", "step_order", "number"),
    Column("Channel", _channel),
    Column("State", "state", "state"),
    Column("Tried again", "retry_count", "number"),
    Column("Due", "due_at", "time"),
    Column("Ended", "ended_at", "time"),
    Column("Trouble", "error_code", "code"),
)
PAGES = (
    ConsolePage(
        "actions",
        "Actions",
        (
            Drawing("Promises kept", "slo.html", promises, "c5", (SLO,), note="24 hours"),
            Table(
                "Plans",
                PLANS,
                (
                    Column("Plan", "name", "text", "plans/{id}"),
                    Column("Version", "version", "number"),
                    Column("Steps", lambda plan, found: " → ".join(_channel(one, found) for one in plan["steps"])),
                    Column("Critical", "critical", "yes"),
                    Column("Changed", "updated_at", "time"),
                ),
                Empty("No plan yet.", MAKES_ONE),
                span="c7",
                after="afterPlan",
            ),
            Table(
                "Runs",
                RUNS,
                (
                    Column("Run", "run_id", "id", "runs/{}"),
                    Column("State", "state", "state"),
                    Column("Plan", _plan_name, "text", "plans/{action_plan_id}"),
                    Column(
                        "Steps",
                        lambda run, _: (
                            f"{sum(one['ended_at'] is not None for one in run['steps'])} / {len(run['steps'])}"
                        ),
                    ),
                    Column("Device", "device_id", "soft"),
                    Column("Accepted", "accepted_at", "time"),
                    Column("Ended", "ended_at", "time"),
                ),
                Empty("No run yet.", "ulak actions request 1 KEY"),
                key="run_id",
                actions=(ACKNOWLEDGE, CANCEL),
                chips=("state", ("accepted", "running", "done", "failed", "cancelled")),
            ),
            Table(
                "Recipients",
                "/api/actions/profiles",
                (
                    Column("Name", "name"),
                    Column("On duty", "status", "yes"),
                    Column("Order", "priority", "number"),
                    Column("Quiet", "quiet_hours"),
                ),
                Empty("No recipient yet.", """ulak actions profiles add '{"name": "Ayşe"}'"""),
                span="c12",
                after="afterProfile",
            ),
            Table(
                "Dead letters",
                "/api/actions/dead-letters",
                (
                    Column("Run", "run_id", "id", "runs/{}"),
                    Column("Channel", _channel),
                    Column("Code", "error_code", "code"),
                    Column("Cause", "error_message"),
                    Column("Died", "failed_at", "time"),
                ),
                Empty("No action is dead."),
                after="afterLetter",
                actions=(
                    Action(
                        "Send again",
                        "POST",
                        "/api/actions/dead-letters/{id}/redrive",
                        body="{}",
                        title="Send 1 dead letter again?",
                        follows="Its run goes on from this step.",
                        go=True,
                    ),
                ),
            ),
        ),
        "capabilities",
        verdict=_verdict,
    ),
    ConsolePage(
        "runs/{id}",
        "Run",
        (
            Drawing("Plan", "plan.html", _run_graph, "c5", (_of_run,)),
            Table("Steps", RUN, STEPS, Empty("No step yet."), items="steps", span="c7", key="step_order"),
            Table(
                "Every decision, and why",
                f"{RUN}/explain",
                (
                    Column("Time", "at", "clock"),
                    Column("Step", "step_order", "number"),
                    Column("Decision", "decision", "state"),
                    Column("Why", lambda one, found: found.say.told(one["why"])),
                ),
                Empty("Nothing was decided yet."),
                items="decisions",
                key="",
            ),
        ),
        source=RUN,
        heading=lambda found: found.say(
            "Run of {device}", device=found.of(RUN)["device_id"] or found.of(RUN)["evaluation_key"]
        ),
        verdict=_run_verdict,
        under="actions",
        actions=(ACKNOWLEDGE, CANCEL),
        links=lambda found: [("Show as JSON", f"/api/actions/runs/{found.given['id']}")],
    ),
    ConsolePage(
        "plans/{id}",
        "Plan",
        (
            Drawing("Plan", "plan.html", lambda found: draw_plan(found.of(PLAN), found), "c5", source=PLAN),
            Drawing("Simulate", "simulate.html", lambda found: found.of(PLAN), "c7"),
        ),
        source=PLAN,
        heading=lambda found: found.of(PLAN)["name"],
        verdict=lambda found: found.say(
            "Version {n}, steps: {m}.", n=found.of(PLAN)["version"], m=len(found.of(PLAN)["steps"])
        ),
        under="actions",
        links=lambda found: [("Show as JSON", f"/api/actions/plans/{found.given['id']}")],
    ),
)
