"""The user's `__main__` in a worker: loaded when something in it is first asked for, since scripts never need it."""

from __future__ import annotations

import sys
import threading
from multiprocessing import spawn
from types import ModuleType
from typing import Any

from ulak.errors import Misconfigured

_loading = threading.local()


def install(main_module: dict[str, Any]) -> None:
    if main_module:
        sys.modules["__main__"] = LazyMain(main_module)


class LazyMain(ModuleType):
    def __init__(self, main_module: dict[str, Any]) -> None:
        super().__init__("__main__")
        self.__dict__["_ulak_lock"] = threading.RLock()
        self.__dict__["_ulak_source"] = main_module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self.__dict__["_ulak_lock"]:
            if source := self.__dict__.pop("_ulak_source", None):
                _load(source)
        return getattr(sys.modules["__mp_main__"], name)


def _load(source: dict[str, Any]) -> None:
    _loading.active = True
    try:
        spawn.prepare(dict(source))
    finally:
        _loading.active = False
    # spawn puts the real module in our place, under both names.


def refuse_while_loading() -> None:
    """An engine made while a worker loads the main module would start workers without end."""
    if getattr(_loading, "active", False):
        raise Misconfigured(
            "an Engine was made while a worker imported your main module; put it under `if __name__ == '__main__':`"
        )
