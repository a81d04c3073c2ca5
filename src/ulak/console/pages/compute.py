"""Pages of compute: worker processes, queues, and tasks with their output."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ulak.console.format import instant
from ulak.console.page import Action, Column, ConsolePage, Drawing, Empty, FactList, Found, Table

STATS, TASKS, RESULT = "/api/compute/stats", "/api/compute/tasks?limit=50", "/api/compute/tasks/{id}/result"


def _workers(document: Any, _: Found) -> list[dict[str, Any]]:
    workers = (document.get("metrics") or {}).get("workers") or {}
    return [{"name": name, **facts} for name, facts in workers.items()]


def _verdict(found: Found) -> str:
    stats, say = found.of(STATS) or {}, found.say
    workers = _workers(stats, found)
    if not workers:
        return say("The engine of this process has not started: its first task starts it.")
    busy = sum(one["status"] != "idle" for one in workers)
    return say("Worker processes: {n}, busy: {m}.", n=len(workers), m=busy)


def _script_verdict(found: Found) -> str:
    result, say = found.of(RESULT), found.say
    begin, end = instant(result.get("started_at") or ""), instant(result.get("completed_at") or "")
    if begin is None or end is None:
        text = say("It has not ended yet.")
    else:
        text = say(
            "Attempt {n} ended after {time}.", n=result["attempts"], time=say.seconds((end - begin).total_seconds())
        )
    if found.caller.may("compute"):
        return text
    return f"{text} {say('The script’s result and output are shown to keys with the scope compute.')}"


def _output(found: Found) -> dict[str, Any] | None:
    result = found.of(RESULT)
    texts = [
        (name, result[name])
        for name in ("data", "error", "traceback", "stdout", "stderr")
        if result.get(name) not in (None, "")
    ]
    return {"texts": texts}


CANCEL = Action(
    "Cancel task",
    "POST",
    "/api/compute/tasks/{task_id}/cancel",
    title="Cancel 1 task?",
    follows="It is stopped, also while it runs. This can’t be undone.",
    risk=True,
    way_out="Keep it",
    when=lambda row: row["status"] in {"PENDING", "RUNNING"},
)
PAGES = (
    ConsolePage(
        "compute",
        "Compute",
        (
            Table(
                "Tasks",
                TASKS,
                (
                    Column("Task", "task_id", "id", "scripts/{}"),
                    Column("Script", "script_path", "code"),
                    Column("State", "status", "state"),
                    Column("Type", lambda one, found: found.say(one["task_type"].replace("_", " "))),
                    Column("Attempts", "attempts", "number"),
                    Column("Accepted", "accepted_at", "time"),
                    Column("Ended", "completed_at", "time"),
                ),
                Empty(
                    "No task has run yet. Scripts are in the folder compute.script_root.",
                    "ulak compute submit hello.py",
                ),
                key="task_id",
                after="before",
                actions=(CANCEL,),
            ),
            FactList(
                "Engine",
                STATS,
                (
                    Column("Tasks taken", "metrics.input_queue.total_put", "number"),
                    Column("Waiting, CPU", "metrics.input_queue.depth.cpu_bound", "number"),
                    Column("Waiting, IO", "metrics.input_queue.depth.io_bound", "number"),
                    Column("Finished", "metrics.process_pool.total_finished", "number"),
                    Column("Tried again", "metrics.process_pool.total_retried", "number"),
                    Column("Processes that died", "metrics.process_pool.total_crashed", "number"),
                    Column("Wait of the last", "metrics.process_pool.wait_seconds", "seconds"),
                    Column("Run of the last", "metrics.process_pool.run_seconds", "seconds"),
                ),
            ),
            Table(
                "Worker processes of this instance",
                STATS,
                (
                    Column("Worker", "name", "code"),
                    Column("State", "status", "state"),
                    Column("Process id", "pid", "code"),
                    Column("CPU used", "cpu_seconds", "seconds"),
                    Column(
                        "Memory, MB", lambda one, _: one["memory_bytes"] and round(one["memory_bytes"] / 1e6), "number"
                    ),
                    Column("Task now", "tasks"),
                    Column("In flight", "in_flight", "number"),
                    Column("Done", "total_done", "number"),
                ),
                Empty("No worker process has started.", "ulak compute submit hello.py"),
                items=_workers,
                key="name",
            ),
        ),
        "capabilities",
        verdict=_verdict,
    ),
    ConsolePage(
        "scripts/{id}",
        "Task",
        (
            Drawing("Output", "output.html", _output, "c8"),
            FactList(
                "Facts",
                RESULT,
                (
                    Column("Attempts", "attempts", "number"),
                    Column("Worker", "worker_id", "code"),
                    Column("Started", "started_at", "time"),
                    Column("Ended", "completed_at", "time"),
                ),
            ),
        ),
        source=RESULT,
        heading=lambda found: Markup('<span class="id">{}</span>').format(found.given["id"]),
        verdict=_script_verdict,
        under="compute",
        actions=(CANCEL,),
    ),
)
