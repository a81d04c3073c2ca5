"""IO- and CPU-bound work on balanced worker processes: `Engine`, its `Task` and `Result`, and an `Executor` face."""

from __future__ import annotations

from ulak.compute.backend import Backend, Shutdown
from ulak.compute.engine import Engine
from ulak.compute.errors import Crashed, Expired, ScriptFailed, ScriptRefused, TimedOut, UnpicklableResult
from ulak.compute.executor import Executor
from ulak.compute.future import Future
from ulak.compute.model import ExecutionContext, Result, Task, TaskStatus, TaskType
from ulak.compute.settings import ComputeSettings

__all__ = [
    "Backend",
    "ComputeSettings",
    "Crashed",
    "Engine",
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
