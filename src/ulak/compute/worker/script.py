"""Scripts: found under the root, compiled once per change, run with fresh globals, whatever they do."""

from __future__ import annotations

import os
from pathlib import Path
from types import CodeType, CoroutineType, TracebackType
from typing import Any, NamedTuple

from ulak.clock import SystemClock
from ulak.compute.errors import ScriptFailed, ScriptRefused
from ulak.compute.model import ExecutionContext
from ulak.compute.worker.isolation import Isolation
from ulak.compute.worker.parcel import Packed, Packer, unpack
from ulak.compute.worker.protocol import ERROR, OK, carry, unpicklable

_clock = SystemClock()
Stamp = tuple[int, int, int]


def locate(script_path: str, root: str | None) -> str:
    """The script's real path; refused when it is not a file under the root, links followed. No root: any file."""
    base = os.path.realpath(root or ".")
    path = os.path.realpath(os.path.join(base, script_path))
    if root is not None and not path.startswith(base.rstrip(os.sep) + os.sep):
        raise _refused(script_path, "is outside script_root; only scripts in it are run")
    if not os.path.isfile(path):  # also where no system could have one: false, not an error
        raise _refused(script_path, "is not there; check the path" if root is None else "is not in script_root")
    return path


def _refused(script_path: str, trouble: str) -> ScriptRefused:
    return ScriptRefused(f"script {script_path!r:.200} {trouble}", fields=[("script_path", trouble)])


class Compiled(NamedTuple):
    stamp: Stamp
    code: CodeType
    entry: str | None  # the function to call; None: the script is run and its `result` is taken
    arity: int


class Scripts:
    """One worker's scripts."""

    def __init__(self, worker: str, root: str | None, capture_bytes: int, packer: Packer, *, alone: bool) -> None:
        self._worker, self._root, self._packer = worker, root, packer
        self._isolation = Isolation(capture_bytes, alone=alone)
        self._known: dict[str, Compiled] = {}
        self._looked: dict[str, object] = {}  # in which round of messages the file was looked at
        self._round = object()

    def look_again(self) -> None:
        """Before messages that have just arrived are run: a file may have changed before they were sent, but a change
        that comes later may be left to later messages. So one look per file and round is enough."""
        self._round = object()  # any thread may begin a round: nothing is counted, so nothing can be miscounted

    def give_back(self) -> None:
        self._isolation.give_back()

    def run(self, path: str, params: Packed, task_id: str, attempt: int) -> tuple[Any, ...]:
        """(code, pickled value or exception, (started, ended, stdout, stderr))."""
        started = _clock.now()
        out, err = self._isolation.enter()
        try:
            code, blob = self._outcome(path, params, ExecutionContext(task_id, self._worker, attempt))
        finally:
            self._isolation.leave()
        return code, blob, (started, _clock.now(), out.text(), err.text())

    def _outcome(self, path: str, params: Packed, context: ExecutionContext) -> tuple[int, Packed]:
        try:
            value = _execute(path, self._compiled(path), unpack(params), context)
        except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
            return ERROR, carry(error.with_traceback(_own_frames(error, path)))
        try:
            return OK, self._packer.pack(value)
        except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
            return ERROR, carry(unpicklable(value, error))

    def _compiled(self, path: str) -> Compiled:
        """From the cache while the file is the same; a changed file may have become a link, so it is located again."""
        this_round = self._round  # read before the look: a round that begins meanwhile is not served by it
        if self._looked.get(path) is not this_round:
            self._refresh(path)
            self._looked[path] = this_round
        return self._known[path]

    def _refresh(self, path: str) -> None:
        found = os.stat(path)
        stamp = found.st_mtime_ns, found.st_size, found.st_ino
        known = self._known.get(path)
        if known is None or known.stamp != stamp:
            located = locate(path, self._root)
            self._isolation.import_from(os.path.dirname(located))
            self._known[path] = _compile(path, stamp)


def _own_frames(error: BaseException, path: str) -> TracebackType | None:
    """The traceback from the script's first frame on; ours above it help nobody."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != path:
        frame = frame.tb_next
    return frame


def _compile(path: str, stamp: Stamp) -> Compiled:
    code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    functions = {part.co_name: part for part in code.co_consts if isinstance(part, CodeType)}
    for name, most in (("main", 2), ("run", 1)):
        function = functions.get(name)
        if function is not None and function.co_argcount >= 1:
            return Compiled(stamp, code, name, min(function.co_argcount, most))
    return Compiled(stamp, code, None, 0)


def _execute(path: str, compiled: Compiled, params: Any, context: ExecutionContext) -> Any:
    name = "__main__" if compiled.entry is None else "__ulak_script__"
    names: dict[str, Any] = {"__name__": name, "__file__": path, "params": params, "context": context}
    try:
        exec(compiled.code, names)
        if compiled.entry is None:
            return names.get("result")
        value = names[compiled.entry](*(params, context)[: compiled.arity])
        return _awaited(value) if isinstance(value, CoroutineType) else value
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            raise ScriptFailed(f"the script left with exit code {leaving.code}") from None
        return names.get("result")


def _awaited(value: CoroutineType[Any, Any, Any]) -> Any:
    import asyncio  # most scripts do without it, and it is slow to import

    return asyncio.run(value)
