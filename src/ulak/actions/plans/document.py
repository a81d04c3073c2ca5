"""Plans as people write them: checked as a whole, in JSON or in YAML, where an error names its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta

from ulak import faults
from ulak.actions.model import (
    ADDRESSED,
    MAX_NAME,
    MAX_NUMBER,
    MAX_STEPS,
    PLAIN,
    ActionPlan,
    ChannelType,
    OnFailure,
    OnUncertain,
    PlanStep,
)
from ulak.errors import Error, Invalid
from ulak.faults import Problems

MAX_TEXT = 65_536
MAX_YAML_CHARS = 1_000_000
WHAT = "the plan"

Check = Callable[[str], object]
Seconds = Annotated[float, Meta(ge=0, le=31_536_000)]


class StepForm(msgspec.Struct, forbid_unknown_fields=True):
    """A step as it is written."""

    step_order: Annotated[int, Meta(ge=1, le=10_000)]
    channel_type: ChannelType
    template: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    subject: Annotated[str, Meta(max_length=998)] | None = None
    body: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)] | None = None
    delay_seconds: Seconds | None = None
    condition: Annotated[str, Meta(min_length=1, max_length=2000)] | None = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=120)] | None = None
    retries: Annotated[int, Meta(ge=0, le=20)] | None = None
    on_failure: OnFailure | None = None
    on_uncertain: OnUncertain | None = None
    receipt_seconds: Annotated[float, Meta(gt=0, le=259_200)] | None = None


class PlanForm(msgspec.Struct, forbid_unknown_fields=True):
    """A plan as it is written. `id` and `version` are taken from where it is put."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME, pattern=PLAIN)]
    steps: Annotated[list[StepForm], Meta(min_length=1, max_length=MAX_STEPS)]
    critical: bool = False


class Texts(msgspec.Struct, frozen=True):
    """The checks of a plan's texts: each raises Invalid for a text that can't be used."""

    text: Check
    condition: Check
    template: Check


def check_plan(document: Any, texts: Texts, prefix: str = "") -> tuple[PlanForm | None, Problems]:
    """The plan, or everything that is wrong with it."""
    problems = faults.of_document(document, PlanForm, prefix)
    if problems:
        return None, problems
    try:
        form = msgspec.convert(document, PlanForm)
    except msgspec.ValidationError as error:
        return None, [(prefix.rstrip("."), str(error))]
    problems = _of_order(form.steps, prefix)
    for place, step in enumerate(form.steps):
        problems += _of_step(step, texts, f"{prefix}steps.{place}.")
    return (None if problems else form), problems


def parse_plan(document: Any, texts: Texts) -> PlanForm:
    form, problems = check_plan(document, texts)
    if form is None:
        raise faults.refusal(WHAT, problems)
    return form


def _of_order(steps: Sequence[StepForm], prefix: str) -> Problems:
    seen: set[int] = set()
    problems: Problems = []
    for place, step in enumerate(steps):
        if step.step_order in seen:
            problems.append(
                (f"{prefix}steps.{place}.step_order", f"is {step.step_order} a second time; number each once")
            )
        seen.add(step.step_order)
    return problems


def _of_step(step: StepForm, texts: Texts, prefix: str) -> Problems:
    problems: Problems = []
    if step.template is not None and (step.body is not None or step.subject is not None):
        problems.append((f"{prefix}template", "must be left out when subject or body is given"))
    if step.template is None and step.body is None and step.channel_type in ADDRESSED:
        problems.append((f"{prefix}body", "is required (or give template)"))
    looks = (
        ("template", texts.template),
        ("subject", texts.text),
        ("body", texts.text),
        ("condition", texts.condition),
    )
    for name, look in looks:
        given = getattr(step, name)
        if given is not None:
            problems += looked_at(given, look, prefix + name)
    return problems


def looked_at(text: str, look: Check, name: str) -> Problems:
    """Return the problems of a text; empty without any."""
    try:
        look(text)
    except Error as error:
        return [(name, str(error))]
    return []


def to_steps(form: PlanForm) -> tuple[PlanStep, ...]:
    """In the order in which they are run."""
    return tuple(_step(one) for one in sorted(form.steps, key=lambda step: step.step_order))


def _step(form: StepForm) -> PlanStep:
    given = {name: getattr(form, name) for name in form.__struct_fields__ if getattr(form, name) is not None}
    return PlanStep(**given)


def document_of(plan: ActionPlan) -> dict[str, Any]:
    """As it was written: a form that can be put again."""
    return {
        "id": plan.id,
        "name": plan.name,
        "critical": plan.critical,
        "steps": [msgspec.to_builtins(step) for step in plan.steps],
    }


# YAML


def to_yaml(plans: Iterable[ActionPlan]) -> str:
    documents = {"plans": [document_of(plan) for plan in plans]}
    return yaml.safe_dump(documents, sort_keys=False, allow_unicode=True, width=100)


def from_yaml(text: str, texts: Texts) -> list[tuple[int | None, PlanForm]]:
    """Plans with their ids, if they have some. One Invalid names every mistake with its line."""
    document, lines = _read_yaml(text)
    listed = document.get("plans") if isinstance(document, dict) and "plans" in document else [document]
    if not isinstance(listed, list) or not listed:
        raise Invalid(
            "line 1: a file has `plans:` with a list, or one plan", fields=[("plans", "line 1: must be a list")]
        )
    prefix = "plans.{}." if isinstance(document, dict) and "plans" in document else ""
    found: list[tuple[int | None, PlanForm]] = []
    problems: Problems = []
    for place, one in enumerate(listed):
        at = prefix.format(place)
        identifier, form, wrong = _plan_of(one, texts, at)
        problems += [(name, f"line {_line(lines, name)}: {why}") for name, why in wrong]
        if form is not None and not wrong:
            found.append((identifier, form))
    if problems:
        raise faults.refusal("the file", problems)
    return found


def _plan_of(document: Any, texts: Texts, prefix: str) -> tuple[int | None, PlanForm | None, Problems]:
    rest = (
        {name: value for name, value in document.items() if name not in ("id", "version")}
        if isinstance(document, dict)
        else document
    )
    form, problems = check_plan(rest, texts, prefix)
    identifier = document.get("id") if isinstance(document, dict) else None
    if identifier is not None and not (type(identifier) is int and 1 <= identifier <= MAX_NUMBER):
        problems = [*problems, (f"{prefix}id", "must be a whole number of at least 1")]
    return identifier, form, problems


def _line(lines: dict[str, int], name: str) -> int:
    """Of a field, or of the nearest thing around it: a field that is missing has no line."""
    while name and name not in lines:
        name = name.rpartition(".")[0]
    return lines.get(name, 1)


def _read_yaml(text: str) -> tuple[Any, dict[str, int]]:
    if len(text) > MAX_YAML_CHARS:
        raise Invalid(f"the file has more than {MAX_YAML_CHARS:,} characters; split it", fields=[("", "is too long")])
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        _refuse_aliases(text)
        lines: dict[str, int] = {}
        _note_lines(node, "", lines)
        return yaml.safe_load(text), lines
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise Invalid(
            f"line {line}: {error.problem or 'is not YAML'}", fields=[("", f"line {line}: is not YAML")]
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Invalid(f"the file is not YAML: {error}", fields=[("", "is not YAML")]) from None


def _refuse_aliases(text: str) -> None:
    """A few aliases of aliases make a document of any size."""
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.AliasToken):
            line = token.start_mark.line + 1
            raise Invalid(
                f"line {line}: aliases (*{token.value}) are not taken; write it out", fields=[("", f"line {line}")]
            )


def _note_lines(node: yaml.Node | None, name: str, lines: dict[str, int]) -> None:
    if node is None:
        return
    lines.setdefault(name, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = f"{name}.{key.value}" if name else str(key.value)
            line = key.start_mark.line + 1
            if inner in lines:
                why = f"line {line}: is there a second time; the first is on line {lines[inner]}"
                raise Invalid(f"{inner} {why}", fields=[(inner, why)])
            lines[inner] = line
            _note_lines(value, inner, lines)
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            _note_lines(value, f"{name}.{place}" if name else str(place), lines)
