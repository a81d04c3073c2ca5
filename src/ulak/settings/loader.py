"""Reads the settings: a TOML file, over it the environment, over it arguments; and remembers where each came from."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from ulak.errors import Misconfigured, NotFound
from ulak.masking import mask_text, mask_url
from ulak.settings.key import ENV_PREFIX, Key, env_of, flatten, keys, name_of, nearest, nest, sections
from ulak.settings.line import lines_of
from ulak.settings.tree import Settings

DEFAULT_FILE = "ulak.toml"
CONFIG_VARIABLE = "ULAK_CONFIG"
_KEYS = keys(Settings)
_SECTIONS = {name for name, _ in sections(Settings) if name}


@dataclass(frozen=True, slots=True)
class Loaded:
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
) -> Loaded:
    """Settings from file < environment < overrides (`{"http.port": 9000}`; None means not given)."""
    environment = os.environ if env is None else env
    layers = [
        _from_file(config_path or environment.get(CONFIG_VARIABLE)),
        _from_environment(environment),
        _from_overrides(overrides or {}),
    ]
    if problems := [problem for layer in layers for problem in layer.problems()]:
        raise Misconfigured("\n".join(problems))
    origins = {name: origin for layer in layers for name, origin in layer.origins.items()}
    try:
        return Loaded(
            Settings(**nest({name: layer.values[name] for layer in layers for name in layer.values})), origins
        )
    except ValidationError as error:
        raise Misconfigured("\n".join(_problem(details, origins) for details in error.errors())) from None


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
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): value for name, value in ours.items() if name_of(name) in _KEYS}
    return _Layer(flatten(source()), {name_of(name): f"env {name}" for name in ours}, env_of)


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
    reason = details["msg"].removeprefix("Value error, ")
    return f"{origins.get(name, 'settings')}: {name}{_given(_KEYS.get(name), details['input'])}: {reason}"


def _given(key: Key | None, value: Any) -> str:
    """The refused value, for a reader who looks for a typing error; never that of a secret."""
    if key is None or key.secret or not isinstance(value, str | int | float):
        return ""
    if not isinstance(value, str):
        return f" = {value!r}"
    if not key.field.repr and "://" not in value:  # an address in a form that we don't know may be all password
        return ""
    return f" = {mask_text(mask_url(value))!r}"
