"""The base of every settings section: frozen, and closed to keys that nobody reads."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.config import JsonDict


class Section(BaseModel):
    # Defaults are checked too, so a wrong bound shows up when the section is first made and not at a user's.
    # An error does not quote what was given: there may be a password in it.
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True
    )


def also(*names: str) -> JsonDict:
    """For `Field(json_schema_extra=also("QUEUE_CAPACITY"))`: foreign variables that set it where ULAK_* does not."""
    return {"also": list(names)}
