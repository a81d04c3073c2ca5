"""The steps that an engine's process runs. It imports nothing but this: a process loads what its steps need."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def without_collector(function: Callable[..., T], /, *args: Any) -> T:
    """Run a step in a process of its own: millions of records without a cycle are not worth looking through for one."""
    gc.disable()
    try:
        return function(*args)
    finally:
        gc.enable()
