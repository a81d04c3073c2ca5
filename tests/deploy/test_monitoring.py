"""Alerts and dashboard: they parse, every metric that they name exists, and nothing that should stay 0 is left out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "monitoring"
# A test compares this page with what /metrics answers.
PAGE = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
METRICS = set(re.findall(r"`((?:ulak|gibuserlist)_\w+)`", PAGE))
NAME = re.compile(r"\bulak_\w+")
SHOULD_STAY_0 = {
    "ulak_conservation_difference",
    "ulak_notify_conservation_difference",
    "ulak_actions_watchdog_difference",
    "ulak_follower_lost_events",
    "ulak_dispatch_overdue_seconds",
    "ulak_leases_lost_total",
    "ulak_jobs_uncertain_total",
}


def rules():
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    return [(group["name"], rule) for group in groups for rule in group["rules"]]


def expressions():
    dashboard = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return [*(rule["expr"] for _, rule in rules()), *shown]


def named(expression):
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in NAME.findall(expression)}


def test_every_metric_that_is_named_exists():
    missing = {name for expression in expressions() for name in named(expression)} - METRICS
    assert missing == set()


def test_what_should_stay_0_has_an_alert_and_a_panel():
    defects = set(re.findall(r"\| `(ulak_\w+)` \|[^\n]*other than 0 is a defect", PAGE))
    assert defects <= SHOULD_STAY_0
    alerted = {name for group, rule in rules() if group == "ulak-should-stay-0" for name in named(rule["expr"])}
    assert alerted >= SHOULD_STAY_0
    shown = {name for expression in expressions()[len(rules()) :] for name in named(expression)}
    assert shown >= SHOULD_STAY_0


def test_every_alert_says_what_is_wrong_and_what_to_do():
    for _, rule in rules():
        assert set(rule["annotations"]) == {"summary", "action"}, rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning"}
    names = [rule["alert"] for _, rule in rules()]
    assert len(names) == len(set(names))


def test_panels_do_not_overlap():
    places = set()
    for panel in json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))["panels"]:
        grid = panel["gridPos"]
        cells = {(grid["x"] + x, grid["y"] + y) for x in range(grid["w"]) for y in range(grid["h"])}
        assert not cells & places, panel["title"]
        assert grid["x"] + grid["w"] <= 24
        places |= cells


def test_prometheus_accepts_the_rules():
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not here; it checks the rules: promtool check rules deploy/monitoring/alerts.yaml")
    done = subprocess.run(
        ["promtool", "check", "rules", str(FOLDER / "alerts.yaml")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
