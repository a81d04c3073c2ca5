"""Alerts and dashboard: they parse, every metric that they name exists, and nothing that should stay 0 is left out."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from tests.deploy.tool import DEPLOY, ROOT, run

FOLDER = DEPLOY / "monitoring"
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
    run("promtool", "check", "rules", str(FOLDER / "alerts.yaml"))


@pytest.mark.parametrize(("rises", "number"), [(False, 0), (True, 1)])
def test_an_alert_fires_when_what_should_stay_0_rises_and_only_then(tmp_path, rises, number):
    """Prometheus itself plays an hour: the metric stays 0, or is 1000 from the tenth minute on."""
    watched = [rule for group, rule in rules() if group == "ulak-should-stay-0"]
    series = {name for rule in watched for name in named(rule["expr"])}
    played = {
        "interval": "1m",
        "input_series": [{"series": name, "values": "0x9 1000x50" if rises else "0x60"} for name in sorted(series)],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertstate="firing", alertname="{rule["alert"]}"}}) or vector(0)',
                "eval_time": "15m",
                "exp_samples": [{"labels": "{}", "value": number}],
            }
            for rule in watched
        ],
    }
    document = {"rule_files": [str(FOLDER / "alerts.yaml")], "evaluation_interval": "1m", "tests": [played]}
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    run("promtool", "test", "rules", str(tmp_path / "alerts.yaml"))
