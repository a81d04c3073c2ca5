"""Reads the settings: a TOML file, over it the environment, over it arguments; and remembers where each came from."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from ulak import complaint
from ulak.errors import Misconfigured, NotFound
from ulak.masking import mask_text, mask_url
from ulak.settings.key import ENV_PREFIX, Key, env_of, flatten, keys, name_of, nearest, nest, own_keys, sections
from ulak.settings.line import lines_of
from ulak.settings.tree import Settings

DEFAULT_FILE = "ulak.toml"
CONFIG_VARIABLE = "ULAK_CONFIG"
_KEYS = keys(Settings)
_SECTIONS = {name for name, _ in sections(Settings) if name}


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    settings: Settings
    _origins: Mapping[str, str] = field(repr=False)

    def origin(self, key: str) -> str:
        """Where the value of `http.port` comes from: default, file and line, environment variable, or argument."""
        if key not in _KEYS:
            raise NotFound(_unknown(key))
        return self._origins.get(key, "default")


@dataclass(frozen=True, slots=True)
class _Layer:
    values: Mapping[str, Any]
    origins: Mapping[str, str]  # of all that was given, known or not
    spell: Callable[[str], str] = str  # how a key is written there

    def problems(self) -> list[str]:
        return [f"{origin}: {_unknown(name, self.spell)}" for name, origin in self.origins.items() if name not in _KEYS]


def load(
    config_path: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """Settings from file < foreign environment < environment < overrides (`{"http.port": 9000}`; None: not given)."""
    environment = os.environ if env is None else env
    layers = [
        _from_file(config_path or environment.get(CONFIG_VARIABLE)),
        _from_foreign(environment),
        _from_environment(environment),
        _from_overrides(overrides or {}),
    ]
    problems = [problem for layer in layers for problem in layer.problems()]
    origins = {name: origin for layer in layers for name, origin in layer.origins.items()}
    known = {name: value for layer in layers for name, value in layer.values.items() if name in _KEYS}
    try:
        settings = Settings(**nest(known))
    except ValidationError as error:
        problems += [_problem(details, origins) for details in error.errors()]
    if problems:
        raise Misconfigured("\n".join(problems))
    return LoadedSettings(settings, origins)


def _from_file(given: str | Path | None) -> _Layer:
    path = Path(given or DEFAULT_FILE)
    if not given and not path.exists():
        return _Layer({}, {})
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors put a mark at the beginning
        found = flatten(tomllib.loads(text))
    except OSError as error:
        raise Misconfigured(f"{path}: can't be read ({error.strerror}); check --config and {CONFIG_VARIABLE}") from None
    except ValueError as error:  # wrong TOML, or bytes that are not UTF-8
        raise Misconfigured(f"{path}: is not TOML: {error}") from None
    values = {name: value for name, value in found.items() if value != {} or name not in _SECTIONS}
    lines = lines_of(text)
    return _Layer(values, {name: f"{path}:{lines[name]}" if name in lines else str(path) for name in values})


def _from_environment(environment: Mapping[str, str]) -> _Layer:
    ours = {name.upper(): value for name, value in environment.items() if name.upper().startswith(ENV_PREFIX)}
    ours.pop(CONFIG_VARIABLE, None)
    values = _parsed({name_of(name): value for name, value in ours.items() if name_of(name) in _KEYS})
    return _Layer(values, {name_of(name): f"env {name}" for name in ours}, env_of)


def _from_foreign(environment: Mapping[str, str]) -> _Layer:
    """Names that the environment of an older system has; capitals don't count, as they did not there."""
    meant = [(name.upper(), key.name) for key in _KEYS.values() for name in key.also]
    given = {key: name for name in environment for foreign, key in meant if name.upper() == foreign}
    values = _parsed({key: environment[name] for key, name in given.items()})
    return _Layer(values, {key: f"env {name}" for key, name in given.items()})


def _parsed(texts: Mapping[str, str]) -> dict[str, Any]:
    source = EnvSettingsSource(Settings)
    source.env_vars = {env_of(name).lower(): text for name, text in texts.items()}
    return flatten(source())


def _from_overrides(overrides: Mapping[str, Any]) -> _Layer:
    values = {name: value for name, value in overrides.items() if value is not None}
    return _Layer(values, dict.fromkeys(values, "argument"))


def _unknown(name: str, spell: Callable[[str], str] = str) -> str:
    if name in _SECTIONS:
        first = next(key for key in _KEYS if key.startswith(f"{name}."))
        return f"{spell(name)} is a section, not a value; set its keys, for example {spell(first)}"
    meant = nearest(name, [*_KEYS, *sorted(_SECTIONS)])
    hint = f"did you mean {spell(meant)}?" if meant else "`ulak config show` lists all keys"
    return f"unknown key {spell(name)}; {hint}"


def _problem(details: ErrorDetails, origins: Mapping[str, str]) -> str:
    path = [str(part) for part in details["loc"]]
    name = next((name for end in range(len(path), 0, -1) if (name := ".".join(path[:end])) in _KEYS), ".".join(path))
    key = _KEYS.get(name)
    table = None if key is None else key.table
    inside = path[name.count(".") + 1 :]  # of a list of tables: which one, and its key
    if table is not None and len(inside) > 1:
        key = _keys_in(table).get(inside[1])
    is_unknown = details["type"] == "extra_forbidden"
    reason = _unknown_in(inside[1:], table) if is_unknown else complaint.of_validator(details["msg"])
    place = name + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in inside)
    given = _given(key, details["input"])
    return f"{origins.get(name, 'settings')}: {place}{given}: {reason.removeprefix('Value error, ')}"


def _unknown_in(path: list[str], table: type[BaseModel] | None) -> str:
    meant = nearest(".".join(path), _keys_in(table))
    return (
        f"unknown key; did you mean {meant}?" if meant else "unknown key; the reference page of the settings lists all"
    )


def _keys_in(table: type[BaseModel] | None) -> dict[str, Key]:
    return {} if table is None else {key.name: key for key in own_keys("", table)}


def _given(key: Key | None, value: Any) -> str:
    """The refused value, for a reader who looks for a typing error; never that of a secret."""
    if key is None or key.secret or not isinstance(value, str | int | float):
        return ""
    if not isinstance(value, str):
        return f" = {value!r}"
    if not key.field.repr and "://" not in value:  # an address in a form that we don't know may be all password
        return ""
    return f" = {mask_text(mask_url(value))!r}"
