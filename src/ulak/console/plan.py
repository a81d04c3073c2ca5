"""A plan as a graph: downwards, as time goes; conditions stand on the wires, and a run fills the boxes with states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ulak.console.format import hue
from ulak.console.page import Found

TALL, GAP = 44, 42
MAX_NOTE = 38  # letters that fit a box on a telephone


def draw_plan(
    plan: Mapping[str, Any], found: Found, states: Mapping[int, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Boxes from the top, each with its wire; without a run, every box is one that can start."""
    say, steps = found.say, plan["steps"]
    boxes = []
    for place, step in enumerate(steps):
        run = (states or {}).get(step["step_order"])
        boxes.append(
            {
                "y": place * (TALL + GAP),
                "hue": hue(run["state"]) if run else "ready",
                "name": f"{step['step_order']} {say(step['channel_type'])}",
                "note": _note(step, run, found),
                "wire": _wire(step, steps[place - 1], found) if place else "",
            }
        )
    told = "; ".join(f"{box['name']}: {box['note']}" for box in boxes)
    return {"boxes": boxes, "height": len(steps) * (TALL + GAP) - GAP, "told": told, "tall": TALL, "gap": GAP}


def _note(step: Mapping[str, Any], run: Mapping[str, Any] | None, found: Found) -> str:
    if run is not None:
        return found.say(str(run["state"]).replace("_", " ")) + (
            f" · {run['error_code']}" if run.get("error_code") else ""
        )
    text = step.get("template") or step.get("subject") or step.get("body") or ""
    return text if len(text) <= MAX_NOTE else f"{text[: MAX_NOTE - 1]}…"


def _wire(step: Mapping[str, Any], before: Mapping[str, Any], found: Found) -> str:
    say, parts = found.say, []
    if step.get("condition"):
        parts.append(say("if {condition}", condition=step["condition"][:40]))
    if before.get("receipt_seconds"):
        parts.append(say("no receipt in {time}", time=say.seconds(before["receipt_seconds"])))
    if step.get("delay_seconds"):
        parts.append(say("after {time}", time=say.seconds(step["delay_seconds"])))
    if before.get("on_failure") == "stop":
        parts.append(say("only if {n} went out", n=before["step_order"]))
    return ", ".join(parts) or say("then")
