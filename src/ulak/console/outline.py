"""The outline under dispatch's map: lines and areas of a GeoJSON file that whoever runs Ulak has named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ulak.errors import Misconfigured

MAX_BYTES = 1 << 20
MAX_NAME = 60
MAX_POINTS = 5000  # all of them are in every page that shows the map
_DEPTH = {"LineString": 0, "MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}  # lists around a line of points
_FURTHER = {"Feature": "geometry", "FeatureCollection": "features", "GeometryCollection": "geometries"}

_LOOKS = frozenset({"water", "park", "road", "main"})

Points = tuple[tuple[float, float], ...]  # (latitude, longitude)


class MapLine(NamedTuple):
    """`look` is a property of its feature that the map has a drawing for; else it is drawn as a plain outline."""

    points: Points
    look: str = "outline"


class Outline(NamedTuple):
    name: str = ""
    lines: tuple[MapLine, ...] = ()


NO_OUTLINE = Outline()


def read_outline(path: Path | None) -> Outline:
    """Misconfigured says what is wrong with the file; points are left out, since helpers and tasks are points."""
    if path is None:
        return NO_OUTLINE
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _wrong(path, f"can't be read ({error.strerror})") from None
    if len(text) > MAX_BYTES:
        raise _wrong(path, f"has more than {MAX_BYTES:,} bytes; simplify it")
    try:
        document = msgspec.json.decode(text)
        lines = tuple(_lines(document))
        name = str(document.get("name") or "")[:MAX_NAME]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _wrong(path, "is not GeoJSON: coordinates are [longitude, latitude] in degrees (RFC 7946)") from None
    points = sum(len(line.points) for line in lines)
    if points > MAX_POINTS:
        raise _wrong(path, f"has {points:,} points, more than {MAX_POINTS:,}; simplify it")
    return Outline(name, lines)


def _wrong(path: Path, why: str) -> Misconfigured:
    return Misconfigured(f"console.outline: {path} {why}")


def _lines(document: Mapping[str, Any], look: str = "outline") -> Iterator[MapLine]:
    kind = document["type"]
    asked = (document.get("properties") or {}).get("look")
    look = asked if asked in _LOOKS else look
    if kind in _FURTHER:
        inner = document[_FURTHER[kind]] or ()  # a feature may be without a place
        for one in [inner] if isinstance(inner, Mapping) else inner:
            yield from _lines(one, look)
    elif kind in _DEPTH:
        yield from (MapLine(points, look) for points in _points(document["coordinates"], _DEPTH[kind]))
    elif kind not in {"Point", "MultiPoint"}:
        raise ValueError(kind)


def _points(coordinates: list[Any], depth: int) -> Iterator[Points]:
    if depth:
        for one in coordinates:
            yield from _points(one, depth - 1)
    else:
        yield tuple(map(_point, coordinates))


def _point(position: list[float]) -> tuple[float, float]:
    longitude, latitude = map(float, position[:2])
    if not (-180 <= longitude <= 180 and -90 <= latitude <= 90):
        raise ValueError(position)
    return latitude, longitude
