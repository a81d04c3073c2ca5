"""Plain callables as work: pickled on the caller's thread, so that what cannot be pickled is the caller's to know."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pickle import PicklingError, dumps
from types import FunctionType
from typing import Any

from ulak.compute.engine.work import Outcome, Work
from ulak.compute.errors import UnpicklableResult
from ulak.compute.model import TaskStatus
from ulak.compute.worker.parcel import SEGMENT_BYTES, Packed, Packer, unpack
from ulak.compute.worker.protocol import CALL, CHUNK, OBJECT, PROTOCOL, uncarry

_KNOWN_FUNCTIONS = 1024


class Calls:
    """Turns calls into messages.

    A function that workers can import is pickled by name, always to the same bytes, so once is enough. Others (lambdas,
    closures, what was typed into a prompt or a notebook) go whole, each time anew: what they refer to may have changed.
    """

    def __init__(self, *, by_value: bool) -> None:
        """By value: also what the main module defines goes whole."""
        self._names: dict[Callable[..., Any], bytes] = {}
        self._packer = Packer(SEGMENT_BYTES, by_value=by_value)

    def one(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        name = self._name(function)
        if name is None:
            return OBJECT, self._packer.pack((function, args, kwargs))
        return CALL, name, self._packer.pack((args, kwargs))

    def chunk(self, function: Callable[..., Any], columns: list[Any]) -> tuple[Any, ...]:
        name = self._name(function)
        return CHUNK, self._packer.dump(function) if name is None else name, self._packer.pack(columns)

    def _name(self, function: Callable[..., Any]) -> bytes | None:
        """The pickled name, or None for what has none that a worker could use."""
        if type(function) is not FunctionType:
            return None
        return self._names.get(function) or self._learn(function)

    def _learn(self, function: FunctionType) -> bytes | None:
        if self._packer.by_value and function.__module__ == "__main__":
            return None
        try:
            name = dumps(function, PROTOCOL)
        except (PicklingError, AttributeError):
            return None
        if len(self._names) >= _KNOWN_FUNCTIONS:
            self._names.clear()
        self._names[function] = name
        return name


def is_main_importable() -> bool:
    """Whether a worker can load the main module: not that of a prompt, a notebook, `-c` or standard input."""
    main = sys.modules.get("__main__")
    has_source = getattr(main, "__spec__", None) is not None or os.path.isfile(getattr(main, "__file__", None) or "")
    return has_source and not hasattr(sys, "ps1")


def settle_call(work: Work, outcome: Outcome) -> None:
    """Give a call's future its outcome; nothing that happens while unpickling may reach the dispatcher."""
    future = work.future
    if outcome.status is TaskStatus.SUCCESS:
        try:
            value = unpack(outcome.blob)
        except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
            future.settle(None, unloadable(work.name, error))
        else:
            future.settle(value)
    elif outcome.status is TaskStatus.CANCELLED:
        future.set_cancelled()
    else:
        future.settle(None, outcome.error or failure(work.name, outcome.blob))
    future.work = None  # the two need each other no more


def failure(name: str, blob: Packed) -> BaseException:
    try:
        return uncarry(unpack(blob))
    except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
        return unloadable(name, error)


def unloadable(name: str, error: BaseException) -> UnpicklableResult:
    answer = UnpicklableResult(f"{name} finished, but its result cannot be unpickled here: {error!r}")
    answer.__cause__ = error
    return answer
