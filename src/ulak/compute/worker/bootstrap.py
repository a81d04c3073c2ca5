"""The fork server's first lines, run as a script: packages are put in place without what their `__init__` would import.

A worker needs a dozen small modules of ours. A task that uses more of `ulak` gets the real package at first use.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from types import ModuleType
from typing import Any


class Package(ModuleType):
    """Runs its `__init__` when a name is asked for that is neither there yet nor a module in it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(name)
        if importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        self.__class__ = ModuleType  # type: ignore[assignment]  # from now on an ordinary module
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def place(name: str) -> None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError(f"{name} is not on the path that the engine gave")
    package = Package(name)
    package.__spec__, package.__path__, package.__package__ = spec, spec.submodule_search_locations, name
    package.__file__ = spec.origin
    sys.modules[name] = package


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])
    place("ulak")
    place("ulak.compute")
    place("ulak.compute.worker")
    from ulak.compute.worker.forkserver import main

    main(int(sys.argv[1]))
