"""IO- and CPU-bound work on balanced worker processes: `Engine`, its `Task` and `Result`, and an `Executor` face."""

from __future__ import annotations

from ulak.compute.engine.backend import Backend, Shutdown
from ulak.compute.engine.engine import Engine
from ulak.compute.engine.executor import Executor
from ulak.compute.engine.future import Future
from ulak.compute.engine.options import EngineOptions
from ulak.compute.errors import Crashed, Expired, ScriptFailed, ScriptRefused, TimedOut, UnpicklableResult
from ulak.compute.model import ExecutionContext, Result, Task, TaskStatus, TaskType

__all__ = [
    "Backend",
    "Crashed",
    "Engine",
    "EngineOptions",
    "ExecutionContext",
    "Executor",
    "Expired",
    "Future",
    "Result",
    "ScriptFailed",
    "ScriptRefused",
    "Shutdown",
    "Task",
    "TaskStatus",
    "TaskType",
    "TimedOut",
    "UnpicklableResult",
]
