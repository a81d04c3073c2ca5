"""The variables of a step's texts: the run's own, those that were mended, and the link to acknowledge by."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ulak import codec
from ulak.actions.model import ActionRun, PlanStep

ACKNOWLEDGE_URL = "acknowledge_url"


def variables_of(run: ActionRun, step: PlanStep, mended: dict[str, Any], link: Callable[[int], str]) -> dict[str, Any]:
    variables: dict[str, Any] = {**codec.decode(run.variables), **mended}
    if _mentions_link(step):
        variables.setdefault(ACKNOWLEDGE_URL, link(run.id))
    return variables


@lru_cache(maxsize=2000)
def _mentions_link(step: PlanStep) -> bool:
    """Signing one takes longer than most texts, and few have one."""
    if step.template is not None:
        return True
    return any(text is not None and ACKNOWLEDGE_URL in text for text in (step.body, step.subject, step.condition))
