"""Places on the globe as whole numbers: a point, the distance between two, and a circle as ranges of H3 cells.

A point is a unit vector in billionths, so a distance is compared as a squared chord: no trigonometry in SQL, no
rounding that differs between databases, and no special case for the poles or the antimeridian.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import cos, sin
from typing import NamedTuple

import h3.api.basic_int as h3
from h3.api import memview_int

EARTH_RADIUS_METERS = 6_371_008.8
RESOLUTION = 9
MAX_RANGES = 50

_SCALE = 1_000_000_000
_FURTHEST = 4 * _SCALE * _SCALE + 4 * _SCALE  # the squared chord of two opposite points, and what rounding adds
# A cell's descendants reach beyond its edges: so many edges from its centre; a point of a cell of resolution 9 itself
# less far. A property test looks for points beyond, around the pentagons too.
_REACH = 1.3
_OWN_REACH = 1.12
_STEP = 1.42  # edges that a ring of cells adds at least; 1.5 where nothing is distorted
_HEXAGON = 2 / (3 * math.sqrt(3))  # an edge squared, of an area
MAX_STEPS = 14
_MAX_SLACK = 0.1  # of the distance between neighbours
_PLAIN = (41.0, 29.0)  # a place far from every pentagon
_DIGIT_BITS = 3
_RESOLUTION_SHIFT = 52
_RESOLUTION_MASK = 0xF << _RESOLUTION_SHIFT


Vector = tuple[int, int, int]


class Point(NamedTuple):
    """A place: its cell and its vector, as they are stored."""

    cell: int
    x: int
    y: int
    z: int

    @property
    def vector(self) -> Vector:
        return self[1:]


class Range(NamedTuple):
    """Cells from `low` to `high`, both included."""

    low: int
    high: int


def to_nano(degrees: float) -> int:
    """Billionths of a degree: about a tenth of a millimetre."""
    return round(degrees * _SCALE)


def from_nano(value: int) -> float:
    return value / _SCALE


def point_at(latitude: float, longitude: float) -> Point:
    return Point(h3.latlng_to_cell(latitude, longitude, RESOLUTION), *vector_at(latitude, longitude))


def vector_at(latitude: float, longitude: float) -> Vector:
    phi, theta = math.radians(latitude), math.radians(longitude)
    flat = cos(phi) * _SCALE
    return round(flat * cos(theta)), round(flat * sin(theta)), round(sin(phi) * _SCALE)


def squared_chord(one: Vector, other: Vector) -> int:
    (x, y, z), (a, b, c) = one, other
    return (x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2


def meters_of(chord: int) -> float:
    """The great-circle distance that belongs to a squared chord."""
    return 2 * EARTH_RADIUS_METERS * math.asin(min(math.sqrt(chord) / (2 * _SCALE), 1.0))


def chord_of(meters: float) -> int:
    """The largest squared chord within a distance."""
    angle = meters / (2 * EARTH_RADIUS_METERS)
    if angle >= math.pi / 2:
        return _FURTHEST
    return math.floor((2 * _SCALE * math.sin(angle)) ** 2)


@lru_cache(maxsize=256)  # a task searches again in the same circle
def ranges_around(centre: Point, radius_meters: float) -> tuple[Range, ...]:
    """At most MAX_RANGES ranges that hold the cells of all points within the radius."""
    for resolution in range(RESOLUTION, -1, -1):
        found = _covering(centre, radius_meters, resolution)
        if found is not None and len(merged := _merge(found, resolution)) <= MAX_RANGES:
            return tuple(merged)
    return (_range_of_all(),)


def _covering(centre: Point, radius_meters: float, resolution: int) -> list[int] | None:
    """Cells of a resolution whose descendants may be within the radius; None when there are too many to look at."""
    if not resolution:
        return list(h3.get_res0_cells())
    middle = h3.cell_to_parent(centre.cell, resolution)
    edge = _edge(middle)
    beyond = (_REACH if resolution < RESOLUTION else _OWN_REACH) * edge
    reach = radius_meters + beyond
    aside = meters_of(squared_chord(centre.vector, vector_at(*h3.cell_to_latlng(middle))))
    steps = math.ceil((reach + aside) / (_STEP * edge))  # the disk is around the middle's centre, the circle is not
    if steps > MAX_STEPS:
        return None
    disk = _disk(middle, steps)
    if len(disk) < 3 * steps * (steps + 1) + 1:  # a pentagon is near: twelve places, where neighbours differ in size
        return _within(centre, reach + beyond, _disk(middle, 2 * steps))
    return _rows_within(centre, reach, disk, steps)


def _disk(middle: int, steps: int) -> list[int]:
    """The cells around one. `h3.grid_disk` takes three times as long to make its list: 2 % of opening a task."""
    found: list[int] = memoryview(memview_int.grid_disk(middle, steps)).tolist()
    return found


def _edge(cell: int) -> float:
    """How long a cell's edges are; that of a pentagon is taken for its neighbours'."""
    area = h3.cell_area(cell, "m^2")
    return math.sqrt(area * _HEXAGON * (2 if h3.is_pentagon(cell) else 1))


def _within(centre: Point, reach: float, cells: Sequence[int]) -> list[int]:
    """Those with their centres within reach."""
    limit, vector = chord_of(reach), centre.vector
    return [cell for cell in cells if squared_chord(vector, vector_at(*h3.cell_to_latlng(cell))) <= limit]


def _rows_within(centre: Point, reach: float, disk: Sequence[int], steps: int) -> list[int]:
    """The same for a whole disk, and some more: a circle cuts one piece out of each row, so only its ends are computed.
    A look at every cell was a tenth of opening a task.

    Cells are taken to lie on a lattice that two directions span. Its corners tell how far aside the true ones are, and
    the circle grows by as much. Where that is far, at an edge of the icosahedron or because a pentagon at the rim has
    made the library list its cells in no order, there is a look at each after all.
    """
    corner_places, rows = _lattice(steps)
    middle = _centre_of(disk[0])
    corners = [_centre_of(disk[place]) for place in corner_places]
    across, up = (_scaled(_apart(corners[one], corners[one + 3]), 0.5 / steps) for one in (0, 1))
    bends = [_apart(_sum(corners[one], corners[one + 3]), _scaled(middle, 2)) for one in (0, 1, 2)]
    bends.append(_apart(_apart(corners[2], corners[5]), _scaled(_apart(up, across), 2 * steps)))
    slack = math.sqrt(max(_product(one, one) - _product(one, middle) ** 2 for one in bends))
    square, far = _product(up, up), _product(across, across)
    if slack > _MAX_SLACK * math.sqrt(min(square, far)):
        return _within(centre, reach, disk)
    limit = (math.sqrt(chord_of(reach)) / _SCALE + slack) ** 2
    x, y, z = centre.vector
    aside = _apart(middle, (x / _SCALE, y / _SCALE, z / _SCALE))
    # The squared chord to a cell of row a at b is a sum of such products; it is the limit at both ends of the row.
    own = _product(aside, aside) - limit
    slant, along, over = _product(across, up), 2 * _product(aside, across), _product(aside, up)
    found: list[int] = []
    for a, (first, places) in enumerate(rows, -steps):
        half = over + a * slant
        inside = half * half - square * (own + a * (along + a * far))
        if inside >= 0:
            root = math.sqrt(inside)
            low, high = math.ceil((-half - root) / square) - first, math.floor((root - half) / square) - first
            found += map(disk.__getitem__, places[max(low, 0) : max(high + 1, 0)])
    return found


@lru_cache
def _lattice(steps: int) -> tuple[list[int], list[tuple[int, tuple[int, ...]]]]:
    """The places in a disk's list of its six corners; and per row where it begins, and the places of its cells.

    The library promises no order, so it is read off a disk without a pentagon; all such disks have the same.
    """
    origin = h3.latlng_to_cell(*_PLAIN, RESOLUTION)
    i, j = h3.cell_to_local_ij(origin, origin)
    places: dict[tuple[int, int], int] = {}
    for place, cell in enumerate(_disk(origin, steps)):
        right, left = h3.cell_to_local_ij(origin, cell)  # axes that are 120 degrees apart; ours are 60
        places[right - i - (left - j), left - j] = place
    corners = [places[a * steps, b * steps] for a, b in ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))]
    rows = []
    for a in range(-steps, steps + 1):
        first, last = max(-steps, -steps - a), min(steps, steps - a)
        rows.append((first, tuple(places[a, b] for b in range(first, last + 1))))
    return corners, rows


Direction = tuple[float, float, float]


def _centre_of(cell: int) -> Direction:
    latitude, longitude = h3.cell_to_latlng(cell)
    phi, theta = math.radians(latitude), math.radians(longitude)
    flat = cos(phi)
    return flat * cos(theta), flat * sin(theta), sin(phi)


def _product(one: Direction, other: Direction) -> float:
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]


def _apart(one: Direction, other: Direction) -> Direction:
    return one[0] - other[0], one[1] - other[1], one[2] - other[2]


def _sum(one: Direction, other: Direction) -> Direction:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _scaled(one: Direction, by: float) -> Direction:
    return one[0] * by, one[1] * by, one[2] * by


def _merge(cells: Iterable[int], resolution: int) -> list[Range]:
    """Neighbours in number become one range, also over a gap of one: what is too much is left out by its distance."""
    near = 2 << _shift(resolution)
    ordered = sorted(cells)
    gaps = [(before, after) for before, after in pairwise(ordered) if after - before > near]
    lows = [ordered[0], *(after for _, after in gaps)]
    highs = [*(before for before, _ in gaps), ordered[-1]]
    if resolution == RESOLUTION:
        return list(map(Range, lows, highs))
    return [_descendants(low, high, resolution) for low, high in zip(lows, highs, strict=True)]


def _descendants(low: int, high: int, resolution: int) -> Range:
    """From the first descendant of a cell to the last of another: they follow one another, as their digits go up."""
    for level in range(resolution + 1, RESOLUTION + 1):
        low &= ~(7 << _shift(level))  # the digit 0
        high = high & ~(7 << _shift(level)) | 6 << _shift(level)
    deepest = RESOLUTION << _RESOLUTION_SHIFT
    return Range(low & ~_RESOLUTION_MASK | deepest, high & ~_RESOLUTION_MASK | deepest)


def _shift(level: int) -> int:
    return (15 - level) * _DIGIT_BITS


def _range_of_all() -> Range:
    cells = h3.get_res0_cells()
    return Range(_merge(cells, 0)[0].low, _merge(cells, 0)[-1].high)
