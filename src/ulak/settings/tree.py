"""All settings of one Ulak: the sections under their names."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ulak.settings.actions import Actions
from ulak.settings.bus import Bus
from ulak.settings.changes import Changes
from ulak.settings.channels import Channels
from ulak.settings.client import Client
from ulak.settings.compute import Compute
from ulak.settings.console import Console
from ulak.settings.dispatch import Dispatch
from ulak.settings.http import Http
from ulak.settings.log import Log
from ulak.settings.notify import Notify
from ulak.settings.spine import Spine
from ulak.settings.telemetry import Tracing
from ulak.settings.worker import Worker

_FILE = "sqlite:///"
_NO_FILE = {"", "..", ":memory:"}
STORE_FORMS = ("memory:", _FILE, "postgresql://", "postgres://")


class Settings(BaseSettings):
    """Where Ulak keeps its work, and the sections."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="ULAK_", env_nested_delimiter="__", hide_input_in_errors=True
    )

    # Left out of the repr, because a PostgreSQL address may carry a password.
    store: str = Field(
        "sqlite:///ulak.db",
        repr=False,
        description='Where work is kept: "memory:", "sqlite:///file" or "postgresql://user:password@host/database".',
    )
    http: Http = Http()
    client: Client = Client()
    worker: Worker = Worker()
    spine: Spine = Spine()
    notify: Notify = Notify()
    channels: Channels = Channels()
    compute: Compute = Compute()
    bus: Bus = Bus()
    actions: Actions = Actions()
    dispatch: Dispatch = Dispatch()
    changes: Changes = Changes()
    console: Console = Console()
    log: Log = Log()
    telemetry: Tracing = Tracing()

    @field_validator("store")
    @classmethod
    def _is_a_known_store(cls, value: str) -> str:
        if not value.startswith(STORE_FORMS):
            raise ValueError(f"no such kind of store; it begins with one of {', '.join(STORE_FORMS)}")
        if value.startswith(_FILE) and Path(value.removeprefix(_FILE)).name in _NO_FILE:
            raise ValueError("it names no file; write it like sqlite:///ulak.db, or memory: for one that is not kept")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Settings() is the defaults and nothing else: only `load` looks at files and the environment."""
        return (init_settings,)
