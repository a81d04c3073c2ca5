"""Plain callables as work: pickled on the caller's thread, so that what cannot be pickled is the caller's to know."""

from __future__ import annotations

from collections.abc import Callable
from pickle import dumps, loads
from types import FunctionType
from typing import Any

from ulak.compute.carriage import CALL, CHUNK, OBJECT, PROTOCOL, uncarry
from ulak.compute.errors import UnpicklableResult
from ulak.compute.model import TaskStatus
from ulak.compute.wire import LARGEST_BYTES
from ulak.compute.work import Outcome, Work
from ulak.errors import Invalid

_KNOWN_FUNCTIONS = 1024


class Calls:
    """Turns calls into messages. A plain function is pickled by name, always to the same bytes, so once is enough."""

    def __init__(self) -> None:
        self._names: dict[Callable[..., Any], bytes] = {}

    def one(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if type(function) is not FunctionType:
            return OBJECT, _fitting(dumps((function, args, kwargs), PROTOCOL))
        name = self._names.get(function) or self._learn(function)
        return CALL, name, _fitting(dumps((args, kwargs), PROTOCOL))

    def chunk(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        name = self._names.get(function) if type(function) is FunctionType else dumps(function, PROTOCOL)
        return CHUNK, name or self._learn(function), _fitting(dumps(calls, PROTOCOL))

    def _learn(self, function: Callable[..., Any]) -> bytes:
        if len(self._names) >= _KNOWN_FUNCTIONS:
            self._names.clear()
        name = self._names[function] = dumps(function, PROTOCOL)
        return name


def _fitting(blob: bytes) -> bytes:
    if len(blob) > LARGEST_BYTES:
        raise Invalid(f"the arguments pickle to {len(blob)} bytes, more than a message can hold; pass a path instead")
    return blob


def settle_call(work: Work, outcome: Outcome) -> None:
    """Give a call's future its outcome; nothing that happens while unpickling may reach the dispatcher."""
    future = work.future
    future.work = None  # the two need each other no more
    if outcome.status is TaskStatus.SUCCESS:
        try:
            value = loads(outcome.blob)
        except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
            future.settle(None, unloadable(work.name, error))
        else:
            future.settle(value)
    elif outcome.status is TaskStatus.CANCELLED:
        future.set_cancelled()
    else:
        future.settle(None, outcome.error or failure(work.name, outcome.blob))


def failure(name: str, blob: bytes) -> BaseException:
    try:
        return uncarry(blob)
    except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
        return unloadable(name, error)


def unloadable(name: str, error: BaseException) -> UnpicklableResult:
    answer = UnpicklableResult(f"{name} finished, but its result cannot be unpickled here: {error!r}")
    answer.__cause__ = error
    return answer
