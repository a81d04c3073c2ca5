"""Which of the known paths is meant: exact ones by one look, those with `{parameters}` by their words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from ulak.http.hot_routes import HotRoute, Routes

T = TypeVar("T")

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_NONE: Mapping[str, str] = {}


class Paths(Generic[T]):
    def __init__(self, entries: Iterable[tuple[str, str, T]]) -> None:
        self._exact: dict[tuple[str, str], T] = {}
        self._by_length: defaultdict[tuple[str, int], list[tuple[list[str], T]]] = defaultdict(list)
        for method, path, value in entries:
            if "{" in path:
                self._by_length[method, path.count("/")].append((path.split("/"), value))
            else:
                self._exact[method, path] = value

    def find(self, method: str, path: str) -> tuple[T | None, Mapping[str, str]]:
        """Return the route at this path, and the values of its parameters."""
        found = self._exact.get((method, path))
        if found is not None or not self._by_length:
            return found, _NONE
        candidates = self._by_length.get((method, path.count("/")))
        return self._by_words(candidates, path.split("/")) if candidates else (None, _NONE)

    def _by_words(self, candidates: list[tuple[list[str], T]], words: list[str]) -> tuple[T | None, Mapping[str, str]]:
        for pattern, value in candidates:
            if all(word == part or (word and part.startswith("{")) for part, word in zip(pattern, words, strict=True)):
                return value, {part[1:-1]: word for part, word in zip(pattern, words, strict=True) if part[:1] == "{"}
        return None, _NONE

    def methods(self, path: str) -> set[str]:
        return {method for method in METHODS if self.find(method, path)[0] is not None}


@dataclass(frozen=True, slots=True)
class KnownPath:
    """The front's knowledge of a path. Of most it has none: they are FastAPI's, and need a key."""

    route: HotRoute | None = None
    takes_work: bool = False
    is_signed: bool = False


def known_paths(rooms: Sequence[Routes]) -> Paths[KnownPath]:
    found: defaultdict[tuple[str, str], KnownPath] = defaultdict(KnownPath)
    for route in (route for room in rooms for route in room.hot):
        found[route.method, route.path] = KnownPath(route, takes_work=True)
    for one in (one for room in rooms for one in room.takes_work):
        found[one] = replace(found[one], takes_work=True)
    for one in (one for room in rooms for one in room.signed):
        found[one] = replace(found[one], is_signed=True)
    return Paths((*one, known) for one, known in found.items())
