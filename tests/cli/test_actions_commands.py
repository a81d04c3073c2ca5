"""`ulak actions` on the file of this folder: what was asked for is explained, a line for each decision."""

from __future__ import annotations

import json

import pytest

STEPS = [
    {"step_order": 1, "channel_type": "audit", "body": "b"},
    {"step_order": 2, "channel_type": "push", "body": "b"},
]


@pytest.mark.parametrize("columns", ["40", "200"])
def test_every_line_of_an_explanation_begins_with_its_step(ulak, columns):
    made = ulak("actions", "plans", "add", json.dumps({"name": "Pump", "steps": STEPS}), "--json")
    asked = ulak("actions", "request", str(made["id"]), "e-1", "--json")
    lines = ulak("actions", "explain", asked["run_id"], COLUMNS=columns).splitlines()
    assert [line.split(":")[0] for line in lines] == ["run"]
    assert lines[0].startswith(f"run: accept: plan {made['id']} version 1 (")
