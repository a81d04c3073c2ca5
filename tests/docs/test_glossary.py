"""The glossary has every word that the code uses for the architecture, for a job's life and for lanes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from ulak.settings import Settings
from ulak.spine.handler import LaneName
from ulak.spine.job import JobEvent, State

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
DEFINED = set(re.findall(r"^\| \*\*([^*]+)\*\* \|", GLOSSARY, re.MULTILINE))
ARCHITECTURE = {"spine", "room", "door", "host", "port", "store", "unit", "verb", "loop", "writer", "line"}
ROOMS = {"notify", "dispatch", "compute", "changes", "actions"}


def test_every_state_event_and_lane_is_defined():
    words = {state.name.lower() for state in State} | {word.value for word in JobEvent} | set(get_args(LaneName))
    assert sorted(words - DEFINED) == []


def test_every_word_of_the_architecture_is_defined_once():
    assert sorted(ARCHITECTURE - DEFINED) == []
    defined = re.findall(r"^\| \*\*([^*]+)\*\* \|", GLOSSARY, re.MULTILINE)
    assert sorted(defined) == sorted(set(defined))


def test_every_room_that_has_settings_is_named():
    rooms = ROOMS & set(Settings.model_fields)
    assert [name for name in sorted(rooms) if f"`{name}`" not in GLOSSARY] == []
