"""The signature of a handler: one argument, the job. A mistake is reported where the handler is declared."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from ulak.errors import Invalid
from ulak.spine.job import Job


def check_signature(kind: str, call: Callable[..., Any], wanted: Any) -> None:
    """Raise Invalid for a function that can't be called with a job, or that says it takes something else."""
    if not callable(call):
        raise Invalid(f"the handler of {kind} is {call!r:.80}; give a function that takes the job")
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):  # written in C: it has no signature
        return
    name = getattr(call, "__name__", "handler")
    try:
        signature.bind(None)
    except TypeError as error:
        raise Invalid(
            f"the handler of {kind}, {name}{signature}, can't be called with one argument, the job ({error}); "
            f"write it as {name}(job)"
        ) from None
    said = _annotation(call, signature)
    if not _takes_job(said):
        raise Invalid(f"the handler of {kind} is given a Job, but {name} says that it takes {_shown(said)}; write Job")
    if wanted is not None and (inner := typing.get_args(said)) and inner[0] not in {wanted, Any}:
        raise Invalid(
            f"the handler of {kind} is given Job[{_shown(wanted)}], but {name} says Job[{_shown(inner[0])}]; "
            "give both the same type"
        )


def _annotation(call: Callable[..., Any], signature: inspect.Signature) -> Any:
    """Of the first parameter; Any when there is none, or it can't be found out."""
    parameter = next(iter(signature.parameters.values()))
    if parameter.annotation is inspect.Parameter.empty or parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return Any
    try:
        return typing.get_type_hints(inspect.unwrap(getattr(call, "__func__", call))).get(parameter.name, Any)
    except Exception:  # noqa: BLE001 - a name that exists for the type checker only, or an object that is called
        return Any


def _takes_job(said: Any) -> bool:
    wanted = typing.get_origin(said) or said
    if wanted is Any or not isinstance(wanted, type) or getattr(wanted, "_is_protocol", False):
        return True
    return issubclass(Job, wanted)


def _shown(said: Any) -> str:
    return getattr(said, "__name__", str(said))
