"""Plans in JSON and YAML: what is right comes back the same, what is wrong is told with its name and its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak.actions.model import CHANNEL_TYPES, ActionPlan
from ulak.actions.plans import document as plans
from ulak.actions.plans.render import check_condition, check_text
from ulak.errors import Invalid

TEXTS = plans.Texts(check_text, check_condition, lambda name: None)
PLAN = {"name": "Pump", "steps": [{"step_order": 1, "channel_type": "push", "body": "The pump stands still"}]}


def _fields(document) -> set[str]:
    with pytest.raises(Invalid) as caught:
        plans.parse_plan(document, TEXTS)
    return {name for name, _ in caught.value.fields}


def test_steps_are_run_in_the_order_of_their_numbers():
    form = plans.parse_plan(
        {
            "name": "x",
            "steps": [
                {"step_order": 9, "channel_type": "audit"},
                {"step_order": 2, "channel_type": "sms", "body": "b", "retries": 0},
            ],
        },
        TEXTS,
    )
    assert [step.step_order for step in plans.to_steps(form)] == [2, 9]
    assert plans.to_steps(form)[0].retries == 0


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"name": ""}, {"name"}),
        ({"steps": []}, {"steps"}),
        ({"colour": 1}, {"colour"}),
        ({"steps": [{"channel_type": "fax"}]}, {"steps.0.step_order", "steps.0.channel_type"}),
        ({"steps": [{"step_order": 1, "channel_type": "email"}]}, {"steps.0.body"}),
        ({"steps": [{"step_order": 1, "channel_type": "email", "body": "{{ x"}]}, {"steps.0.body"}),
        (
            {"steps": [{"step_order": 1, "channel_type": "email", "body": "b", "template": "welcome"}]},
            {"steps.0.template"},
        ),
        ({"steps": [{"step_order": 1, "channel_type": "audit"}] * 2}, {"steps.1.step_order"}),
        ({"steps": [{"step_order": 1, "channel_type": "audit", "retries": 99}]}, {"steps.0.retries"}),
        ({"steps": [{"step_order": 1, "channel_type": "audit", "on_failure": "maybe"}]}, {"steps.0.on_failure"}),
        ({"name": "Pump\r\nBcc: all"}, {"name"}),
        ({"name": "Pump\n"}, {"name"}),
        ({"name": "Pump\u2028"}, {"name"}),
        ({"steps": [{"step_order": 1, "channel_type": "audit", "condition": "x =="}]}, {"steps.0.condition"}),
        (
            {"steps": [{"step_order": 1, "channel_type": "audit", "condition": "a %}x{% endif %}{% if b"}]},
            {"steps.0.condition"},
        ),
        ({"steps": [{"step_order": 1, "channel_type": "audit", "condition": "a %}1{% else"}]}, {"steps.0.condition"}),
    ],
)
def test_every_wrong_field_of_a_plan_is_named(change, fields):
    assert _fields({**PLAN, **change}) == fields


def test_a_mistake_in_yaml_is_told_with_its_line():
    text = "plans:\n  - id: 21\n    name: Pump\n    steps:\n      - step_order: 1\n        channel_type: fax\n"
    with pytest.raises(Invalid) as caught:
        plans.from_yaml(text, TEXTS)
    assert caught.value.fields == [("plans.0.steps.0.channel_type", caught.value.fields[0][1])]
    assert caught.value.fields[0][1].startswith("line 6: ")


def test_a_key_that_is_there_twice_and_an_id_that_is_not_a_number_are_told_with_their_lines():
    step = "[{step_order: 1, channel_type: audit}]"
    for text, line in (
        (f"name: a\nname: b\nsteps: {step}\n", "line 2: "),
        (f"plans:\n  - name: a\n    id: true\n    steps: {step}\n", "line 3: "),
    ):
        with pytest.raises(Invalid) as caught:
            plans.from_yaml(text, TEXTS)
        assert caught.value.fields[0][1].startswith(line)


@pytest.mark.parametrize("text", ["plans: [", "a: &x 1\nb: *x", "- \x07", "plans: 3", ""])
def test_what_is_not_a_file_of_plans_is_refused(text):
    with pytest.raises(Invalid):
        plans.from_yaml(text, TEXTS)


_words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=30)
_steps = st.fixed_dictionaries(
    {"channel_type": st.sampled_from(CHANNEL_TYPES), "body": _words.filter(lambda text: "{{" not in text)},
    optional={
        "subject": _words.filter(lambda text: "{{" not in text),
        "delay_seconds": st.floats(0, 1000).map(lambda number: round(number, 3)),
        "retries": st.integers(0, 20),
        "on_failure": st.sampled_from(["continue", "stop"]),
        "on_uncertain": st.sampled_from(["resend", "hold"]),
        "receipt_seconds": st.integers(1, 1000),
    },
)


@given(name=_words, critical=st.booleans(), steps=st.lists(_steps, min_size=1, max_size=5))
def test_a_plan_that_is_exported_is_imported_as_the_same(name, critical, steps):
    document = {
        "name": name,
        "critical": critical,
        "steps": [{"step_order": place, **step} for place, step in enumerate(steps, 1)],
    }
    form = plans.parse_plan(document, TEXTS)
    plan = ActionPlan(21, 1, form.name, form.critical, plans.to_steps(form))
    ((identifier, again),) = plans.from_yaml(plans.to_yaml([plan]), TEXTS)
    assert identifier == 21
    assert ActionPlan(21, 1, again.name, again.critical, plans.to_steps(again)) == plan


def test_a_plan_without_steps_is_told_that_items_are_missing():
    with pytest.raises(Invalid) as caught:
        plans.parse_plan({**PLAN, "steps": []}, TEXTS)
    assert caught.value.fields == [("steps", "must be a list of at least 1 items")]
