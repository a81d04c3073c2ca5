"""Places: distances without special cases, and circles as ranges of cells that miss nobody."""

from __future__ import annotations

import math

import h3.api.basic_int as h3
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ulak.dispatch.nearby import geo
from ulak.dispatch.nearby.geo import (
    EARTH_RADIUS_METERS,
    MAX_RANGES,
    chord_of,
    from_nano,
    meters_of,
    point_at,
    ranges_around,
    squared_chord,
    to_nano,
)

PENTAGONS = [h3.cell_to_latlng(cell) for cell in h3.get_pentagons(9)]
RADII = [1, 30, 250, 1000, 2500, 5000, 17_000, 50_000, 400_000, 3_000_000]


def moved(latitude: float, longitude: float, meters: float, bearing: float) -> tuple[float, float]:
    """So far from a place in a direction."""
    phi, angle = math.radians(latitude), meters / EARTH_RADIUS_METERS
    there = math.asin(
        max(-1, min(1, math.sin(phi) * math.cos(angle) + math.cos(phi) * math.sin(angle) * math.cos(bearing)))
    )
    across = math.atan2(
        math.sin(bearing) * math.sin(angle) * math.cos(phi), math.cos(angle) - math.sin(phi) * math.sin(there)
    )
    return math.degrees(there), (longitude + math.degrees(across) + 540) % 360 - 180


def haversine(one: tuple[float, float], other: tuple[float, float]) -> float:
    phi, theta, psi, tau = map(math.radians, (*one, *other))
    found = math.sin((psi - phi) / 2) ** 2 + math.cos(phi) * math.cos(psi) * math.sin((tau - theta) / 2) ** 2
    return 2 * EARTH_RADIUS_METERS * math.asin(math.sqrt(found))


places = st.one_of(
    st.tuples(st.floats(-90, 90), st.floats(-180, 180)),
    st.sampled_from([(90.0, 0.0), (-90.0, 33.0), (89.9999, 180.0), (0.0, 180.0), (0.0, -180.0), (41.0, 29.0)]),
    st.builds(moved, *map(st.just, PENTAGONS[0]), st.floats(0, 60_000), st.floats(0, 6.28)),
    st.builds(
        lambda at, far, way: moved(*at, far, way), st.sampled_from(PENTAGONS), st.floats(0, 20_000), st.floats(0, 6)
    ),
)


@settings(max_examples=600)
@given(places, st.sampled_from(RADII), st.floats(0, 1), st.floats(0, 2 * math.pi))
def test_every_point_within_a_circle_is_within_its_ranges(centre, radius, part, bearing):
    here = point_at(*centre)
    there = point_at(*moved(*centre, radius * part, bearing))
    ranges = ranges_around(here, float(radius))
    assert len(ranges) <= MAX_RANGES
    if squared_chord(here.vector, there.vector) <= chord_of(radius):
        assert any(low <= there.cell <= high for low, high in ranges)


@settings(max_examples=300)
@given(places, st.sampled_from([250.0, 1000.0, 2500.0]))
def test_the_rows_of_a_disk_have_every_cell_that_a_look_at_each_finds(centre, radius):
    here = point_at(*centre)
    disk = geo._disk(here.cell, 9)
    assume(len(disk) == 271)  # no pentagon in it
    found = geo._rows_within(here, radius, disk, 9)
    assert set(geo._within(here, radius, disk)) <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("cell", "steps"),
    [(0x88A60002C9FFFFF, 10), (0x88A60002CBFFFFF, 10), (0x871C00112FFFFFF, 8), (0x850815B7FFFFFFF, 10)],
    ids=hex,
)
def test_a_pentagon_at_the_rim_of_a_disk_hides_no_cell(cell, steps):
    """Such a disk has all its cells, but in no order: these are some that hid a cell within half of their radius."""
    here, disk = point_at(*h3.cell_to_latlng(cell)), geo._disk(cell, steps)
    assert len(disk) == 3 * steps * (steps + 1) + 1
    reach = 0.75 * steps * geo._edge(cell)
    assert set(geo._within(here, reach, disk)) <= set(geo._rows_within(here, reach, disk, steps))


@pytest.mark.parametrize("centre", [(41.0, 29.0), (52.5, 13.4), (-33.9, 151.2)], ids=["Istanbul", "Berlin", "Sydney"])
def test_in_a_town_the_rows_have_hardly_any_cell_more(centre):
    here = point_at(*centre)
    disk = geo._disk(here.cell, 5)
    assert len(geo._rows_within(here, 1225.0, disk, 5)) <= len(geo._within(here, 1225.0, disk)) + 3


@given(places, places)
def test_a_squared_chord_tells_the_great_circle_distance(one, other):
    here, there = point_at(*one), point_at(*other)
    told = meters_of(squared_chord(here.vector, there.vector))
    wanted = haversine(one, other)
    assert told == pytest.approx(wanted, abs=0.03 if wanted < 15_000_000 else 100)


@pytest.mark.parametrize(
    ("one", "other"),
    [((0.0, 179.9999), (0.0, -179.9999)), ((89.9999, 0.0), (89.9999, 180.0)), ((-89.9999, -90.0), (-89.9999, 90.0))],
    ids=["antimeridian", "north pole", "south pole"],
)
def test_neighbours_across_an_edge_of_the_map_are_near(one, other):
    here, there = point_at(*one), point_at(*other)
    assert squared_chord(here.vector, there.vector) <= chord_of(25)
    assert any(low <= there.cell <= high for low, high in ranges_around(here, 25.0))


def test_the_largest_circle_is_everywhere():
    assert chord_of(20_100_000) >= squared_chord(point_at(90, 0).vector, point_at(-90, 0).vector)
    assert len(ranges_around(point_at(41, 29), 20_100_000.0)) <= MAX_RANGES


@given(st.integers(-180_000_000, 180_000_000))
def test_degrees_with_six_decimals_come_back_as_they_were(millionths):
    degrees = millionths / 1_000_000
    assert from_nano(to_nano(degrees)) == degrees
