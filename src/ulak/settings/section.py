"""The base of every settings section, frozen and closed to keys that nobody reads; and types that several have."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict
from pydantic.config import JsonDict
from pydantic_settings import NoDecode


class Section(BaseModel):
    # Defaults are checked too, so a wrong bound shows up when the section is first made and not at a user's.
    # An error does not quote what was given: there may be a password in it.
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True
    )


def also(*names: str) -> JsonDict:
    """For `Field(json_schema_extra=also("QUEUE_CAPACITY"))`: foreign variables that set it where ULAK_* does not."""
    return {"also": list(names)}


def _split(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            raise ValueError('must be a list: a,b,c or ["a", "b", "c"]') from None
    return [part.strip() for part in value.split(",") if part.strip()]


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("no such time zone; write it like Europe/Istanbul or UTC") from None
    return name


# In the environment a list is text: with commas in between, or as a JSON list.
TextList = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
TimeZone = Annotated[str, AfterValidator(_check_zone)]
