"""The glossary has every word that the code uses for the architecture, for a job's life and for lanes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from ulak.actions import model as actions
from ulak.changes import model as changes
from ulak.compute import model as compute
from ulak.dispatch import model as dispatch
from ulak.notify import model as notify
from ulak.settings import Settings
from ulak.spine import loops
from ulak.spine.handler import LaneName
from ulak.spine.job import JobEvent, State

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
DEFINED = set(re.findall(r"^\| \*\*([^*]+)\*\* \|", GLOSSARY, re.MULTILINE))
ARCHITECTURE = {
    "spine", "room", "door", "host", "port", "store", "unit", "verb", "loop", "writer", "line",
    "adapter", "seam", "leaf", "namespace", "channel", "template", "bus", "scope",
    "job", "timer", "event", "outcome", "worker", "handler", "lane", "breaker",
}  # fmt: skip
# Words that are the house's own, and stay because they explain themselves in a sentence.
POETIC = {
    "gate", "tail", "alarm", "rescuer", "pruner", "settler", "relay", "bury", "redrive", "snooze", "suspect",
    "poison", "behind", "slot", "lane", "floor", "credit", "seal", "ballast", "fleet", "probe", "uncertain",
    "held", "hot route",
}  # fmt: skip
LOOPS = Path(loops.__file__).parent
STATES = {
    "notification": notify.Status,
    "help task": dispatch.TaskState,
    "offer": dispatch.OfferState,
    "helper": dispatch.HelperStatus,
    "task": compute.TaskStatus,
    "sync": changes.SyncStatus,
    "verdict": changes.SyncVerdict,
    "run": actions.RunState,
    "step": actions.StepState,
    "address": actions.VerifyStatus,
}
ROOMS = {"notify", "dispatch", "compute", "changes", "actions"}


def test_every_state_event_and_lane_is_defined():
    words = {state.name.lower() for state in State} | {word.value for word in JobEvent} | set(get_args(LaneName))
    assert sorted(words - DEFINED) == []


def test_every_word_of_the_architecture_is_defined_once():
    roles = {path.stem for path in LOOPS.glob("*er.py") if "_" not in path.stem}
    assert len(roles) > 4
    assert sorted((ARCHITECTURE | POETIC | roles) - DEFINED) == []
    defined = re.findall(r"^\| \*\*([^*]+)\*\* \|", GLOSSARY, re.MULTILINE)
    assert sorted(defined) == sorted(set(defined))


def test_every_state_of_a_rooms_things_is_defined_once():
    rows = re.findall(r"^\| ([a-z ]+) `(\w+)` \|", GLOSSARY, re.MULTILINE)
    wanted = [(noun, state.value) for noun, states in STATES.items() for state in states]
    assert sorted(rows) == sorted(wanted)


def test_every_room_that_has_settings_is_named():
    rooms = ROOMS & set(Settings.model_fields)
    assert [name for name in sorted(rooms) if f"`{name}`" not in GLOSSARY] == []
