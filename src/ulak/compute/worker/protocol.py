"""How work and its outcome cross the pipe: verbs, codes, and exceptions as bytes that are sure to load again."""

from __future__ import annotations

import traceback
from pickle import PicklingError, dumps, loads

from ulak.compute.errors import RemoteTraceback, UnpicklableResult

# Plain numbers, since they cross the pipe with every task.
CALL, OBJECT, CHUNK, SCRIPT = range(4)
OK, ERROR = range(2)
READINESS = 0  # the number of a worker's word on how its initializer went; work is numbered from 1
PROTOCOL = 5


def carry(error: BaseException) -> bytes:
    """An exception with its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        try:
            blob = dumps((error, text), PROTOCOL)
        except (PicklingError, AttributeError, TypeError):
            import cloudpickle  # for exceptions that a script or a prompt has defined

            blob = cloudpickle.dumps((error, text), PROTOCOL)
        loads(blob)
        return blob
    except Exception:  # noqa: BLE001 - whatever a task raises is its outcome
        stand_in = UnpicklableResult(f"{type(error).__qualname__}: {error} (the exception itself cannot be pickled)")
        return dumps((stand_in, text), PROTOCOL)


def uncarry(carried: tuple[BaseException, str]) -> BaseException:
    error, text = carried
    error.__cause__ = RemoteTraceback(text)
    return error


def unpicklable(value: object, error: BaseException) -> UnpicklableResult:
    kind = type(value).__qualname__
    return UnpicklableResult(f"the task returned a {kind} that cannot be pickled ({error}); return plain data instead")
