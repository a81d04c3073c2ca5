"""Pages of actions: plans, runs with their steps, recipients, dead letters."""

from __future__ import annotations

from ulak.console.page import Action, Column, ConsolePage, TableView

_OPEN = frozenset({"accepted", "running"})
PAGES = (
    ConsolePage(
        "actions",
        "Actions",
        (
            TableView(
                "Runs",
                "/api/actions/runs",
                (
                    Column("Job", "run_id", "id", "runs/{}"),
                    Column("State", "state", "state"),
                    Column("Plan", "action_plan_id", "number"),
                    Column("Version", "plan_version", "number"),
                    Column("Evaluation", "evaluation_key", "code"),
                ),
                key="run_id",
                empty="ulak actions request …",
                actions=(
                    Action(
                        "Cancel",
                        "POST",
                        "/api/actions/runs/{run_id}/cancel",
                        confirm="Cancel what is left of this run?",
                        harmful=True,
                        when=lambda row: row["state"] in _OPEN,
                    ),
                ),
            ),
            TableView(
                "Plans",
                "/api/actions/plans",
                (
                    Column("Plan", "id", "number"),
                    Column("Name", "name"),
                    Column("Version", "version", "number"),
                    Column("Critical", "critical", "yes"),
                ),
                empty="ulak actions import plans.yaml",
            ),
            TableView(
                "Recipients",
                "/api/actions/profiles",
                (
                    Column("Job", "id", "number"),
                    Column("Name", "name"),
                    Column("Priority", "priority", "number"),
                    Column("Status", "status", "yes"),
                ),
            ),
            TableView(
                "Dead letters",
                "/api/actions/dead-letters",
                (
                    Column("Job", "id", "code"),
                    Column("Plan", "action_plan_id", "number"),
                    Column("Type", "channel_type"),
                    Column("Code", "error_code", "code"),
                    Column("Cause", "error_message"),
                    Column("At", "failed_at", "time"),
                ),
            ),
        ),
        "capabilities",
    ),
    ConsolePage("runs/{id}", "Runs", detail="/api/actions/runs/{id}"),
)
