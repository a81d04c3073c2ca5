"""Settings keys (`http.port`): which exist, what is known of each, which one a wrong one meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

ENV_PREFIX = "ULAK_"


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    field: FieldInfo

    @property
    def env(self) -> str:
        return env_of(self.name)

    @property
    def also(self) -> tuple[str, ...]:
        """Foreign environment names that set it; see `section.also`."""
        extra = self.field.json_schema_extra
        names = extra.get("also") if isinstance(extra, dict) else None
        return tuple(map(str, names)) if isinstance(names, list) else ()

    @property
    def secret(self) -> bool:
        return self.field.annotation is SecretStr

    @property
    def table(self) -> type[BaseModel] | None:
        """Of a list of tables, `[[changes.registry]]`: what each of them is."""
        inner = get_args(self.field.annotation)
        return inner[0] if len(inner) == 2 and inner[1] is ... and _is_model(inner[0]) else None


def env_of(name: str) -> str:
    return ENV_PREFIX + name.replace(".", "__").upper()


def name_of(env: str) -> str:
    return env.removeprefix(ENV_PREFIX).lower().replace("__", ".")


def sections(model: type[BaseModel], name: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """The model itself under its name, then all below it, in the order in which they are written."""
    yield name, model
    for part, field in model.model_fields.items():
        if _is_section(field):
            yield from sections(field.annotation, _join(name, part))  # type: ignore[arg-type]


def own_keys(name: str, model: type[BaseModel]) -> list[Key]:
    """The keys of one section, without those of the sections in it."""
    return [Key(_join(name, part), field) for part, field in model.model_fields.items() if not _is_section(field)]


def keys(model: type[BaseModel]) -> dict[str, Key]:
    return {key.name: key for name, section in sections(model) for key in own_keys(name, section)}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The key that was probably meant. The last word counts first: `htp.port` and `port` both mean `http.port`."""
    candidates = list(known)
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    if close:
        return close[0]
    endings = {candidate.rpartition(".")[2]: candidate for candidate in reversed(candidates)}
    ending = difflib.get_close_matches(name.rpartition(".")[2], endings, n=1, cutoff=0.75)
    return endings[ending[0]] if ending else None


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """By whole name; an empty section stays, since its name may be misspelt."""
    flat: dict[str, Any] = {}
    for part, value in values.items():
        name = _join(prefix, part)
        flat.update(flatten(value, name) if isinstance(value, Mapping) and value else {name: value})
    return flat


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        place = nested
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


def value_at(settings: BaseModel, name: str) -> Any:
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _is_section(field: FieldInfo) -> bool:
    return _is_model(field.annotation)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _join(prefix: str, part: str) -> str:
    return f"{prefix}.{part}" if prefix else part
