"""A box on the map: west, south, east and north. One whose west is beyond its east crosses the antimeridian."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ulak.dispatch.nearby.geo import (
    EARTH_RADIUS_METERS,
    Range,
    meters_of,
    point_at,
    ranges_around,
    squared_chord,
    to_nano,
)
from ulak.errors import Invalid

_SHAPE = "must be west,south,east,north in degrees, like 28.9,40.9,29.1,41.1"


@dataclass(frozen=True, slots=True)
class Box:
    west: float
    south: float
    east: float
    north: float

    @property
    def edges(self) -> dict[str, int]:
        return {name: to_nano(getattr(self, name)) for name in ("west", "south", "east", "north")}

    def ranges(self) -> tuple[Range, ...]:
        """The cells of a circle around the box: what they hold beyond it is left out by its edges."""
        width = (self.east - self.west) % 360 or (360 if self.east != self.west else 0)
        if width > 90 or self.north - self.south > 90:
            return ranges_around(point_at(0, 0), math.pi * EARTH_RADIUS_METERS)
        middle = (self.west + width / 2 + 540) % 360 - 180
        centre = point_at((self.south + self.north) / 2, middle)
        corners = [point_at(latitude, self.west) for latitude in (self.south, self.north, self._widest())]
        far = max(squared_chord(centre.vector, corner.vector) for corner in corners)
        return ranges_around(centre, math.ceil(meters_of(far)) + 1.0)

    def _widest(self) -> float:
        """The latitude at which the box is widest: the one nearest to the equator."""
        return min(max(0.0, self.south), self.north)


def parse_box(text: str) -> Box:
    try:
        west, south, east, north = map(float, text.split(","))
    except ValueError:
        raise Invalid(f"bbox {_SHAPE}", fields=[("bbox", _SHAPE)]) from None
    fits = -180 <= west <= 180 and -180 <= east <= 180 and -90 <= south <= north <= 90
    if not fits:  # a NaN fits nowhere
        raise Invalid(f"bbox {_SHAPE}, the south not beyond the north", fields=[("bbox", _SHAPE)])
    return Box(west, south, east, north)
