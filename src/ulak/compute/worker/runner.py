"""Runs one message in the worker and turns whatever happens into an outcome that can be sent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pickle import loads
from time import monotonic
from typing import Any, NamedTuple

from ulak.compute.worker.parcel import Packed, Packer, Parcel, unpack
from ulak.compute.worker.protocol import CHUNK, ERROR, OBJECT, OK, READINESS, SCRIPT, carry, unpicklable
from ulak.compute.worker.script import Scripts

_KNOWN_FUNCTIONS = 1024


class Role(NamedTuple):
    """The first message to a worker."""

    name: str
    threads: int  # 0: a CPU worker
    script_root: str | None
    capture_bytes: int
    initializer: bytes | None = None  # a pickled (callable, arguments) to run before the first task
    nice: int = 0  # how far a CPU worker stands back for the rest of the service


class Runner:
    def __init__(self, role: Role, packer: Packer) -> None:
        self._role, self._packer = role, packer
        self._functions: dict[bytes, Callable[..., Any]] = {}
        self._scripts: Scripts | None = None
        self._making = threading.Lock()

    def prepare(self) -> tuple[Any, ...] | None:
        """Run the initializer, if there is one; returns what to send about it."""
        if self._role.initializer is None:
            return None
        try:
            function, args = loads(self._role.initializer)
            function(*args)
        except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
            return READINESS, ERROR, carry(error), None
        return READINESS, OK, b"", None

    def begin(self) -> None:
        """Messages have arrived; called before any of them runs."""
        if self._scripts is not None:
            self._scripts.look_again()

    def rest(self) -> None:
        """There is nothing to run for the moment."""
        if self._scripts is not None:
            self._scripts.give_back()

    def run(self, message: tuple[Any, ...]) -> tuple[Any, ...]:
        """(number, code, pickled value or exception, what a script leaves beside its value).

        For a function the last is True when it has let go of its arguments' shared memory.
        """
        number, verb = message[0], message[1]
        if verb == SCRIPT:
            return (number, *self._ready_scripts().run(*message[2:]))
        self.rest()  # a function prints to where the process does
        code, packed = self._outcome(verb, message)
        given = message[-1]
        return number, code, packed, (isinstance(given, Parcel) and given.segment.is_released) or None

    def _outcome(self, verb: int, message: tuple[Any, ...]) -> tuple[int, Packed]:
        try:
            value = self._call(verb, message)
        except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
            return ERROR, carry(error)
        try:
            return OK, self._packer.pack(value)
        except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
            return ERROR, carry(unpicklable(value, error))

    def _call(self, verb: int, message: tuple[Any, ...]) -> Any:
        if verb == OBJECT:
            function, args, kwargs = unpack(message[2])
            return function(*args, **kwargs)
        function = self._functions.get(message[2]) or self._learn(message[2])
        if verb == CHUNK:
            return run_chunk(function, unpack(message[3]))
        args, kwargs = unpack(message[3])
        return function(*args, **kwargs)

    def _learn(self, name: bytes) -> Callable[..., Any]:
        """A function that is pickled by its name alone is looked up once."""
        if len(self._functions) >= _KNOWN_FUNCTIONS:
            self._functions.clear()
        function: Callable[..., Any] = loads(name)
        self._functions[name] = function
        return function

    def _ready_scripts(self) -> Scripts:
        if self._scripts is None:
            with self._making:  # two threads may come first; each would put streams of its own in place
                if self._scripts is None:
                    self._scripts = self._new_scripts()
        return self._scripts

    def _new_scripts(self) -> Scripts:
        role = self._role
        return Scripts(role.name, role.script_root, role.capture_bytes, self._packer, alone=role.threads == 0)


def run_chunk(function: Callable[..., Any], columns: list[list[Any]]) -> tuple[list[Any], bytes | None, float]:
    """All values up to the first error, that error, and the seconds they took. A column for each argument."""
    values: list[Any] = []
    error: bytes | None = None
    began = monotonic()
    try:
        values.extend(map(function, *columns))  # keeps what was done before an error
        if len(values) < min(map(len, columns)):
            raise StopIteration  # by the function; `extend` took it for the end
    except BaseException as raised:  # noqa: BLE001 - whatever a task raises is its outcome
        error = carry(raised)
    return values, error, monotonic() - began
